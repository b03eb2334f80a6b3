"""Waits for `torch.cuda`, or another module, without importing it, and tells `vramscope watch` how far a process has come.

Every Python process of a job loads this module when a variable asks for an agent. It is small, and does nothing until the
program itself imports torch.
"""

import os
import sys

_waiting = {}
_finder = None


def reached(stage):
    """Tells `vramscope watch` that this process has reached a stage, by an empty file in the folder that it names."""
    folder = os.environ.get("VRAMSCOPE_WATCHED", "")
    if os.path.isabs(folder):
        try:
            os.close(os.open(os.path.join(folder, stage), os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:  # On another machine, there is no such folder.
            pass


def when_torch_cuda_is_imported(call):
    """Calls `call(torch.cuda)` now, or once the program has imported it."""
    module = sys.modules.get("torch.cuda")
    if module is not None and hasattr(module, "_lazy_call") and hasattr(module, "is_initialized"):
        call(module)
        return
    _wait("torch.cuda", call)


def when_imported(name, call):
    """Calls `call(module)` now, or once the program has imported the module with this name, as a whole."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        call(module)
        return
    _wait(name, call)


def _wait(name, call):
    global _finder
    _waiting.setdefault(name, []).append(call)
    if _finder is None:
        _finder = _Finder()
        sys.meta_path.insert(0, _finder)


class _Finder:
    """Finds the modules that are waited for with the other finders and wraps their loaders."""

    def find_spec(self, name, path=None, target=None):
        if name not in _waiting:
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
    """A loader that makes the waiting calls after it has loaded the module."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        global _finder
        self._loader.exec_module(module)
        # The program must see the original loader.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        calls = _waiting.pop(module.__name__, [])
        if not _waiting:
            if _finder in sys.meta_path:
                sys.meta_path.remove(_finder)
            _finder = None
        for call in calls:
            try:
                call(module)
            except Exception as error:  # It must not make the program's import fail.
                from . import _log

                _log.log("Not recording: %s" % error)
