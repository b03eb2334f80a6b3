"""Vramscope's caching allocator in place of PyTorch's."""

from __future__ import annotations

import os
import pickle
from typing import Any, Dict, Optional

from . import _agent, _config, _delivery, _file, _library, _log, _ring, _torch
from ._memory_functions import MemoryFunctions
from ._native import AllocatorLibrary

_CONTEXTS = ("none", "state", "alloc", "all")
_MODE = "every event, by Vramscope's allocator"
_in_use: Optional["Allocator"] = None


class Allocator:
    """The allocator that PyTorch uses in this process. PyTorch cannot change it back.

    ``raises_out_of_memory_error`` is true if a failed allocation raises ``torch.OutOfMemoryError``; otherwise it raises
    ``RuntimeError`` with the same text. ``reason`` says what was not delivered to the server. ``vramscope.mark``, ``span``
    and ``step`` write to its recording.
    """

    def __init__(self, native: AllocatorLibrary, library: Any, config: Optional[Dict[str, Any]], seconds: float) -> None:
        self._native, self._library, self._end_seconds = native, library, seconds
        self._functions = MemoryFunctions(native)
        self._pid = os.getpid()
        self.is_inherited = False
        self.config: Optional[_config.Config] = None
        self.state = "running" if config is not None else "detached"
        self.result: Optional[Dict[str, Any]] = None
        self.reason: Optional[str] = None
        self._delivery: Any = None
        self._claim: Optional[_file.Claim] = None
        self.library: str = native.path
        self.raises_out_of_memory_error: bool = native.raises_out_of_memory()

    def stats(self, device: int = 0) -> Dict[str, int]:
        """Returns ``torch.cuda.memory_stats(device)``: flat names and numbers, zeros before the first allocation."""
        return self._native.stats(device)

    def snapshot(self) -> Dict[str, Any]:
        """Returns a snapshot of all devices, as ``torch.cuda.memory._snapshot()`` does."""
        snapshot: Dict[str, Any] = pickle.loads(self._native.snapshot())
        return snapshot

    def dump_snapshot(self, path: str) -> None:
        """Writes a snapshot to a file, as ``torch.cuda.memory._dump_snapshot(path)`` does."""
        snapshot = self._native.snapshot()
        _ring.replace(os.fspath(path), lambda file: file.write(snapshot))

    def set_settings(self, settings: str) -> None:
        """Changes the allocator's settings, written as in ``PYTORCH_CUDA_ALLOC_CONF``."""
        self._native.set_settings(settings)

    def record_history(self, max_entries: int) -> None:
        """Keeps the newest ``max_entries`` events of each device for snapshots; 0 ends that."""
        self._native.set_history(max_entries)

    @property
    def session(self) -> str:
        """The session's name at the server; empty before CUDA is used, and without a server."""
        session: str = self._library.session()
        return session

    def mark(self, name: str, stage: int = 2) -> None:
        """Marks this moment on every device's timeline, once CUDA is used."""
        import torch

        if self.state == "running" and self._pid == os.getpid() and torch.cuda.is_initialized():
            for device in range(torch.cuda.device_count()):
                self._library.mark(device, str(name), stage)

    def flush(self, seconds: float = _agent.OOM_SECONDS) -> bool:
        """Waits until everything so far is written or sent. Returns whether it is."""
        return self.state == "running" and bool(self._library.flush(seconds * 1000))

    def detach(self) -> Optional[Dict[str, Any]]:
        """Ends the recording, if there is one. Returns its counts, or None if they are unknown. The allocator stays in use."""
        if self.state != "running" or self._pid != os.getpid():
            return self.result
        self.state = "detached"
        has_begun = bool(self._library.stats())
        _agent.forget(self)
        try:
            self._native.stop_recording()
        finally:
            self.result = self._library.finish(self._end_seconds * 1000)
            self._release()
        if self.result is not None and self.result.get("failure"):
            _log.log(f"The recording is incomplete: {self.result['failure']}")
        # Before CUDA is used nothing is recorded, so nothing is missing.
        if self._delivery is not None and has_begun:
            self.reason = self._delivery.end(self.result) or self.reason
        return self.result

    def waits_in_child(self) -> bool:
        """Called in the child of a fork. Returns false: the child is not recorded."""
        return False

    def _claim_file(self, recording: Dict[str, Any]) -> None:
        if recording.get("out") is not None:
            self._claim = _file.Claim(recording["out"])
            recording["out"] = self._claim.path

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.release()

    def _watch_delivery(self, recording: Dict[str, Any]) -> None:
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
    """Makes PyTorch allocate all CUDA memory with Vramscope's allocator. Call it before CUDA is used.

    The allocator makes the same decisions as PyTorch's own of the same release. ``torch.cuda``'s functions about memory
    (``memory_stats``, ``memory_allocated``, ``memory_summary``, ``memory._snapshot``, ``empty_cache``, ...) work as before
    and report on it. ``torch.cuda.MemPool`` raises an error, as it does with every allocator but PyTorch's own.

    - ``to``, ``out``: a server to send every event to, and a file to write it to. Both are optional.
    - ``settings``: as in ``PYTORCH_CUDA_ALLOC_CONF``, which is the default.
    - ``context``: for which events the Python stack is kept, as in ``torch.cuda.memory._record_memory_history``:
      ``"all"``, ``"alloc"``, ``"state"`` or ``"none"``. A free by a thread without Python frames has the stack of its
      allocation.
    - ``history``: how many of the newest events snapshots show.
    - ``name``, ``job``, ``token``, ``ca_file`` and ``library``: as for `attach`.

    Raises ``RuntimeError`` if CUDA was used before, this process is already recorded, the settings are invalid, or the
    native library is missing; and ``ValueError`` for other invalid arguments.
    """
    global _in_use
    if context not in _CONTEXTS:
        raise ValueError(f"context must be one of {', '.join(map(repr, _CONTEXTS))}, not {context!r}")
    if history < 0:
        raise ValueError(f"history must be a number of events, not {history}")
    import torch

    if _in_use is not None:
        raise RuntimeError("this process already uses Vramscope's allocator: call use_allocator() only once")
    if torch.cuda.is_initialized():
        raise RuntimeError(
            "CUDA is already in use, so PyTorch's allocator cannot be changed: "
            "call vramscope.use_allocator() before creating the first tensor on a GPU"
        )
    is_recorded = to is not None or out is not None
    # Without a recording, a file name is passed only to check the other options.
    config = _config.of("use_allocator", to=to, out=out if is_recorded else os.devnull, **options)
    library = _library.Library(_library.find(config.library))
    if config.to is not None:
        config.to = library.address(config.to)
    native = AllocatorLibrary(library.path)
    if settings is None:
        # In PyTorch's order: the newer name takes precedence.
        names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
        settings = next((os.environ[name] for name in names if os.environ.get(name)), "")
    recording = {**_torch.recording(config), "mode": _MODE} if is_recorded else None
    allocator = Allocator(native, library, recording, config.end_seconds)
    if is_recorded:
        allocator.config = config
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
    # PyTorch keeps the functions' addresses, so the library is never unloaded.
    allocator._functions.replace(torch._C)
    _in_use = allocator
    if recording is not None:
        allocator._watch_delivery(recording)
    return allocator
