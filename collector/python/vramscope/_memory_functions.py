"""PyTorch's functions about memory that its interface for other allocators leaves out.

All of ``torch.cuda.memory`` stands on a few functions of ``torch._C``, and PyTorch's own code calls some of them
directly. So these are what is replaced, and everything above them stays PyTorch's.
"""

from __future__ import annotations

import pickle
from typing import Any, Callable, Dict, Optional, Tuple

from ._native import AllocatorLibrary

# Entries of a history without a bound, as PyTorch's default is: about 60 MB a device.
_MOST_ENTRIES = 1_000_000


class MemoryFunctions:
    """Stand-ins for functions of ``torch._C``, under their names there without the leading ``_cuda_``."""

    def __init__(self, native: AllocatorLibrary) -> None:
        self._native = native
        self._originals: Dict[str, Callable[..., Any]] = {}

    def replace(self, module: Any) -> None:
        """Replaces those that this release of PyTorch has."""
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
        # Settings are also those of the allocator of the host's memory, which stays PyTorch's.
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
        """The statistics as nested dicts."""
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
        """The snapshot; with a pool's id only its segments. The id may come with ``include_traces`` as a third item."""
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
        max_entries: int = _MOST_ENTRIES, *_: Any, **__: Any,
    ) -> None:
        """Begins or ends the history. Which events have a stack was decided by ``use_allocator(context=...)``."""
        wanted = min(max_entries, _MOST_ENTRIES) if enabled == "all" else 0
        self._native.set_history(wanted)

    def record_memory_history_legacy(
        self, enabled: bool, record_context: bool = True, trace_alloc_max_entries: int = 1,
        trace_alloc_record_context: bool = False, *_: Any, **__: Any,
    ) -> None:
        """The older form."""
        self._native.set_history(min(trace_alloc_max_entries, _MOST_ENTRIES) if enabled else 0)

    def _with_settings(self, original: Callable[[str], Any]) -> Callable[[str], Any]:
        def set_settings(settings: str) -> Any:
            self._native.set_settings(settings)
            return original(settings)

        return set_settings
