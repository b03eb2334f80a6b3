"""How much of large tensors is chosen, as by the router of a mixture of experts: the choices are taken to be spread evenly.

Each of n experts gets as much as the others. This is known of the indices that `topk` gives, of masks that are made of them,
and of what copies or counts either. Imports torch, so it is imported only after the program has done so.
"""

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .storages import SMALL, alias, without_freed

FEW = 1 << 10
"""The most things that a router chooses from. Of more, such as a vocabulary, the first are the choice."""

LEAST = 1 << 10
"""How many notes are kept before those on storages that are gone are looked for."""


def is_small(tensor):
    """Returns whether the values of a CUDA tensor are there also when they are made up."""
    return tensor.nbytes <= SMALL and tensor.layout is torch.strided


class Choices:
    """Keeps notes on storages: what share of a mask is set, or what share of indices is any one of them."""

    def __init__(self, storages):
        self._storages = storages
        self._notes = {}  # Storage: [its weak reference, whether it is a mask, the share].
        self._most = LEAST

    def share(self, mask):
        """Returns what share of a mask is set, or None if nothing is known."""
        is_mask, share = self._note(mask)
        return share if is_mask else None

    def watch(self, op, handler):
        """Returns what runs an operation by `handler`, and keeps notes on the result; small results are made to agree with them."""
        making, following = MAKING.get(op.name), FOLLOWING.get(op.name)
        if making is None and following is None:
            return handler

        def run(op, args, kwargs):
            out = handler(op, args, kwargs)
            if making is not None:
                if args[0].is_cuda:
                    making(self, op.named(args, kwargs), out)
            elif self._notes:
                is_mask, share = self._note(args[0])
                if share is not None:
                    following(self, args[0], out, is_mask, share)
            return out

        return run

    def _note(self, tensor):
        if not self._notes or not tensor.is_cuda or tensor.layout is not torch.strided:
            return None, None
        return self._notes.get(tensor.untyped_storage()._cdata, (None, None, None))[1:]

    def _put(self, out, is_mask, share, source=None):
        """Notes what a result is. A small one gets such values, unless those of a small source were computed with."""
        if not out.is_cuda or is_small(out) and self._storages.is_true((out,)):
            return
        if is_small(out) and (source is None or not is_small(source)):
            place = torch.arange(out.numel())
            values = ((place + 1) * share + 1e-6).floor() > (place * share + 1e-6).floor() if is_mask else place % round(1 / share)
            alias(out).copy_(values.view(out.shape))
        if len(self._notes) >= self._most:
            self._most = without_freed(self._notes, LEAST)
        storage = out.untyped_storage()
        self._notes[storage._cdata] = [StorageWeakRef(storage), is_mask, share]

    def _choose(self, given, out):
        tensor = given["self"]
        among = tensor.shape[given["dim"]] if tensor.dim() else 1
        if 0 < among <= FEW:
            self._put(out[1], False, 1 / among)

    def _scatter(self, given, out):
        """Ones are written among zeros: as many in a row as it has indices."""
        index = given["index"]
        if given.get("value") and "reduce" not in given and index.dim() and not is_small(out):
            is_mask, share = self._note(index)
            if share is None or is_mask:
                share = 1 / out.shape[given["dim"]]
            self._put(out, True, min(index.shape[given["dim"]] * share, 1.0))

    def _compare(self, source, out, is_mask, share):
        if not is_mask:
            self._put(out, True, share, source)

    def _keep(self, source, out, is_mask, share):
        self._put(out, is_mask, share, source)

    def _any(self, source, out, is_mask, share):
        """What is chosen together differs: no two of a row are the same."""
        if is_mask and out.numel():
            self._put(out, True, min(share * source.numel() / out.numel(), 1.0), source)

    def _sum(self, source, out, is_mask, share):
        if not is_mask:
            return
        if is_small(out):
            self._fill(source, out, round(source.numel() * share))
        else:
            self._any(source, out, is_mask, share)

    def _count(self, source, out, is_mask, share):
        if not is_mask and is_small(out):
            self._fill(source, out, source.numel())

    def _fill(self, source, out, total):
        """Writes numbers that add up to a total."""
        if out.numel() and not is_small(source):
            each, more = divmod(total, out.numel())
            alias(out).copy_((each + (torch.arange(out.numel()) < more).long()).view(out.shape))


MAKING = {"aten::topk": Choices._choose, "aten::scatter": Choices._scatter, "aten::scatter_": Choices._scatter}
"""Operations that choose, or that make a mask."""

FOLLOWING = {
    "aten::eq": Choices._compare,
    "aten::any": Choices._any,
    "aten::sum": Choices._sum,
    "aten::count_nonzero": Choices._sum,
    "aten::bincount": Choices._count,
    "aten::histc": Choices._count,
    **dict.fromkeys(("aten::_to_copy", "aten::clone", "aten::index", "aten::index_select", "aten::_unsafe_view"), Choices._keep),
}
"""Operations on tensors on which there are notes."""
