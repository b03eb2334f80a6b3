"""PyTorch's functions about memory that its interface for other allocators does not cover.

All of ``torch.cuda.memory`` calls a few functions of ``torch._C``, and PyTorch's own code calls some of them directly.
Only those functions are replaced; everything above them stays PyTorch's.
"""

from __future__ import annotations

import pickle
from typing import Any, Callable, Dict, Optional, Tuple

from ._native import AllocatorLibrary

# The most entries of a history, because PyTorch's default is unbounded: roughly 60 MB for each device.
_MAX_ENTRIES = 1_000_000


class MemoryFunctions:
    """Replacements of functions of ``torch._C``, named as there without the leading ``_cuda_``."""

    def __init__(self, native: AllocatorLibrary) -> None:
        self._native = native
        self._originals: Dict[str, Callable[..., Any]] = {}

    def replace(self, module: Any) -> None:
        """Replaces the functions that this release of PyTorch has."""
        stand_ins: Dict[str, Callable[..., Any]] = {
            "_cuda_memoryStats": self.memory_stats,
            "_cuda_resetPeakMemoryStats": self._native.reset_peak,
            "_cuda_resetAccumulatedMemoryStats": self._native.reset_accumulated,
            "_cuda_memorySnapshot": self.memory_snapshot,
            "_cuda_getMemoryFraction": self._native.fraction,
            "_cuda_record_memory_history": self.record_memory_history,
            "_cuda_record_memory_history_legacy": self.record_memory_history_legacy,
            "_accelerator_getDeviceStats": self.memory_stats,
            "_accelerator_resetPeakStats": self._native.reset_peak,
            "_accelerator_resetAccumulatedStats": self._native.reset_accumulated,
        }
        # These settings also apply to PyTorch's allocator of host memory, so the original is called too.
        for name in ("_accelerator_setAllocatorSettings", "_cuda_cudaCachingAllocator_set_allocator_settings"):
            original = getattr(module, name, None)
            if original is not None:
                stand_ins[name] = self._with_settings(original)
        for name, stand_in in stand_ins.items():
            original = getattr(module, name, None)
            if original is not None:
                self._originals[name] = original
                setattr(module, name, stand_in)

    def memory_stats(self, device: int) -> Dict[str, Any]:
        """Returns the statistics as nested dicts."""
        flat = self._native.stats(device)
        nested: Dict[str, Any] = {}
        for name, value in flat.items():
            *path, last = name.split(".")
            place = nested
            for part in path:
                place = place.setdefault(part, {})
            place[last] = value
        if "num_oom_rejections" in flat:
            nested.setdefault("reserved_bytes_by_private_pools", {})
        return nested

    def memory_snapshot(self, pool: Optional[Tuple[Any, ...]] = None, include_traces: bool = True) -> Dict[str, Any]:
        """Returns a snapshot, or only a pool's segments. The pool's id may have ``include_traces`` as a third item."""
        snapshot: Dict[str, Any] = pickle.loads(self._native.snapshot())
        if pool is not None:
            wanted, rest = tuple(pool[:2]), pool[2:]
            include_traces = bool(rest[0]) if rest else include_traces
            if wanted != (0, 0):
                snapshot["segments"] = [one for one in snapshot["segments"] if one["segment_pool_id"] == wanted]
        if not include_traces:
            snapshot["device_traces"] = []
        return snapshot

    def record_memory_history(
        self, enabled: Optional[str] = None, context: Optional[str] = None, stacks: str = "python",
        max_entries: int = _MAX_ENTRIES, *_: Any, **__: Any,
    ) -> None:
        """Starts or ends the history. ``use_allocator(context=...)`` decides which events have a stack."""
        wanted = min(max_entries, _MAX_ENTRIES) if enabled == "all" else 0
        self._native.set_history(wanted)

    def record_memory_history_legacy(
        self, enabled: bool, record_context: bool = True, trace_alloc_max_entries: int = 1,
        trace_alloc_record_context: bool = False, *_: Any, **__: Any,
    ) -> None:
        """Starts or ends the history, with the arguments of older releases."""
        self._native.set_history(min(trace_alloc_max_entries, _MAX_ENTRIES) if enabled else 0)

    def _with_settings(self, original: Callable[[str], Any]) -> Callable[[str], Any]:
        def set_settings(settings: str) -> Any:
            self._native.set_settings(settings)
            return original(settings)

        return set_settings
