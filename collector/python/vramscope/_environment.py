"""Attaches an agent as the environment's variables say. The package's .pth file calls it in every Python process.

It must stay small: it imports the agent only when the program imports `torch.cuda`.
"""

import os
import sys

from . import _hook

TORCH_BYTES = 100 << 20
"""The least resident memory of a process that has imported torch; what torch itself starts is smaller."""

_is_called = False


def attach():
    """Attaches as ``VRAMSCOPE_TO`` or ``VRAMSCOPE_OUT`` say, once the program has imported `torch.cuda`."""
    global _is_called
    # In a virtual environment, Python reads .pth files twice.
    if not _is_called:
        _is_called = True
        _hook.reached("started")
        _report_if_unused()
        _hook.when_torch_cuda_is_imported(_attach)
        if os.environ.get("VRAMSCOPE_PREDICT"):
            # It replaces much of PyTorch, which must be there as a whole.
            _hook.when_imported("torch", _predict)


def _predict(torch):
    from . import _log
    from ._predict import start

    try:
        start.start(torch)
    except Exception as error:
        _log.log("Not predicting: %s" % error)


def _report_if_unused():
    """Makes the process of ``python -m vramscope run`` say at its end that it recorded nothing, if so."""
    if os.environ.get("VRAMSCOPE_RUN_PID") != str(os.getpid()):
        return
    import atexit

    def report():
        agent = sys.modules.get("vramscope._agent")
        if agent is not None and agent.has_recorded():
            return
        # The processes of a launcher have their own recordings.
        if not _has_started_torch():
            from . import _log

            _log.log("Nothing was recorded: the program did not use the GPU.")

    atexit.register(report)


def _has_started_torch():
    """Returns whether a process that this one started, and that has ended, was as large as one with PyTorch is."""
    try:
        import resource
    except ImportError:  # Windows.
        return True
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit > TORCH_BYTES


def _attach(_torch_cuda):
    _hook.reached("torch")
    if not os.environ.get("VRAMSCOPE_TO") and not os.environ.get("VRAMSCOPE_OUT"):
        return
    from . import _agent, _config, _log

    try:
        config = _config.from_environment()
        if config is not None and _agent.current() is None:
            _agent.attach(config)
    except Exception as error:
        _log.log("Not recording: %s" % error)
