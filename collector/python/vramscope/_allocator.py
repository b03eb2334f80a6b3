"""Vramscope's caching allocator as PyTorch's own."""

from __future__ import annotations

import atexit
import os
import pickle
from typing import Any, Dict, Optional

from ._memory_functions import MemoryFunctions
from ._native import AllocatorLibrary, find_library

_CONTEXTS = ("none", "state", "alloc", "all")
_in_use: Optional["Allocator"] = None


class Allocator:
    """The allocator that PyTorch uses from now on in this process; PyTorch has no way back.

    ``library`` is the path of the native library; ``raises_out_of_memory_error`` says whether a request that can't be
    met raises ``torch.OutOfMemoryError`` (otherwise ``RuntimeError``, with the same text).
    """

    def __init__(self, native: AllocatorLibrary, functions: MemoryFunctions, torch_allocator: Any) -> None:
        self._native = native
        self._functions = functions
        # PyTorch keeps the functions' addresses, and this keeps the library.
        self._torch_allocator = torch_allocator
        self.library: str = native.path
        self.raises_out_of_memory_error: bool = native.raises_out_of_memory()

    def stats(self, device: int = 0) -> Dict[str, int]:
        """``torch.cuda.memory_stats(device)``: flat names and numbers; zeros before the first allocation."""
        return self._native.stats(device)

    def snapshot(self) -> Dict[str, Any]:
        """The snapshot of all devices, as ``torch.cuda.memory._snapshot()`` gives it."""
        snapshot: Dict[str, Any] = pickle.loads(self._native.snapshot())
        return snapshot

    def dump_snapshot(self, path: str) -> None:
        """Writes the snapshot to a file, as ``torch.cuda.memory._dump_snapshot(path)`` does, without unpacking it."""
        with open(path, "wb") as file:
            file.write(self._native.snapshot())

    def set_settings(self, settings: str) -> None:
        """Changes the allocator's settings, written as in ``PYTORCH_CUDA_ALLOC_CONF``."""
        self._native.set_settings(settings)

    def record_history(self, max_entries: int) -> None:
        """Lets snapshots show the newest ``max_entries`` events of each device; 0 ends that."""
        self._native.set_history(max_entries)

    def stop(self) -> None:
        """Ends the recording, if there is one, and completes its file. The allocator goes on."""
        self._native.stop_recording()


def use_allocator(
    out: Optional[str] = None,
    settings: Optional[str] = None,
    context: str = "all",
    history: int = 0,
    library: Optional[str] = None,
) -> Allocator:
    """Lets PyTorch take all CUDA memory from Vramscope's allocator. To be called before CUDA is used.

    The allocator decides as PyTorch's own of the same release does. ``torch.cuda``'s functions about memory
    (``memory_stats``, ``memory_allocated``, ``memory_summary``, ``memory._snapshot``, ``empty_cache``, ...) go on to
    work and speak of it.

    - ``out``: a file to record to.
    - ``settings``: as in ``PYTORCH_CUDA_ALLOC_CONF``, which is what holds otherwise.
    - ``context``: for which events the Python stack is kept, as in ``torch.cuda.memory._record_memory_history``:
      ``"all"``, ``"alloc"``, ``"state"`` or ``"none"``.
    - ``history``: how many of the newest events snapshots show.
    - ``library``: the native library, if not the one of this package or of ``VRAMSCOPE_LIBRARY``.

    Raises ``RuntimeError`` where CUDA was used before, ``ValueError`` for arguments that are none, ``OSError`` without
    the native library.
    """
    global _in_use
    if context not in _CONTEXTS:
        raise ValueError(f"context is one of {', '.join(map(repr, _CONTEXTS))}, not {context!r}")
    if history < 0:
        raise ValueError(f"history is a number of events, not {history}")
    import torch

    if _in_use is not None:
        raise RuntimeError("this process uses Vramscope's allocator already: use_allocator() is called once")
    if torch.cuda.is_initialized():
        raise RuntimeError(
            "CUDA is in use already, so that PyTorch's allocator can't be changed any more: "
            "call vramscope.use_allocator() before the first tensor on a GPU"
        )
    native = AllocatorLibrary(find_library(library))
    if settings is None:
        # The names in PyTorch's order: the newer goes first.
        names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
        settings = next((os.environ[name] for name in names if os.environ.get(name)), "")
    native.start(str(torch.__version__), settings, context, history, out)
    torch_allocator = torch.cuda.memory.CUDAPluggableAllocator(native.path, "vramscope_malloc", "vramscope_free")
    native.set_hooks(torch_allocator.allocator())
    torch.cuda.memory.change_current_allocator(torch_allocator)
    functions = MemoryFunctions(native)
    functions.replace(torch._C)
    _in_use = Allocator(native, functions, torch_allocator)
    atexit.register(_stop_at_exit)
    return _in_use


def _stop_at_exit() -> None:
    if _in_use is not None:
        _in_use.stop()
