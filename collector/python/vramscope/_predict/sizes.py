"""Operations whose result's size depends on values: what a mask selects, what is not zero, what is unique.

They do not run on the device, where they would read a count that no kernel wrote. On small tensors their CPU kernel decides.
On others, the answer is the one that allocates most: every element is selected, and all are different. For masks of which
`choices` knows more, it is their share; for the rest, ``VRAMSCOPE_PREDICT_SELECTED`` is another share, from 0 to 1. A value that
is given for the line is the share in any case.
Imports torch, so it is imported only after the program has done so.
"""

import math
import os
import re

import torch

from .computing import on_cpu
from .storages import alias, cuda_device, is_small, most

INDEX = re.compile(r"aten::(_unsafe_)?index(_put|_put_|_put_impl_)?$|aten::_index_put_impl_$")
MASKS = (torch.bool, torch.uint8)

Tensor = torch.Tensor


class Sizes:
    """Runs operations whose result's size depends on values. Counts in `readbacks` what they would read from the device."""

    def __init__(self, storages, computing, choices, readbacks):
        self._storages, self._computing, self._choices, self._readbacks = storages, computing, choices, readbacks
        self._share = _share(os.environ.get("VRAMSCOPE_PREDICT_SELECTED"))
        self._by_name = {
            "aten::nonzero": self._nonzero,
            "aten::masked_select": self._masked_select,
            "aten::masked_scatter_backward": self._masked_scatter_backward,
            "aten::_unique": self._unique,
            "aten::_unique2": self._unique,
            "aten::unique_consecutive": self._unique,
            "aten::unique_dim": self._unique_dim,
            "aten::unique_dim_consecutive": self._unique_dim,
            "aten::repeat_interleave": self._repeat_interleave,
            "aten::bincount": self._bincount,
        }

    def handler(self, op):
        """Returns what runs an operation, or None if the size of its result does not depend on values."""
        if op.name in self._by_name:
            return self._by_name[op.name]
        if INDEX.match(op.name):
            return self._index
        if torch.Tag.dynamic_output_shape in op.tags or torch.Tag.data_dependent_output in op.tags:
            return self._decided_by_values
        return None

    def _decided_by_values(self, op, args, kwargs):
        result = self._answer(op, args, kwargs)
        return self._computing.fresh(op, args, kwargs) if result is None else result

    def _answer(self, op, args, kwargs):
        """Returns what the CPU kernel says, in CUDA tensors; None if the inputs are large or the kernel is missing."""
        if cuda_device(args) is None:
            return op.run(*args, **kwargs)
        found = []
        on_cpu([*args, *kwargs.values()], found)
        is_true = self._storages.is_true(found)
        result = None if is_true is None else self._computing.moved(op, args, kwargs)
        self._readbacks.count(op.name.partition("::")[2].strip("_"), result is None or not is_true)
        return result

    def _some(self, size, like, dtype=torch.int64, byte=0):
        """Returns a CUDA tensor with made-up values."""
        out = torch.empty(size, dtype=dtype, device=like.device)
        if out.nbytes <= most(out):
            self._storages.make_up(out, byte)
        return out

    def _count(self, mask, number):
        """Returns how many of a number of elements a mask selects."""
        given = self._readbacks.given()
        if given is not None:
            return round(number * min(max(given, 0.0), 1.0))
        share = self._choices.share(mask)
        return math.ceil(number * self._share) if share is None else round(number * share)

    def _nonzero(self, op, args, kwargs):
        result = self._answer(op, args, kwargs)
        if result is None:
            # In columns, like the kernel's.
            result = self._some((args[0].dim(), self._count(args[0], args[0].numel())), args[0]).t()
        return result

    def _masked_select(self, op, args, kwargs):
        result = self._answer(op, args, kwargs)
        if result is None:
            shape = torch.broadcast_shapes(args[0].shape, args[1].shape)
            if is_small(args[1]) and self._storages.is_true((args[1],)) is not None:
                number = int(alias(args[1]).expand(shape).sum())
            else:
                number = self._count(args[1], math.prod(shape))
            result = self._some((number,), args[0], args[0].dtype)
        return result

    def _masked_scatter_backward(self, op, args, kwargs):
        """There is a gradient for each value that was scattered, however many of them the mask selected."""
        result = self._answer(op, args, kwargs)
        return self._some(args[2], args[0], args[0].dtype) if result is None else result

    def _unique(self, op, args, kwargs):
        result = self._answer(op, args, kwargs)
        if result is None:
            given, tensor = op.named(args, kwargs), args[0]
            number = tensor.shape[given["dim"]] if given.get("dim") is not None else tensor.numel()
            values = tensor.shape if given.get("dim") is not None else (number,)
            result = self._distinct(tensor, values, number, tensor.shape, given)[: len(op.returns)]
        return result

    def _unique_dim(self, op, args, kwargs):
        result = self._answer(op, args, kwargs)
        if result is None:
            given, tensor = op.named(args, kwargs), args[0]
            number = tensor.shape[given["dim"]]
            result = self._distinct(tensor, tensor.shape, number, (number,), given)
        return result

    def _distinct(self, tensor, values, number, inverse, given):
        return (
            self._some(values, tensor, tensor.dtype),
            self._some(inverse if given.get("return_inverse") else (0,), tensor),
            self._some((number,) if given.get("return_counts") else (0,), tensor, byte=1),
        )

    def _repeat_interleave(self, op, args, kwargs):
        """Made-up numbers of repetitions are one each."""
        given = op.named(args, kwargs)
        repeats = given["repeats"]
        if not isinstance(repeats, Tensor) or not repeats.is_cuda:
            return op.run(*args, **kwargs)
        result = self._answer(op, args, kwargs)
        if result is None:
            number = given.get("output_size")
            result = self._some(repeats.shape if number is None else (number,), repeats)
        return result

    def _bincount(self, op, args, kwargs):
        """Made-up numbers are in the bins that the program asks for at least."""
        result = self._answer(op, args, kwargs)
        if result is None:
            given = op.named(args, kwargs)
            dtype = torch.int64 if given.get("weights") is None else given["weights"].dtype
            result = self._some((max(given.get("minlength") or 0, 1),), args[0], dtype)
        return result

    def _index(self, op, args, kwargs):
        """Masks become the indices that they select, of which the device would have had to tell the number."""
        tensor, indices = args[0], args[1]
        is_put = "put" in op.name
        if tensor.is_cuda and any(i is not None and i.dtype in MASKS for i in indices):
            values, given = args[2] if is_put else None, []
            for index in indices:
                if index is None or index.dtype not in MASKS:
                    given.append(index)
                else:
                    given += self._selected_by(index, values, tensor.device)
            args = (tensor, given, *args[2:])
        if is_put and op.name.endswith("_"):
            return self._computing.write(op, args, kwargs, (tensor,))
        return self._computing.fresh(op, args, kwargs)

    def _selected_by(self, mask, values, device):
        """Returns the indices that a mask selects, dimension by dimension."""
        if not mask.is_cuda:
            return [self._computing.to_device(one.contiguous(), device, True) for one in mask.nonzero().unbind(1)]
        is_true = self._storages.is_true((mask,))
        self._readbacks.count("index by a mask", not is_true)
        if is_true is not None:
            found = self._computing.to_device(alias(mask).nonzero(), device, is_true)
        else:
            number = self._count(mask, mask.numel())
            if values is not None and values.dim() and values.shape[0] != 1:
                number = values.shape[0]  # The program has as many values as its mask selects.
            found = self._some((mask.dim(), number), mask).t()
        return [found.select(1, i) for i in range(mask.dim())]


def _share(text):
    """Returns the number from 0 to 1 in a variable, or 1."""
    try:
        return min(max(float(text), 0.0), 1.0)
    except (TypeError, ValueError):
        return 1.0
