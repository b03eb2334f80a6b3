"""One rank of a job of many: `torch.distributed` with PyTorch's fake backend, whatever backend the program asks for.

The fake backend returns at once. What its operations give is filled in by `collectives` and here: every other rank is taken
to have what this one has. Objects that another rank would broadcast stay as they are. Those that it sends to this one alone
(`send_object_list`) it left in a file, if it was run before: pipelines tell the next rank in this way what it gets.
`get_backend` still names the backend that the program asked for: PyTorch and programs choose by it, such as a mesh its device.
Imports torch, so it is imported only after the program has done so.
"""

import contextlib
import copy
import functools
import inspect
import itertools
import os
import pickle
import sys
import urllib.parse
import weakref

import torch.distributed as dist
from torch.distributed import distributed_c10d

from .. import _log
from . import collectives

REDUCING = ("all_reduce", "all_reduce_coalesced", "reduce", "reduce_scatter", "reduce_scatter_tensor")


place = None
"""This process's rank and the number of ranks, once they are known."""

_asked = weakref.WeakKeyDictionary()
"""The backend that the program asked for, of each group."""


def start(rank=None, world=None):
    """Makes this process rank `rank` of `world`. The environment has what a launcher would have set.

    Without them, the program says itself which rank it is, as one does that starts its own processes."""
    global place
    if world is not None:
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} of {world}: no such rank")
        place = rank, world
        defaults = {"LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29500}
        for name, value in defaults.items():
            os.environ.setdefault(name, str(value))
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
    _replace("init_process_group", _init_process_group)
    _replace("new_group", _new_group)
    real = distributed_c10d.get_backend
    _replace("get_backend", _get_backend)
    distributed_c10d.get_backend = real  # It makes groups of the same backend as an existing one.
    for name in REDUCING:
        _replace(name, _reduce)
    for name, function in OBJECTS.items():
        _replace(name, function)


def _replace(name, function):
    """Puts `function(real, ...)` in the place of one of torch.distributed's, wherever it was imported."""
    real = getattr(distributed_c10d, name, None)
    if real is None:
        return

    @functools.wraps(real)
    def replaced(*args, **kwargs):
        return function(real, *args, **kwargs)

    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("torch.distributed") and getattr(module, "__dict__", {}).get(name) is real:
            setattr(module, name, replaced)


def _init_process_group(real, *args, **kwargs):
    from torch.testing._internal.distributed.fake_pg import FakeStore

    global place
    given = inspect.signature(real).bind(*args, **kwargs).arguments
    if place is None:
        place = _said(given)
    if place is None:
        return real(*args, **kwargs)  # It says what is missing.
    rank, world = place
    more = {} if given.get("timeout") is None else {"timeout": given["timeout"]}
    real("fake", rank=rank, world_size=world, store=FakeStore(), **more)
    _asked[dist.group.WORLD] = given.get("backend") or ("nccl" if given.get("device_id") is not None else "undefined")


def _said(given):
    """Returns the rank and the number of ranks that a program gives when it joins the others; None if it does not say."""
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(given.get("init_method") or "").query)
    found = []
    for name in ("rank", "world_size"):
        texts = [str(given.get(name, -1)), *query.get(name, ()), os.environ.get(name.upper(), "")]
        found.append(next((int(text) for text in texts if text.isdigit()), None))
    rank, world = found
    return (rank, world) if rank is not None and world is not None and rank < world else None


def _new_group(real, ranks=None, timeout=None, backend=None, pg_options=None, *args, **kwargs):
    made = real(ranks, timeout, None, None, *args, **kwargs)
    if isinstance(made, dist.ProcessGroup):
        _asked[made] = backend or _asked.get(dist.group.WORLD, "undefined")
    return made


def _get_backend(real, group=None):
    name = real(group)  # It fails where there is no group.
    return distributed_c10d.Backend(_asked.get(group or dist.group.WORLD, name))


def _reduce(real, *args, **kwargs):
    ops = [one for one in (*args, *kwargs.values()) if isinstance(one, (dist.ReduceOp, dist.ReduceOp.RedOpType))]
    with collectives.reducing(ops[0]) if ops else contextlib.nullcontext():
        return real(*args, **kwargs)


def _all_gather_object(real, object_list, obj, group=None):
    for number in range(min(len(object_list), dist.get_world_size(group))):
        object_list[number] = _sent(obj)


def _gather_object(real, obj, object_gather_list=None, *args, **kwargs):
    for number in range(len(object_gather_list or ())):
        object_gather_list[number] = _sent(obj)


def _scatter_object_list(real, output, inputs=None, src=None, group=None, *args, **kwargs):
    if inputs:
        output[0] = _sent(inputs[min(dist.get_rank(group), len(inputs) - 1)])


def _send_object_list(real, object_list, dst=None, group=None, device=None, group_dst=None, **kwargs):
    path = _mail(dist.get_rank(), _global_rank(dst, group_dst, group))
    with open(path + ".part", "wb") as file:
        pickle.dump(list(object_list), file)
    os.replace(path + ".part", path)


def _recv_object_list(real, object_list, src=None, group=None, device=None, group_src=None, **kwargs):
    # From any rank: the one before, as in a pipeline.
    is_from_any = src is None and group_src is None
    source = max(dist.get_rank() - 1, 0) if is_from_any else _global_rank(src, group_src, group)
    try:
        with open(_mail(source, dist.get_rank()), "rb") as file:
            object_list[:] = pickle.load(file)
    except FileNotFoundError:
        _log.log(
            f"Rank {dist.get_rank()} gets nothing from rank {source}, which was not run before it. "
            f"Run both, with --rank {source},{dist.get_rank()}."
        )
    return source


_letters = {}


def _mail(source, to):
    """Returns the path for the next objects that one rank sends to another. The folder is that of all ranks of a prediction."""
    number = next(_letters.setdefault((source, to), itertools.count()))
    folder = os.path.dirname(os.path.abspath(os.environ["VRAMSCOPE_PREDICT"]))
    return os.path.join(folder, f"objects-{source}-{to}-{number}.pickle")


def _global_rank(rank, group_rank, group):
    return rank if group_rank is None else dist.get_global_rank(group or dist.group.WORLD, group_rank)


def _nothing(real, *args, **kwargs):
    dist.get_world_size()  # It fails where the real one does, without a group.


OBJECTS = {
    "all_gather_object": _all_gather_object,
    "gather_object": _gather_object,
    "scatter_object_list": _scatter_object_list,
    "broadcast_object_list": _nothing,
    "send_object_list": _send_object_list,
    "recv_object_list": _recv_object_list,
    "monitored_barrier": _nothing,
}


def _sent(obj):
    """Returns what arrives of an object: another one, if it can be copied."""
    try:
        return copy.deepcopy(obj)
    except Exception:
        return obj
