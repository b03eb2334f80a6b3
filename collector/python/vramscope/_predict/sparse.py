"""Sparse tensors, whose elements are counted on the device, where no kernel counts them.

Where the indices are large, all of them are taken to be different, which needs the most memory. Imports torch, so it is
imported only after the program has done so.
"""

import math

import torch

from .storages import alias, clear_free_memory, is_small


class Sparse:
    """Runs operations on sparse tensors. Counts in `readbacks` what they would read from the device."""

    def __init__(self, storages, readbacks):
        self._storages, self._readbacks = storages, readbacks

    def handlers(self):
        """Returns what runs an operation, by its name."""
        return {"aten::_coalesce": self._coalesce}

    def _coalesce(self, op, args, kwargs):
        tensor = args[0]
        if tensor.device.type != "cuda" or tensor._nnz() < 2:
            return op.run(*args, **kwargs)
        indices, values = tensor._indices(), tensor._values()
        is_true = self._storages.is_true((indices,))
        self._readbacks.count("coalesce", not is_true)
        # The kernel's own memory; the number that it reads is a zero then.
        clear_free_memory()
        op.run(*args, **kwargs)
        if is_true is None:
            return self._distinct(tensor, min(tensor._nnz(), math.prod(tensor.shape[: tensor.sparse_dim()])))
        return self._counted(tensor, indices, values, is_true)

    def _counted(self, tensor, indices, values, is_true):
        """Returns a coalesced tensor with the values that the CPU finds."""
        are_true = self._storages.is_true((values,))
        given, shape = alias(values), tensor.shape
        if are_true is None:  # Only the indices count.
            given, shape = torch.zeros(tensor._nnz()), shape[: tensor.sparse_dim()]
        found = torch.sparse_coo_tensor(alias(indices), given, shape, check_invariants=False).coalesce()
        result = self._distinct(tensor, found._nnz())
        self._fill(result._indices(), found._indices(), is_true)
        if are_true is not None:
            self._fill(result._values(), found._values(), is_true and are_true)
        return result

    def _fill(self, to, source, is_true):
        if is_small(to) and to.numel():
            alias(to).copy_(source)
            self._storages.settle(to, is_true)

    def _distinct(self, tensor, number):
        """Returns a coalesced tensor of a number of elements, made as the kernel makes it."""
        indices, values = tensor._indices(), tensor._values()
        # The flat indices, their order and where each begins.
        _working = [indices.new_empty(tensor._nnz()) for _ in range(3)]
        values = values.new_empty((number, *values.shape[1:]))
        indices = _working[0].new_empty((tensor.sparse_dim(), number))
        for one in (values, indices):
            if is_small(one):
                self._storages.make_up(one)
        return torch.sparse_coo_tensor(indices, values, tensor.shape, check_invariants=False, is_coalesced=True)
