"""Random numbers. Large tensors of them on the CPU, such as parameters before they are moved, are not filled: they stay blank.

Imports torch, so it is imported only after the program has done so.
"""

import functools
import math
import re

import torch

from .computing import CPU
from .storages import BLANK

IN_PLACE = re.compile(r"aten::(normal|uniform|exponential|cauchy|log_normal|geometric|bernoulli)_$")
LIKE = re.compile(r"aten::randn?_like$")
MADE = re.compile(r"aten::randn?$")

INITIALIZATIONS = ("trunc_normal_", "orthogonal_")
"""Those of `torch.nn.init` that try until they like the numbers, or that take long."""


class Randoms:
    """Runs operations that give random numbers."""

    def __init__(self, storages, computing):
        self._storages, self._computing = storages, computing

    def start(self):
        """Replaces what would be slow on tensors without numbers."""
        for name in INITIALIZATIONS:
            setattr(torch.nn.init, name, _initializing(getattr(torch.nn.init, name)))

    def handler(self, op):
        """Returns what runs an operation, or None if it gives no random numbers."""
        for pattern, handler in ((IN_PLACE, self._in_place), (LIKE, self._like), (MADE, self._made)):
            if pattern.match(op.name):
                return handler
        return None

    def _in_place(self, op, args, kwargs):
        tensor = args[0]
        if tensor.is_cuda:
            return self._computing.write(op, args, kwargs, (tensor,), True)
        if tensor.device.type == "cpu" and tensor.nbytes > BLANK and tensor.is_floating_point():
            return self._storages.set_blank(tensor)
        return op.run(*args, **kwargs)

    def _like(self, op, args, kwargs):
        like = args[0]
        device, dtype = kwargs.get("device") or like.device, kwargs.get("dtype") or like.dtype
        if device.type == "cpu" and like.numel() * dtype.itemsize > BLANK:
            return self._storages.set_blank(torch.empty_like(like, **kwargs))
        return self._computing.fresh(op, args, kwargs)

    def _made(self, op, args, kwargs):
        device, dtype = kwargs.get("device") or CPU, kwargs.get("dtype") or torch.get_default_dtype()
        if device.type == "cpu" and math.prod(args[0]) * dtype.itemsize > BLANK:
            named = {name: kwargs[name] for name in ("dtype", "layout", "device", "pin_memory") if name in kwargs}
            return self._storages.set_blank(torch.empty(args[0], **named))
        return self._computing.fresh(op, args, kwargs)


def _initializing(real):
    @functools.wraps(real)
    def initialize(tensor, *args, **kwargs):
        if tensor.device.type == "cpu" and tensor.is_floating_point() and tensor.nbytes > BLANK:
            with torch.no_grad():
                return tensor.normal_()
        return real(tensor, *args, **kwargs)

    return initialize
