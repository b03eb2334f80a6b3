"""Attaches an agent as the environment's variables say. The package's .pth file calls it in every Python process.

It must stay small: it imports the agent only when the program imports `torch.cuda`.
"""

from . import _hook


def attach():
    """Attaches as ``VRAMSCOPE_TO`` or ``VRAMSCOPE_OUT`` say, once the program has imported `torch.cuda`."""
    _hook.when_torch_cuda_is_imported(_attach)


def _attach(_torch_cuda):
    from . import _agent, _config, _log

    try:
        config = _config.from_environment()
        if config is not None and _agent.current() is None:
            _agent.attach(config)
    except Exception as error:
        _log.log("Not recording: %s" % error)
