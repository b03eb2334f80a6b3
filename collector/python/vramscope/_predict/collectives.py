"""What collective operations give where every rank has what this one has: small values are as they would be then.

PyTorch's fake backend returns at once. Here its results are filled in: each rank's part is equal to this rank's, so a sum is
this rank's value times the number of ranks. Imports torch, so it is imported only after the program has done so.
"""

import contextlib
import threading

import torch

from .storages import alias

LARGEST_ON_CPU = 64 << 20
"""The largest tensor on the CPU, in bytes, that is filled in."""

FLAT = ("c10d::_allgather_base_", "c10d::_reduce_scatter_base_")
"""Operations of an output and an input, whose elements count and not their shapes."""

_current = threading.local()


class reducing:
    """While it lasts, this thread's collective operations reduce with `op`, which the operations themselves do not show."""

    def __init__(self, op):
        self._name = str(op).rpartition(".")[2].lower()

    def __enter__(self):
        self._outer = getattr(_current, "op", None)
        _current.op = self._name

    def __exit__(self, *_):
        _current.op = self._outer


def combined(tensor, op, world):
    """Returns what a reduction over ranks with equal tensors gives."""
    if op in (None, "sum"):
        return tensor * world if tensor.dtype is not torch.bool else tensor
    if op == "product":
        return tensor**world
    if op == "bxor" and world % 2 == 0:
        return torch.zeros_like(tensor)
    return tensor


class Handler:
    """Runs one collective operation, whose tensors `storages` knows."""

    def __init__(self, storages, op):
        self._storages = storages
        self._is_functional = op.name.startswith("_c10d_functional")
        name = op.name.partition("::")[2]
        self._fill = getattr(self, "_" + name.strip("_"), None) if not name.endswith("_out") else None
        self._is_all_reduce = op.name == "c10d::allreduce_"
        self._is_flat = op.name in FLAT

    def run(self, op, args, kwargs):
        # The fake backend copies with operations, where a real one is out of autograd's sight.
        with contextlib.nullcontext() if self._is_functional else torch.no_grad():
            if self._is_flat:
                # It splits the first dimension, which need not be the one that holds the ranks' parts.
                to, source = (one.detach().view(-1) for one in args[:2])
                out = (args[0], op.run(to, source, *args[2:], **kwargs)[1])
            else:
                out = op.run(*args, **kwargs)
        if self._fill is not None:
            self._fill(op.named(args, kwargs), out)
        if self._is_all_reduce:
            # The fake backend's future has no value, which DistributedDataParallel reads.
            out = (out[0], _finished(out[0]))
        return out

    def _put(self, to, sources, change):
        """Writes `change(sources)` into `to`, if all of them are small."""
        bytes_, is_true = [], True
        for one in (to, *sources):
            if one.is_cuda:
                state = self._storages.state(one)
                if state is None:
                    return
                is_true = is_true and (state[1] or one is to)
                bytes_.append(alias(one))
            elif one.device.type != "cpu" or one.nbytes > LARGEST_ON_CPU:
                return
            else:
                bytes_.append(one)
        result = change(*bytes_[1:])
        if result.numel() != bytes_[0].numel():
            return
        bytes_[0].copy_(result.reshape(bytes_[0].shape))
        if to.is_cuda:
            self._storages.settle_written(to, is_true)

    # The operations of process groups. They write into tensors that they are given.

    def _allreduce(self, given, _out):
        world = _size(given["process_group"])
        for one in given["tensors"]:
            self._put(one, (one,), lambda tensor: combined(tensor, getattr(_current, "op", None), world))

    _allreduce_coalesced = _reduce = _allreduce

    def _allgather(self, given, _out):
        for outs, source in zip(given["output_tensors"], given["input_tensors"]):
            for one in outs:
                self._put(one, (source,), lambda tensor: tensor)

    def _allgather_base(self, given, _out):
        to, source = given["output_tensor"], given["input_tensor"]
        self._gathered(to, source)

    def _gathered(self, to, source):
        if source.numel():
            self._put(to, (source,), lambda tensor: tensor.reshape(-1).repeat(to.numel() // source.numel()))

    def _allgather_into_tensor_coalesced(self, given, _out):
        for to, source in zip(given["outputs"], given["inputs"]):
            self._gathered(to, source)

    def _gather(self, given, _out):
        for outs, source in zip(given["output_tensors"], given["input_tensors"]):
            for one in outs:
                self._put(one, (source,), lambda tensor: tensor)

    def _scatter(self, given, _out):
        rank = _rank(given["process_group"])
        for to, sources in zip(given["output_tensors"], given["input_tensors"]):
            if rank < len(sources):
                self._put(to, (sources[rank],), lambda tensor: tensor)

    def _reduce_scatter(self, given, _out):
        rank, world = _rank(given["process_group"]), _size(given["process_group"])
        for to, sources in zip(given["output_tensors"], given["input_tensors"]):
            self._put(to, (sources[rank],), lambda tensor: combined(tensor, getattr(_current, "op", None), world))

    def _reduce_scatter_base(self, given, _out):
        rank, world = _rank(given["process_group"]), _size(given["process_group"])
        self._scattered(given["output_tensor"], given["input_tensor"], rank, world, getattr(_current, "op", None))

    def _scattered(self, to, source, rank, world, op):
        self._put(to, (source,), lambda tensor: combined(tensor.reshape(world, -1)[rank], op, world))

    def _alltoall(self, given, _out):
        rank = _rank(given["process_group"])
        for to in given["output_tensors"]:
            self._put(to, (given["input_tensors"][rank],), lambda tensor: tensor)

    def _alltoall_base(self, given, _out):
        self._exchanged(given["output"], given["input"], _rank(given["process_group"]), _size(given["process_group"]))

    def _exchanged(self, to, source, rank, world):
        """Every rank sends this one what this one sends itself, if the parts are equal."""
        if source.dim() and source.shape[0] % world == 0 and to.shape == source.shape:
            part = source.shape[0] // world
            repeat = [world] + [1] * (source.dim() - 1)
            self._put(to, (source,), lambda tensor: tensor[rank * part : (rank + 1) * part].repeat(repeat))

    # Functional ones, which return new tensors.

    def _new(self, out):
        if out.is_cuda:
            self._storages.make_up(out)
        return out

    def _all_reduce(self, given, out):
        world = _size(given["group_name"])
        self._put(self._new(out), (given["input"],), lambda tensor: combined(tensor, given["reduce_op"], world))

    def _all_gather_into_tensor(self, given, out):
        self._gathered(self._new(out), given["input"])

    def _reduce_scatter_tensor(self, given, out):
        group = given["group_name"]
        self._scattered(self._new(out), given["input"], _rank(group), _size(group), given["reduce_op"])

    def _all_to_all_single(self, given, out):
        group = given["group_name"]
        self._exchanged(self._new(out), given["input"], _rank(group), _size(group))

    def _broadcast(self, given, out):
        if self._is_functional and out is not given["input"]:
            self._put(self._new(out), (given["input"],), lambda tensor: tensor)


def _finished(tensors):
    """Returns a finished operation with tensors as its value."""
    devices = sorted({one.device for one in tensors if one.is_cuda}, key=str)
    future = torch.futures.Future(devices=devices)
    future.set_result(list(tensors))
    return torch._C._distributed_c10d._create_work_from_future(future).boxed()


def _group(of):
    if isinstance(of, str):
        return torch._C._distributed_c10d._resolve_process_group(of)
    return torch._C._distributed_c10d.ProcessGroup.unbox(of) if isinstance(of, torch.ScriptObject) else of


def _size(of):
    return _group(of).size()


def _rank(of):
    return _group(of).rank()
