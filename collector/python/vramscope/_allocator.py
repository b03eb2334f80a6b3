"""Vramscope's caching allocator as PyTorch's own."""

from __future__ import annotations

import os
import pickle
from typing import Any, Dict, Optional

from . import _agent, _config, _delivery, _file, _library, _log, _torch
from ._memory_functions import MemoryFunctions
from ._native import AllocatorLibrary

_CONTEXTS = ("none", "state", "alloc", "all")
_MODE = "every event, by Vramscope's allocator"
_in_use: Optional["Allocator"] = None


class Allocator:
    """The allocator that PyTorch uses from now on in this process; PyTorch has no way back.

    ``raises_out_of_memory_error`` says whether a request that can't be met raises ``torch.OutOfMemoryError`` (otherwise
    ``RuntimeError``, with the same text), ``reason`` what did not arrive at the server. What ``vramscope.mark``, ``span`` and ``step`` say goes to its recording.
    """

    def __init__(self, native: AllocatorLibrary, library: Any, config: Optional[Dict[str, Any]], seconds: float) -> None:
        self._native, self._library, self._end_seconds = native, library, seconds
        self._functions = MemoryFunctions(native)
        self._pid = os.getpid()
        self.is_inherited = False
        self._config = config
        self.state = "running" if config is not None else "detached"
        self.result: Optional[Dict[str, Any]] = None
        self.reason: Optional[str] = None
        self._delivery: Any = None
        self._claim: Optional[_file.Claim] = None
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

    @property
    def session(self) -> str:
        """The recording's name at the server; empty before CUDA is used, and without a server."""
        session: str = self._library.session()
        return session

    def mark(self, name: str, stage: int = 2) -> None:
        """Marks this moment on every device's line of time, once CUDA is used."""
        import torch

        if self.state == "running" and self._pid == os.getpid() and torch.cuda.is_initialized():
            for device in range(torch.cuda.device_count()):
                self._library.mark(device, str(name), stage)

    def flush(self, seconds: float = _agent.OOM_SECONDS) -> bool:
        """Waits until all that happened is written or sent; whether it is."""
        return self.state == "running" and bool(self._library.flush(seconds * 1000))

    def detach(self) -> Optional[Dict[str, Any]]:
        """Ends the recording, if there is one, and gives what it came to, where that is known. The allocator goes on."""
        if self.state != "running" or self._pid != os.getpid():
            return self.result
        self.state = "detached"
        is_begun = bool(self._library.stats())
        _agent.forget(self)
        try:
            self._native.stop_recording()
        finally:
            self.result = self._library.finish(self._end_seconds * 1000)
            self._release()
        if self.result is not None and self.result.get("failure"):
            _log.log(f"The recording is incomplete: {self.result['failure']}")
        # Before CUDA was used nothing was recorded, and nothing is missing.
        if self._delivery is not None and is_begun:
            self.reason = self._delivery.end(self.result) or self.reason
        return self.result

    def waits_in_child(self) -> bool:
        """Called in a child of a fork: it is not recorded."""
        return False

    def _claim_file(self, recording: Dict[str, Any]) -> None:
        if recording.get("out") is not None:
            self._claim = _file.Claim(recording["out"])
            recording["out"] = self._claim.path

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.release()

    def _look_after(self, recording: Dict[str, Any]) -> None:
        self._delivery = _delivery.Delivery(
            self._library, recording["to"], recording.get("out"), _log.log, self._refused
        )
        self._delivery.start(_MODE)

    def _refused(self, why: str) -> None:
        self.reason = why

    def __enter__(self) -> "Allocator":
        return self

    def __exit__(self, *_: Any) -> None:
        self.detach()

    def __repr__(self) -> str:
        return f"<vramscope.Allocator, {'recording' if self.state == 'running' else 'not recording'}>"


def use_allocator(
    to: Optional[str] = None,
    out: Optional[str] = None,
    settings: Optional[str] = None,
    context: str = "all",
    history: int = 0,
    **options: Any,
) -> Allocator:
    """Lets PyTorch take all CUDA memory from Vramscope's allocator. To be called before CUDA is used.

    The allocator decides as PyTorch's own of the same release does. ``torch.cuda``'s functions about memory
    (``memory_stats``, ``memory_allocated``, ``memory_summary``, ``memory._snapshot``, ``empty_cache``, ...) go on to
    work and speak of it. ``torch.cuda.MemPool`` raises, as it does with any allocator that is not PyTorch's own.

    - ``to``, ``out``: a server to send every event to and a file to write it to; either, both or none.
    - ``settings``: as in ``PYTORCH_CUDA_ALLOC_CONF``, which is what holds otherwise.
    - ``context``: for which events the Python stack is kept, as in ``torch.cuda.memory._record_memory_history``:
      ``"all"``, ``"alloc"``, ``"state"`` or ``"none"``. A free by a thread that runs no Python has the stack of its
      allocation.
    - ``history``: how many of the newest events snapshots show.
    - Further ``name``, ``job``, ``token`` and ``library``, as for `attach`.

    Raises ``RuntimeError`` where CUDA was used before, this process is recorded already, settings are none or the native
    library is missing, and ``ValueError`` for other arguments that can't be.
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
    is_recorded = to is not None or out is not None
    # Where nothing is recorded, a file's name stands in: it is only checked.
    config = _config.Config(to=to, out=out if is_recorded else os.devnull, **options)
    library = _library.Library(_library.find(config.library))
    if config.to is not None:
        config.to = library.address(config.to)
    native = AllocatorLibrary(library.path)
    if settings is None:
        # The names in PyTorch's order: the newer goes first.
        names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
        settings = next((os.environ[name] for name in names if os.environ.get(name)), "")
    recording = {**_torch.recording(config), "mode": _MODE} if is_recorded else None
    allocator = Allocator(native, library, recording, config.end_seconds)
    if is_recorded:
        _agent.enter(allocator)
    try:
        if recording is not None:
            allocator._claim_file(recording)
        native.start(str(torch.__version__), settings, context, history, recording)
        torch_allocator = torch.cuda.memory.CUDAPluggableAllocator(native.path, "vramscope_malloc", "vramscope_free")
        native.set_hooks(torch_allocator.allocator())
        torch.cuda.memory.change_current_allocator(torch_allocator)
    except BaseException:
        _agent.forget(allocator)
        allocator._release()
        raise
    # PyTorch keeps the functions' addresses; the library is never unloaded.
    allocator._functions.replace(torch._C)
    _in_use = allocator
    if recording is not None:
        allocator._look_after(recording)
    return allocator
