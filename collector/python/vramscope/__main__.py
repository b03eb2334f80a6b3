"""``python -m vramscope run [options] script.py …``: a program, watched without a change to it."""

from __future__ import annotations

import argparse
import atexit
import importlib.util
import os
import runpy
import site
import sys

from . import __version__, _config, _log


def _parser():
    parser = argparse.ArgumentParser(prog="python -m vramscope", description="Watch a training job's GPU memory.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a Python program and watch it", description="Run a program, watched.")
    run.add_argument("--to", help=f"the server's address (default: {_config.DEFAULT_TO}, unless --out is given)")
    run.add_argument("--out", help="a file to write; {rank} and {pid} are filled in")
    run.add_argument("--mode", choices=_config.MODES, default=None, help="how events are had")
    run.add_argument("--stacks", choices=("python", "all", "none"), default=None, help="which stacks are kept")
    run.add_argument("--context", choices=_config.CONTEXTS, default=None, help="which events have a stack of their own")
    run.add_argument("--budget", default=None, help="the share of the time that the mode budget may take (0.01)")
    run.add_argument("--name", help="what the recording is called")
    run.add_argument("--job", help="the job that it is part of")
    run.add_argument("-m", dest="module", action="store_true", help="what follows is a module's name, as for python -m")
    run.add_argument("program", help="the script, or with -m the module")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program is given")
    commands.add_parser("build", help="compile the tracker now, for the torch of this Python", description="Compile.")
    return parser


def _missing(options):
    """Why there is nothing to run, in one line; None where there is."""
    program = options.program
    if not options.module:
        return None if os.path.exists(program) else f"{program}: there is no such program. Name a Python script, or -m MODULE."
    try:
        if importlib.util.find_spec(program) is not None:
            return None
    except ModuleNotFoundError as error:
        if not error.name or not (program + ".").startswith(error.name + "."):
            raise
    except ValueError:
        pass
    return f"there is no module {program!r}. Name one that python -m runs."


def _is_installed():
    """Whether the processes that this one starts read the package's .pth file. A checkout has it as well, where nobody
    reads it."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sites = [*site.getsitepackages(), site.getusersitepackages()]
    places = [place for place in sys.path if place in sites or os.path.abspath(place) != own]
    return any(os.path.isfile(os.path.join(place, "vramscope.pth")) for place in places)


def _say_unused():
    from . import _agent

    agent = _agent.current()
    if isinstance(agent, _agent.Agent) and agent.state == "waiting":
        _log.log(
            "nothing was recorded: the program did not use the GPU. "
            "Processes that it starts are watched where the package is installed, and here it is not."
        )


def _run(options):
    for name in _config.VARIABLES:
        value = getattr(options, name, None)
        if value is not None:
            # Processes that the program starts are watched alike, where the package is installed.
            os.environ["VRAMSCOPE_" + name.upper()] = value
    if not os.environ.get("VRAMSCOPE_TO") and not os.environ.get("VRAMSCOPE_OUT"):
        os.environ["VRAMSCOPE_TO"] = _config.DEFAULT_TO
    sys.argv = [options.program, *options.arguments]
    if options.module:
        sys.path[0] = os.getcwd()
    missing = _missing(options)
    if missing is not None:
        print(f"vramscope: {missing}", file=sys.stderr)
        return 2
    from . import _agent

    try:
        config = _config.from_environment()
        if _agent.current() is None:
            _agent.attach(config)
    except Exception as error:  # Whatever it is: the program runs, as without us.
        _log.log(f"Not recording: {error}")
        for name in ("VRAMSCOPE_TO", "VRAMSCOPE_OUT"):
            # It would be tried, and fail, once more where the package is installed.
            os.environ.pop(name, None)
    if not _is_installed():
        atexit.register(_say_unused)
    if options.module:
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(options.program))
        runpy.run_path(options.program, run_name="__main__")
    return 0


def _build():
    import torch

    from . import _build

    try:
        print(_build.build(torch))
    except _build.BuildError as error:
        print(f"vramscope: no tracker: {error}", file=sys.stderr)
        return 1
    return 0


def main(arguments=None):
    options = _parser().parse_args(arguments)
    return _run(options) if options.command == "run" else _build()


if __name__ == "__main__":
    sys.exit(main())
