"""Copies between the CPU and devices, and on the CPU where the source is blank.

Large copies are not made, in either direction: only the memory for the result is there.
Imports torch, so it is imported only after the program has done so.
"""

import contextlib
import math
import threading

import torch

from .computing import CPU
from .storages import BLANK, MOST, SMALL, alias, is_small, most


class Copies:
    """Runs copies. Counts those from a device to the CPU in `readbacks`."""

    def __init__(self, storages, computing, readbacks):
        self._storages, self._computing, self._readbacks = storages, computing, readbacks
        self._thread = threading.local()

    @contextlib.contextmanager
    def infinite(self):
        """Numbers that are made up and copied to the CPU are infinite meanwhile, in this thread."""
        self._thread.is_infinite = True
        try:
            yield
        finally:
            self._thread.is_infinite = False

    def handlers(self):
        """Returns what runs an operation, by its name."""
        return {"aten::_to_copy": self._to_copy, "aten::copy_": self._copy_, "aten::clone": self._clone}

    def _to_copy(self, op, args, kwargs):
        source, device = args[0], kwargs.get("device")
        if source.is_cuda:
            if device is not None and device.type == "cpu":
                return self._to_cpu(op, args, kwargs)
            return self._computing.fresh(op, args, kwargs)
        if source.device.type != "cpu":
            return op.run(*args, **kwargs)
        is_to_cuda = device is not None and device.type == "cuda"
        if source.layout is not torch.strided:
            out = op.run(*args, **kwargs)
            if is_to_cuda and out.layout is torch.sparse_coo:
                self._fill(out._indices(), source._indices())
                self._fill(out._values(), source._values())
            return out
        dtype = kwargs.get("dtype") or source.dtype
        size = source.numel() * dtype.itemsize
        if is_to_cuda and size > MOST.get(dtype, SMALL) or self._storages.is_blank(source) and (device is None or device.type == "cpu"):
            # The same memory, without the work of a conversion and of a copy that the driver would ignore.
            named = {name: kwargs[name] for name in ("dtype", "device", "memory_format") if kwargs.get(name) is not None}
            if is_to_cuda:
                return torch.empty_like(source, **named)
            return self._storages.set_blank(torch.empty_like(source, pin_memory=bool(kwargs.get("pin_memory")), **named))
        out = op.run(*args, **kwargs)
        if is_to_cuda:
            self._fill(out, source)
        return out

    def _fill(self, out, source):
        """Gives a new CUDA tensor the values of one on the CPU, if it is small."""
        if is_small(out):
            alias(out).copy_(source)
            self._storages.settle(out, True)

    def _to_cpu(self, op, args, kwargs):
        source = args[0]
        if source.layout is not torch.strided:
            return op.run(*args, **kwargs)
        is_true = self._storages.is_true((source,))
        self._readbacks.count("copy to the CPU", not is_true)
        given = None if is_true else self._readbacks.given()
        if given is not None:
            return op.run(*args, **kwargs).fill_(given)
        if is_true is None and source.is_contiguous() and not kwargs.get("pin_memory") and source.nbytes > BLANK:
            return self._storages.set_blank(torch.empty_like(source, dtype=kwargs.get("dtype"), device=CPU))
        out = op.run(*args, **kwargs)
        if not is_true and out.is_floating_point() and getattr(self._thread, "is_infinite", False):
            return out.fill_(math.inf)
        return out.zero_() if is_true is None else out.copy_(alias(source))

    def _copy_(self, op, args, kwargs):
        to, source = args[0], args[1]
        if to.is_cuda:
            if source.is_cuda or to.layout is not torch.strided:
                return self._computing.write(op, args, kwargs, (to,), True)
            if to.nbytes > most(to) and to.is_contiguous() and (to.dtype is not source.dtype or not source.is_contiguous()):
                return to  # Only the conversion on the CPU would take time.
            op.run(*args, **kwargs)
            if source.device.type == "cpu" and self._storages.written_state(to) is not None:
                alias(to).copy_(source)
                self._storages.settle_written(to, True)
            return to
        if source.is_cuda and to.device.type == "cpu":
            is_true = self._storages.is_true((source,))
            self._readbacks.count("copy to the CPU", not is_true)
            given = None if is_true else self._readbacks.given()
            if given is not None:
                op.run(*args, **kwargs)
                return to.fill_(given)
            if is_true is not None or to.nbytes <= BLANK or not source.is_contiguous() or to.dtype is not source.dtype:
                op.run(*args, **kwargs)
                if to.nbytes <= BLANK:
                    to.zero_() if is_true is None else to.copy_(alias(source))
            return to
        if to.is_floating_point() and self._storages.is_blank(to):
            return to
        return op.run(*args, **kwargs)

    def _clone(self, op, args, kwargs):
        source = args[0]
        if self._storages.is_blank(source):
            return self._storages.set_blank(torch.empty_like(source, memory_format=kwargs.get("memory_format")))
        return self._computing.fresh(op, args, kwargs)
