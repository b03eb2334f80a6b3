"""Computes the results of operations on small CUDA tensors with their CPU kernels, on the very same bytes.

Imports torch, so it is imported only after the program has done so.
"""

import math

import torch

from . import operations
from .storages import SMALL, alias, cuda_device, has_small, is_small, most, write

FEW = 1 << 10
"""The most bytes of made-up numbers that are computed with, other than integers and flags."""

CHECKS = ("aten::_is_all_true",)
"""Operations with which PyTorch itself checks values, as those of distributions: they are true if one of the values is made up."""

MADE_UP_AS_ONE = (
    *CHECKS,"aten::all", "aten::isfinite", "aten::isclose", "aten::isreal")
"""Operations whose made-up results are true: a program that finds its numbers broken stops."""

CPU = torch.device("cpu")
Tensor = torch.Tensor


class Computing:
    """Runs operations, and gives small results the values that the CPU kernel computes."""

    def __init__(self, storages):
        self._storages = storages
        self._without_cpu_kernel = set()
        self._generator = torch.Generator().manual_seed(0)
        self._random_state = torch.Generator().manual_seed(1).get_state()

    def compute(self, op, args, kwargs, overwritten=()):
        """Returns (result of the CPU kernel on the same bytes, whether it is true), or None if it can't be computed.

        The values of the tensors `overwritten` do not count for the truth."""
        found = []
        args = [on_cpu(a, found) for a in args]
        if kwargs:
            kwargs = {name: on_cpu(a, found) for name, a in kwargs.items()}
        is_true, absent = True, []
        for tensor in found:
            is_overwritten = bool(overwritten) and any(tensor is one for one in overwritten)
            state = self._storages.written_state(tensor) if is_overwritten else self._storages.state(tensor)
            if state is None:
                if tensor.layout is not torch.strided or tensor.nbytes > SMALL:
                    return None
                # A part of a large tensor, whose values are not there: it counts as zeros.
                is_true = False
                absent.append(tensor)
            elif not state[1] and not is_overwritten:
                is_true = False
        if not is_true and any(one.nbytes > FEW and one.is_floating_point() for one in found):
            return None
        key = (op.run, found[0].dtype if found else kwargs.get("dtype"))
        if key in self._without_cpu_kernel:
            return None
        try:
            args = [_aliases(a, absent) for a in args]
            if kwargs:
                kwargs = {name: _aliases(a, absent) for name, a in kwargs.items()}
            return self._call(op, args, kwargs), is_true
        except Exception as error:  # Also where a GPU's kernel would fail without a word, as with an index too large.
            if isinstance(error, NotImplementedError) or "not implemented" in str(error):
                self._without_cpu_kernel.add(key)
            return None

    def _call(self, op, args, kwargs):
        """Runs an operation on the CPU, without effect on the program's random numbers."""
        function = SUBSTITUTES.get(op.name, op.run)
        if not op.is_random or function is not op.run:
            return function(*args, **kwargs)
        if any(a.name == "generator" for a in op.arguments):
            return function(*args, **dict(kwargs, generator=self._generator))
        kept = torch.default_generator.get_state()
        torch.default_generator.set_state(self._random_state)
        try:
            return function(*args, **kwargs)
        finally:
            self._random_state = torch.default_generator.get_state()
            torch.default_generator.set_state(kept)

    def fresh(self, op, args, kwargs):
        """Runs an operation that returns new tensors."""
        out = op.run(*args, **kwargs)
        # Most are large: nothing more is asked of them.
        if type(out) is Tensor:
            if out.layout is not torch.strided or out.nbytes > most(out) or not out.is_cuda:
                return out
            done = self.compute(op, args, kwargs)
            if done is None or not done[1] and op.name in CHECKS:
                self._storages.make_up(out, 1 if op.name in MADE_UP_AS_ONE else 0)
            else:
                self._fill_one(out, done[0], done[1])
            return out
        if type(out) not in (tuple, list) or not has_small(out):
            return out
        outs = operations.flat((out,))
        done = None
        if all(not isinstance(one, Tensor) or one.layout is torch.strided and one.nbytes <= most(one) or not one.is_cuda for one in outs):
            done = self.compute(op, args, kwargs)
        if done is not None and not done[1] and op.name in CHECKS:
            done = None
        if done is None:
            byte = 1 if op.name in MADE_UP_AS_ONE else 0
            for one in outs:
                if is_small(one):
                    self._storages.make_up(one, byte)
        else:
            results = operations.flat((done[0],))
            self._fill(outs, results + [None] * (len(outs) - len(results)), done[1])
        return out

    def write(self, op, args, kwargs, written, is_overwriting=False):
        """Runs an operation that writes into the tensors `written`, and may return new ones too."""
        has_small_written = False
        for one in written:
            if one.is_cuda:
                if is_small(one):
                    has_small_written = True
                    break
            elif len(written) == 1 and self._storages.is_blank(one):
                if all(not isinstance(a, Tensor) or a.is_floating_point() for a in args):
                    return one
        out = op.run(*args, **kwargs)
        news = []
        if type(out) is tuple:
            news = [(number, one) for number, one in enumerate(out) if is_small(one) and not any(one is w for w in written)]
        if not has_small_written and not news:
            return out
        done = None
        if all(one.layout is torch.strided and one.nbytes <= most(one) for one in written):
            done = self.compute(op, args, kwargs, written if is_overwriting else ())
        is_true = done is not None and done[1]
        for one in written:
            if one.is_cuda and self._storages.written_state(one) is not None:
                if done is not None and not is_true and one.is_floating_point():
                    torch.nan_to_num(alias(one), 0.0, 0.0, 0.0, out=alias(one))
                self._storages.settle_written(one, is_true)
        for number, one in news:
            if done is None:
                self._storages.make_up(one)
            else:
                self._fill((one,), (done[0][number],), is_true)
        return out

    def _fill(self, outs, results, is_true):
        """Writes results of the CPU into the small new tensors that the operation returned."""
        for out, result in zip(outs, results):
            if is_small(out):
                self._fill_one(out, result, is_true)

    def _fill_one(self, out, result, is_true):
        """Writes a result of the CPU into a small new tensor."""
        if not isinstance(result, Tensor) or result.shape != out.shape or not is_true and out.nbytes > SMALL:
            self._storages.make_up(out)
            return
        if not is_true and result.is_floating_point():
            result.nan_to_num_(0.0, 0.0, 0.0)
        write(out, result)
        self._storages.settle(out, is_true)

    def moved(self, op, args, kwargs):
        """Returns what the CPU kernel gives, in new CUDA tensors, without running the operation; None if it can't be computed."""
        done = self.compute(op, args, kwargs)
        if done is None:
            return None
        (result, is_true), device = done, cuda_device(args)
        if isinstance(result, (list, tuple)):
            return tuple(self.to_device(one, device, is_true) for one in result)
        return self.to_device(result, device, is_true)

    def to_device(self, result, device, is_true):
        """Returns a new CUDA tensor with the values of a CPU tensor; anything else stays what it is."""
        if not isinstance(result, Tensor):
            return result
        out = torch.empty_strided(result.size(), result.stride(), dtype=result.dtype, device=device)
        if out.nbytes <= most(out):
            alias(out).copy_(result)
            self._storages.settle(out, is_true)
        return out


def on_cpu(argument, found):
    """Collects CUDA tensors, and returns the argument with the CPU in place of devices."""
    if isinstance(argument, Tensor):
        if argument.is_cuda:
            found.append(argument)
    elif isinstance(argument, (list, tuple)):
        return [on_cpu(one, found) for one in argument]
    elif isinstance(argument, torch.device):
        return CPU if argument.type == "cuda" else argument
    elif isinstance(argument, torch.Generator):
        return None
    return argument


def _aliases(argument, absent):
    """Returns an argument with the bytes of CUDA tensors on the CPU, and zeros for those that are absent."""
    if isinstance(argument, Tensor):
        if not argument.is_cuda:
            return argument
        is_absent = bool(absent) and any(argument is one for one in absent)
        return torch.zeros(argument.shape, dtype=argument.dtype) if is_absent else alias(argument)
    if isinstance(argument, list):
        return [_aliases(one, absent) for one in argument]
    return argument


def _flash(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
    return (_attention(query, key, value, None, is_causal, scale),)


def _efficient(query, key, value, bias=None, compute_log_sumexp=False, dropout_p=0.0, is_causal=False, *, scale=None):
    return (_attention(query, key, value, bias, is_causal, scale),)


def _attention(query, key, value, bias, is_causal, scale):
    scores = query.float() @ key.float().transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    if bias is not None:
        scores = scores + bias.float()
    return (scores.softmax(-1) @ value.float()).to(query.dtype)


SUBSTITUTES = {
    "aten::_scaled_dot_product_flash_attention": _flash,
    "aten::_scaled_dot_product_efficient_attention": _efficient,
}
"""What the CPU computes for operations that it does not have. Results that are missing are made up."""
