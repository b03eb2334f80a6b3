"""What is known of storages: which small CUDA ones hold true values, and which large CPU ones were never written.

On the driver without a GPU, device memory is host memory, so the bytes of a CUDA tensor can be read and written from here
(`alias`). Imports torch, so it is imported only after the program has done so.
"""

import ctypes

import torch
from torch.multiprocessing.reductions import StorageWeakRef

SMALL = 64 << 10
"""The largest storage, in bytes, whose values are kept; the driver ignores larger writes."""

WHOLE = 2 << 20
"""The same for flags and whole numbers other than bytes: masks, positions and tokens decide what a program does."""

MOST = dict.fromkeys((torch.bool, torch.int16, torch.int32, torch.int64), WHOLE)
"""By type; for others it is `SMALL`."""

BLANK = 1 << 20
"""The most bytes of a CPU tensor that is always written."""

Tensor = torch.Tensor


class Storages:
    """Remembers of each small CUDA storage whether its bytes are true, and which CPU storages are blank."""

    def __init__(self):
        self._known = {}  # Storage: [its weak reference, whether its bytes are true, their number].
        self._most_known = LEAST_KNOWN
        self._blank = {}  # Storage on the CPU that was not written: [its weak reference].
        self._most_blank = LEAST_BLANK

    def state(self, tensor):
        """Returns [weak reference, is true, bytes] of a small CUDA tensor's storage, or None if the tensor is not small, or larger than
        `SMALL` and not true: then its values are not there."""
        state = self.written_state(tensor)
        return state if state is None or state[1] or state[2] <= SMALL else None

    def written_state(self, tensor):
        """Returns the same, also where the values are not there, but will be written."""
        if tensor.layout is not torch.strided or tensor.nbytes > most(tensor):
            return None
        storage = tensor.untyped_storage()
        state = self._known.get(storage._cdata)
        if state is None:
            size = storage.nbytes()
            if size > most(tensor):
                return None
            # It was made out of sight, for example by compiled code: what its memory held before is no value.
            if size <= SMALL:
                _clear(storage)
            state = self._remember(storage, False)
        return state

    def _remember(self, storage, is_true):
        if len(self._known) >= self._most_known:
            self._most_known = without_freed(self._known, LEAST_KNOWN)
        # As long as the weak reference exists, no other storage has this address.
        state = self._known[storage._cdata] = [StorageWeakRef(storage), is_true, storage.nbytes()]
        return state

    def clear(self, tensor):
        """Gives a new small CUDA tensor zeros, which are true."""
        _clear(tensor.untyped_storage())
        self.settle(tensor, True)

    def settle(self, tensor, is_true):
        """Takes the bytes of a small new CUDA tensor as they are."""
        storage = tensor.untyped_storage()
        state = self._known.get(storage._cdata)
        if state is None:
            self._remember(storage, is_true)
        else:
            state[1] = is_true

    def settle_written(self, tensor, is_true):
        """Something was written into a storage: it is true if that is, and it was before or is written as a whole."""
        storage = tensor.untyped_storage()
        state = self._known.get(storage._cdata)
        if state is not None:
            state[1] = is_true and (state[1] or tensor.nbytes >= storage.nbytes())

    def make_up(self, tensor, byte=0):
        """Gives a new small CUDA tensor a made-up value, unless it is a view of another tensor."""
        storage = tensor.untyped_storage()
        state = self._known.get(storage._cdata)
        if state is not None:
            state[1] = False
            return
        size = storage.nbytes()
        if size <= most(tensor):
            self._remember(storage, False)
            if size <= SMALL:
                _clear(storage)
                if byte:
                    alias(tensor).fill_(byte)

    def is_true(self, tensors):
        """Returns whether the values of CUDA tensors are true (True), made up but there (False), or not there (None)."""
        result = True
        for tensor in tensors:
            state = self.state(tensor)
            if state is None:
                return None
            result = result and state[1]
        return result

    def launched(self, arguments):
        """A kernel was launched past PyTorch's operations: what it may have written is made up."""
        for one in arguments:
            if is_small(one):
                state = self.state(one)
                if state is not None:
                    state[1] = False

    def is_blank(self, tensor):
        """Returns whether a tensor is on the CPU and its storage was not written."""
        if not self._blank or tensor.layout is not torch.strided or tensor.nbytes <= BLANK or tensor.device.type != "cpu":
            return False
        return tensor.untyped_storage()._cdata in self._blank

    def set_blank(self, tensor):
        """A large new CPU tensor stays unwritten. Returns it."""
        if len(self._blank) >= self._most_blank:
            self._most_blank = without_freed(self._blank, LEAST_BLANK)
        storage = tensor.untyped_storage()
        self._blank[storage._cdata] = [StorageWeakRef(storage)]
        return tensor


def _clear(storage):
    if storage.nbytes():
        ctypes.memset(storage.data_ptr(), 0, storage.nbytes())


LEAST_KNOWN, LEAST_BLANK = 1 << 14, 1 << 10
"""How many storages are remembered before those that are gone are looked for."""


def without_freed(found, least):
    """Forgets storages that are gone; returns how many there may be before the next time."""
    for key, (reference, *_) in list(found.items()):  # Other threads may add some meanwhile.
        if reference.expired():
            found.pop(key, None)
    return max(least, 2 * len(found))


def alias(tensor):
    """Returns a CPU tensor with the bytes of a CUDA tensor."""
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    if not size:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
    kind = _byte_arrays.get(size)
    if kind is None:
        kind = _byte_arrays[size] = ctypes.c_char * size
    # Not a tensor of a storage: making one takes another operation, and its time.
    bytes_ = torch.frombuffer(kind.from_address(storage.data_ptr()), dtype=tensor.dtype, count=size // tensor.itemsize)
    bytes_ = bytes_.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    if tensor.is_neg():
        bytes_ = torch._neg_view(bytes_)
    return bytes_.conj() if tensor.is_conj() else bytes_


_byte_arrays = {}


def write(out, source):
    """Writes the values of a CPU tensor into a CUDA tensor of the same shape."""
    dtype = out.dtype
    if dtype is source.dtype and not dtype.is_complex and source.is_contiguous() and out.is_contiguous() and out.numel():
        ctypes.memmove(out.data_ptr(), source.data_ptr(), out.nbytes)
    else:
        alias(out).copy_(source)


def clear_free_memory():
    """Writes zeros to PyTorch's small free blocks, which is what new memory has."""
    for segment in torch.cuda.memory_snapshot():
        if segment["segment_type"] == "small":
            address = segment["address"]
            for block in segment["blocks"]:
                if block["state"] == "inactive":
                    ctypes.memset(address, 0, block["size"])
                address += block["size"]


def most(tensor):
    """Returns how many bytes a small tensor of this type has at most."""
    return MOST.get(tensor.dtype, SMALL)


def is_small(one):
    """Returns whether something is a small CUDA tensor; its storage may be larger."""
    return isinstance(one, Tensor) and one.is_cuda and one.layout is torch.strided and one.nbytes <= most(one)


def has_small(outs):
    """Returns whether a small CUDA tensor is among results, or in the lists among them."""
    for one in outs:
        if isinstance(one, Tensor):
            if one.layout is torch.strided and one.nbytes <= most(one) and one.is_cuda:
                return True
        elif isinstance(one, (list, tuple)) and has_small(one):
            return True
    return False


def cuda_device(args):
    """Returns the device of the first CUDA tensor among arguments, or None."""
    for one in args:
        if isinstance(one, Tensor):
            if one.is_cuda:
                return one.device
        elif isinstance(one, (list, tuple)):
            device = cuda_device(one)
            if device is not None:
                return device
    return None
