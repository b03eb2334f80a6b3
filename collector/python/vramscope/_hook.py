"""Waits for `torch.cuda` without importing it.

This is what every Python process of a job loads when a variable asks for an agent: it is small, and does nothing until
the job itself imports torch.
"""

import sys

_waiting = []
_finder = None


def when_torch_cuda_is_there(call):
    """Calls `call(torch.cuda)` now, or when the program has imported it."""
    module = sys.modules.get("torch.cuda")
    if module is not None and hasattr(module, "_lazy_call") and hasattr(module, "is_initialized"):
        call(module)
        return
    global _finder
    _waiting.append(call)
    if _finder is None:
        _finder = _Finder()
        sys.meta_path.insert(0, _finder)


class _Finder:
    """Finds `torch.cuda` as everybody else does, and looks on while it is loaded."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch.cuda":
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader:
    """A loader that tells when it is done."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        global _finder
        self._loader.exec_module(module)
        # Nobody is to find us in its place.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        if _finder in sys.meta_path:
            sys.meta_path.remove(_finder)
        _finder = None
        while _waiting:
            call = _waiting.pop(0)
            try:
                call(module)
            except Exception as error:  # The program's import must not fail of us.
                from . import _agent

                _agent.log("nothing is recorded: %s" % error)


def from_environment():
    """Attaches as VRAMSCOPE_TO or VRAMSCOPE_OUT say, once torch.cuda is there. Called by the package's .pth file."""

    def attach(_module):
        from . import _agent, _config

        try:
            config = _config.from_environment()
            if config is not None and _agent.current() is None:
                _agent.attach(config)
        except Exception as error:
            _agent.log("nothing is recorded: %s" % error)

    when_torch_cuda_is_there(attach)
