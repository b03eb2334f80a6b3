"""The simulated device's controls. On a GPU there are none: streams lag as they do, and the memory is what it is."""

import ctypes


class Device:
    """Device 0. `is_simulated` tells whether it can be controlled."""

    def __init__(self):
        library = ctypes.CDLL("libcuda.so.1")
        self.is_simulated = hasattr(library, "fakecuda_set_capacity")
        if self.is_simulated:
            self.library = library
            library.fakecuda_set_capacity.argtypes = (ctypes.c_uint32, ctypes.c_uint64)
            library.fakecuda_hold.argtypes = (ctypes.c_size_t, ctypes.c_uint32)

    def set_capacity(self, size):
        """Makes it a device of `size` bytes."""
        if not self.is_simulated:
            raise RuntimeError("the memory of a GPU can't be limited")
        self.library.fakecuda_set_capacity(0, size)

    def hold(self, stream):
        """Keeps the work of a stream unfinished until `release`, or until something waits for it."""
        if self.is_simulated:
            self.library.fakecuda_hold(stream.cuda_stream, 1)

    def release(self, stream):
        if self.is_simulated:
            self.library.fakecuda_hold(stream.cuda_stream, 0)
