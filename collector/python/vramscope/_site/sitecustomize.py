"""Attaches the agent where the package is not installed but on `PYTHONPATH`, as in a checkout.

`python -m vramscope run` and `vramscope watch` put this folder at the front of `PYTHONPATH`, so that Python imports this file
when it starts, and so do the processes that the program starts. It then runs the `sitecustomize` that it stands before.
"""

import sys


def _step_aside():
    """Removes this folder from the path, and imports the `sitecustomize` behind it, if there is one."""
    import os

    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != own]
    this = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if this is not None:
            sys.modules["sitecustomize"] = this


try:
    import vramscope._environment

    vramscope._environment.attach()
except Exception:  # The program must run without the recording.
    pass
_step_aside()
