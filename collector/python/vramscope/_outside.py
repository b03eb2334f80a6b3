"""Samples of the memory beside the allocator: the process on the host, and what else uses each device.

Nothing here calls CUDA, which might not be allowed at the moment, for example while a graph is captured: the device's users
are asked of NVML, a part of the NVIDIA driver.
"""

from __future__ import annotations

import ctypes
import os
import time

SECONDS = 1.0
_UNKNOWN = -1
_NOT_AVAILABLE = (1 << 64) - 1


class Outside:
    """Reads and records the memory beside the allocator of every device, at most once a second."""

    def __init__(self, torch, library, numbers):
        self._torch, self._library = torch, library
        self._uuids = {number: _uuid(torch, number) for number in numbers}
        self._nvml = Nvml.load()
        self._next = 0.0

    def sample(self, reserved):
        """Records a sample of each device, of which the allocator has so many bytes."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + SECONDS
        here = resident(), pinned(self._torch)
        for device, bytes_reserved in reserved.items():
            used, others = self._nvml.memory(self._uuids[device]) if self._nvml else (None, None)
            outside = None if used is None else max(0, used - bytes_reserved)
            values = (_UNKNOWN if value is None else value for value in (*here, outside, others))
            self._library.outside(device, 0, *values)


def resident():
    """Returns the bytes of this process in the host's memory, or None."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def pinned(torch):
    """Returns the bytes of pinned host memory that PyTorch holds, or None if this release does not tell."""
    stats = getattr(torch.cuda, "host_memory_stats", None)
    try:
        return stats().get("allocated_bytes.current", 0) if stats is not None else None
    except Exception:  # It fails with other allocators.
        return None


def _uuid(torch, number):
    uuid = getattr(torch.cuda.get_device_properties(number), "uuid", None)
    return None if uuid is None else str(uuid)


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("total", "free", "used")]


class _Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_uint64), ("instance", ctypes.c_uint), ("part", ctypes.c_uint)]


class Nvml:
    """NVML's library."""

    PROCESSES = 1024

    def __init__(self, library, pid):
        self._library, self._pid = library, pid
        self._handles = {}

    @classmethod
    def load(cls):
        """Returns the library, or None without one."""
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
            return cls(library, os.getpid()) if library.nvmlInit_v2() == 0 else None
        except (OSError, AttributeError):
            return None

    def memory(self, uuid):
        """Returns the bytes of a device that are in use by anybody, and those of other processes; None for what is unknown."""
        try:
            handle = self._handle(uuid)
            memory = _Memory()
            if handle is None or self._library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) != 0:
                return None, None
            return memory.total - memory.free, self._others(handle)
        except AttributeError:  # A function is missing.
            return None, None

    def _handle(self, uuid):
        if uuid is None:
            return None
        if uuid not in self._handles:
            handle = ctypes.c_void_p()
            names = (f"{kind}-{uuid}".encode() for kind in ("GPU", "MIG"))
            found = any(self._library.nvmlDeviceGetHandleByUUID(name, ctypes.byref(handle)) == 0 for name in names)
            self._handles[uuid] = handle if found else None
        return self._handles[uuid]

    def _others(self, handle):
        found = {}
        for kind in ("Compute", "Graphics"):
            processes, count = (_Process * self.PROCESSES)(), ctypes.c_uint(self.PROCESSES)
            list_them = getattr(self._library, f"nvmlDeviceGet{kind}RunningProcesses_v3")
            if list_them(handle, ctypes.byref(count), processes) == 0:
                found.update((process.pid, process.used) for process in processes[: count.value])
            elif kind == "Compute":
                return None  # Cards that only compute refuse the second list.
        # In a container the numbers may be those of the host, so that this process cannot be told from others.
        if found.pop(self._pid, None) is None or _NOT_AVAILABLE in found.values():
            return None
        return sum(found.values())
