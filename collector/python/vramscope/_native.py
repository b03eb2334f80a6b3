"""The native library's functions for the allocator."""

from __future__ import annotations

import ctypes
import json
from typing import Any, Dict, Optional

from ._library import LibraryError, other_build

# Setters of `_CUDAPluggableAllocator`, and the functions whose addresses they take.
_HOOKS = {
    "set_init_fn": "vramscope_init",
    "set_reset_fn": "vramscope_reset",
    "set_memory_fraction_fn": "vramscope_memory_fraction",
    "set_base_alloc_fn": "vramscope_base_alloc",
    "set_record_stream_fn": "vramscope_record_stream",
    "set_begin_allocate_to_pool": "vramscope_begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn": "vramscope_end_allocate_to_pool",
    "set_release_pool": "vramscope_release_pool",
}
# Without it, memory that another stream still uses would be allocated again.
_NEEDED_HOOK = "set_record_stream_fn"


class AllocatorLibrary:
    """The functions with Python types. A failure raises `LibraryError` with the library's text."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._library = ctypes.CDLL(path)
        text, size = ctypes.c_char_p, ctypes.c_size_t
        declared: Dict[str, Any] = {
            "vramscope_allocator_start": (ctypes.c_int, [text, text, text, ctypes.c_uint64, text]),
            "vramscope_allocator_set_settings": (ctypes.c_int, [text]),
            "vramscope_allocator_set_history": (ctypes.c_int, [ctypes.c_uint64]),
            "vramscope_allocator_stop_recording": (ctypes.c_int, []),
            "vramscope_allocator_raises_out_of_memory": (ctypes.c_int, []),
            "vramscope_error": (text, []),
            "vramscope_allocator_stats_json": (size, [ctypes.c_int, ctypes.c_void_p, size]),
            "vramscope_allocator_reset_peak": (ctypes.c_int, [ctypes.c_int]),
            "vramscope_allocator_reset_accumulated": (ctypes.c_int, [ctypes.c_int]),
            "vramscope_allocator_fraction": (ctypes.c_double, [ctypes.c_int]),
            "vramscope_allocator_snapshot": (ctypes.c_void_p, [ctypes.POINTER(size)]),
            "vramscope_allocator_snapshot_free": (None, [ctypes.c_void_p, size]),
        }
        for name, (result, arguments) in declared.items():
            try:
                function = getattr(self._library, name)
            except AttributeError:
                raise other_build(path) from None
            function.restype, function.argtypes = result, arguments

    def start(self, torch: str, settings: str, context: str, history: int, config: Optional[Dict[str, Any]]) -> None:
        """Sets up the process's allocators, with a recording if there is a config."""
        texts = [text.encode() for text in (torch, settings, context)]
        text = None if config is None else json.dumps(config).encode()
        self._check(self._library.vramscope_allocator_start(*texts, history, text))

    def set_hooks(self, allocator: Any) -> None:
        """Sets the optional functions that this release of PyTorch knows."""
        if not hasattr(allocator, _NEEDED_HOOK):
            raise LibraryError("this PyTorch is too old for another library's allocator: it has no record_stream hook")
        for setter, name in _HOOKS.items():
            if hasattr(allocator, setter):
                getattr(allocator, setter)(ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value)

    def set_settings(self, settings: str) -> None:
        """Changes the settings of all devices."""
        self._check(self._library.vramscope_allocator_set_settings(settings.encode()))

    def set_history(self, max_entries: int) -> None:
        """Starts a new history; 0 ends it."""
        self._check(self._library.vramscope_allocator_set_history(max_entries))

    def stop_recording(self) -> None:
        """Stops recording events."""
        self._check(self._library.vramscope_allocator_stop_recording())

    def raises_out_of_memory(self) -> bool:
        """Returns whether a failed allocation raises ``torch.OutOfMemoryError``."""
        return bool(self._library.vramscope_allocator_raises_out_of_memory())

    def stats(self, device: int) -> Dict[str, int]:
        """Returns the flat statistics of a device."""
        room = 1 << 14
        while True:
            buffer = ctypes.create_string_buffer(room)
            size = self._library.vramscope_allocator_stats_json(device, buffer, room)
            if size <= room:
                stats: Dict[str, int] = json.loads(buffer.raw[:size] or b"{}")
                return stats
            room = size

    def reset_peak(self, device: int) -> None:
        """Sets peaks to the present values."""
        self._check(self._library.vramscope_allocator_reset_peak(device))

    def reset_accumulated(self, device: int) -> None:
        """Resets sums to zero."""
        self._check(self._library.vramscope_allocator_reset_accumulated(device))

    def fraction(self, device: int) -> float:
        """Returns the fraction of a device's memory that this process may use."""
        return float(self._library.vramscope_allocator_fraction(device))

    def snapshot(self) -> bytes:
        """Returns a pickled snapshot."""
        size = ctypes.c_size_t()
        snapshot = self._library.vramscope_allocator_snapshot(ctypes.byref(size))
        if not snapshot:
            self._check(-1)
        try:
            return ctypes.string_at(snapshot, size.value)
        finally:
            self._library.vramscope_allocator_snapshot_free(snapshot, size)

    def _check(self, outcome: int) -> None:
        if outcome != 0:
            raise LibraryError((self._library.vramscope_error() or b"unknown").decode(errors="replace"))
