"""The functions of PyTorch that the agent uses, the same for every version from 2.4 to 2.15. Does not import torch."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
import socket
import sys
import threading

from . import _config


def version(torch):
    """Returns (2, 11) for "2.11.0+cu130"."""
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def devices(torch):
    """Returns every visible device."""
    found = []
    for number in range(torch.cuda.device_count()):
        of = torch.cuda.get_device_properties(number)
        found.append({"number": number, "name": of.name, "capacity": of.total_memory})
    return found


def stats(torch, device):
    """Returns the statistics of `memory_stats` as nested dicts, without the cost of flattening them."""
    return torch._C._cuda_memoryStats(device)


def sums(stats):
    """Returns the bytes (allocated, active, reserved) of statistics."""
    return tuple(stats[name + "_bytes"]["all"]["current"] for name in ("allocated", "active", "reserved"))


def _leaves_traces_out(torch):
    return "include_traces" in inspect.signature(torch.cuda.memory.memory_snapshot).parameters


def snapshot(torch, traces):
    """Returns a snapshot of all devices, without traces if they are not wanted and the version can leave them out."""
    take = torch._C._cuda_memorySnapshot
    with naming(torch):
        if not traces and _leaves_traces_out(torch):
            return take((0, 0, False))
        # From 2.8 on it takes a pool, or None for all. PyTorch's own wrapper does the same but imports many modules.
        return take(None) if version(torch) >= (2, 8) else take()


def is_recording(torch):
    """Returns whether the program itself records history."""
    return bool(torch._C._cuda_isHistoryEnabled())


def record_history(torch, entries, context, stacks):
    """Starts recording history, with an empty ring."""
    memory = torch.cuda.memory
    more = {}
    with _own_call():
        if "clear_history" in inspect.signature(memory._record_memory_history_impl).parameters:
            more["clear_history"] = True
        elif is_recording(torch):
            # Ending the history clears the ring; other ways to change its size leave its entries in the wrong order.
            memory._record_memory_history(enabled=None)
        memory._record_memory_history(enabled="all", context=context, stacks=stacks, max_entries=entries, **more)


def end_history(torch):
    """Ends the recording of history."""
    with _own_call():
        torch.cuda.memory._record_memory_history(enabled=None)


_calls = threading.local()
_watcher = None


@contextlib.contextmanager
def _own_call():
    _calls.is_own = True
    try:
        yield
    finally:
        _calls.is_own = False


def watch_history(torch, call):
    """Calls `call(is_recording, context)` after each call with which the job itself starts or ends the recording of history,
    in the job's thread. `context` says for what the job wants stacks; None is for nothing, or unknown. With None as `call`,
    nothing is called any more."""
    global _watcher
    _watcher = call
    if call is None:
        return
    for name in ("_cuda_record_memory_history", "_cuda_record_memory_history_legacy"):
        real = getattr(torch._C, name, None)
        if real is not None and not hasattr(real, "_vramscope"):
            setattr(torch._C, name, _watched(torch, real))


def _watched(torch, real):
    @functools.wraps(real)
    def record(*arguments, **named):
        result = real(*arguments, **named)
        watcher = _watcher
        if watcher is not None and not getattr(_calls, "is_own", False):
            context = arguments[1] if len(arguments) > 1 and isinstance(arguments[0], str) else None
            watcher(is_recording(torch), context)
        return result

    record._vramscope = True
    return record


def allocator_settings(torch):
    """Returns the allocator's settings in the library's form."""
    take = torch._C._cuda_memorySnapshot
    # The segments of a pool that does not exist (one half of a pool's ID is always 0): none. Some releases drop a reference
    # too many to these numbers, so they must be such as everything uses.
    nowhere = (1, 1)
    with naming(torch):
        if _leaves_traces_out(torch):
            return settings(take((*nowhere, False)))
        return settings(take(nowhere) if version(torch) >= (2, 8) else take())


_names = threading.local()


@contextlib.contextmanager
def naming(torch):
    """While this thread names the frames of stacks, `torch._inductor` looks absent to it unless it is imported.

    PyTorch asks it for the lines behind compiled code, of which there are none before it is imported. `torch` would import
    it for the question: nearly 900 modules, in the middle of the job, in the agent's thread or at the program's end."""
    real = torch.__dict__.get("__getattr__")
    if real is not None and not hasattr(real, "_vramscope"):

        @functools.wraps(real)
        def __getattr__(name):
            if name == "_inductor" and getattr(_names, "depth", 0):
                raise AttributeError(name)
            return real(name)

        __getattr__._vramscope = True
        # Stays for good: other threads, and other names, see no difference.
        torch.__getattr__ = __getattr__
    _names.depth = getattr(_names, "depth", 0) + 1
    try:
        yield
    finally:
        _names.depth -= 1


def settings(snapshot):
    """Returns the allocator's settings in the library's form."""
    of = snapshot.get("allocator_settings", {})
    divisions = of.get("roundup_power2_divisions", {})
    by_size = [divisions.get(str(1 << power), 0) for power in range(16)]
    return {
        "conf": str(of.get("PYTORCH_CUDA_ALLOC_CONF", "")),
        "max_split_size": of.get("max_split_size", -1),
        "expandable_segments": bool(of.get("expandable_segments", False)),
        "garbage_collection_threshold": float(of.get("garbage_collection_threshold", 0.0)),
        "roundup_power2_divisions": [int(division) for division in by_size],
        "as_written": [[name, str(value)] for name, value in of.items() if not isinstance(value, dict)],
    }


def backend(torch):
    """Returns `native`, `cudaMallocAsync` or `pluggable`."""
    return torch.cuda.memory.get_allocator_backend()


def identity(environ=os.environ, argv=None):
    """Returns what a launcher's variables say of this process: (job, rank or None, number of ranks)."""

    def number(*names):
        for name in names:
            if environ.get(name, "").isdigit():
                return int(environ[name])
        return None

    rank = number("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")
    ranks = number("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE") or 1
    job = environ.get("TORCHELASTIC_RUN_ID", "")
    if job in ("", "none") and environ.get("SLURM_JOB_ID"):
        job = "slurm " + environ["SLURM_JOB_ID"]
    if job in ("", "none") and rank is not None and environ.get("MASTER_ADDR"):
        job = environ["MASTER_ADDR"] + ":" + environ.get("MASTER_PORT", "")
    if job in ("", "none"):
        job = script(argv)
    return job, rank, ranks


def recording(config):
    """Returns the library's configuration of this process and of its recording's destination."""
    job, rank, ranks = identity()
    name = config.name or script()
    if config.name is None and rank is not None and ranks > 1:
        name += f", rank {rank}"
    options = {
        "to": config.to,
        "token": config.token,
        "ca_file": config.ca_file,
        "name": name,
        "job": config.job or job,
        "host": socket.gethostname(),
        "rank": rank,
        "ranks": ranks if ranks > 1 else None,
        "pid": os.getpid(),
    }
    if config.out is not None:
        options["out"] = _config.out_of_rank(config.out, rank, ranks)
    return options


def script(argv=None):
    """Returns the program's name."""
    argv = sys.argv if argv is None else argv
    return os.path.basename(argv[0]) if argv and argv[0] else "python"
