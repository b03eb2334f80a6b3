"""Control over device 0: its memory, and, where it is simulated, its streams. On a GPU, streams lag as they do."""

import ctypes

import torch


class Device:
    """Device 0. `is_simulated` tells whether it is the fake one."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.is_simulated = hasattr(self.library, "fakecuda_set_capacity")
        # What is held on a GPU so that no more than a capacity is free.
        self.ballast = ctypes.c_uint64(0)
        if self.is_simulated:
            self.library.fakecuda_set_capacity.argtypes = (ctypes.c_uint32, ctypes.c_uint64)
            self.library.fakecuda_hold.argtypes = (ctypes.c_size_t, ctypes.c_uint32)

    def set_capacity(self, size):
        """Makes it a device with `size` bytes for PyTorch, of which it may have reserved some. On a GPU, the driver itself is
        asked for the rest, so that it refuses requests as a smaller device would.
        """
        if self.is_simulated:
            self.library.fakecuda_set_capacity(0, size)
            return
        torch.cuda.init()
        free, wanted = torch.cuda.mem_get_info()[0], size - torch.cuda.memory_reserved()
        if free < wanted:
            raise RuntimeError(f"the GPU has {free} bytes free, and {wanted} are wanted")
        status = self.library.cuMemAlloc_v2(ctypes.byref(self.ballast), ctypes.c_size_t(free - wanted))
        if status != 0:
            raise RuntimeError(f"cuMemAlloc returned {status} for {free - wanted} of {free} free bytes")

    def hold(self, stream):
        """Keeps the work of a stream unfinished until `release`, or until something waits for it."""
        if self.is_simulated:
            self.library.fakecuda_hold(stream.cuda_stream, 1)

    def release(self, stream):
        if self.is_simulated:
            self.library.fakecuda_hold(stream.cuda_stream, 0)
