"""Programs that use PyTorch with Vramscope's allocator or with its own, each in its own process.

    python allocator_programs.py PROGRAM ours|stock RESULT.json [OPTIONS]
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import torch


def history_entries():
    """Returns the history as comparable values: addresses relative to the lowest segment, stacks as functions and lines."""
    snapshot = torch.cuda.memory._snapshot()
    base = min((segment["address"] for segment in snapshot["segments"]), default=0)
    entries = []
    for trace in snapshot["device_traces"]:
        for entry in trace:
            frames = [(frame["name"], frame["line"]) for frame in entry.get("frames", [])]
            entries.append([entry["action"], entry.get("addr", base) - base, entry["size"], frames])
    return entries


def segments():
    """Returns the segments with their blocks, without addresses and stacks. Streams are numbered as they appear."""
    names = ("device", "total_size", "allocated_size", "active_size", "requested_size", "segment_type")
    names += ("segment_pool_id", "is_expandable")
    streams = {}
    return [
        [
            [segment[name] for name in names] + [streams.setdefault(segment["stream"], len(streams))],
            [[block["size"], block["state"]] for block in segment["blocks"]],
        ]
        for segment in torch.cuda.memory_snapshot()
    ]


def network(width):
    layers = [torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)]
    return torch.nn.Sequential(*layers)


def train_steps(steps, device, width=256):
    torch.manual_seed(7)
    model = network(width).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for step in range(steps):
        batch = torch.randn(16 + 500 * (step % 7), width, device=device)
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def train():
    """Runs a training loop, then every query about memory."""
    losses = train_steps(12, "cuda")
    result = {"losses": losses, "trace": history_entries(), "segments": segments()}
    snapshot = torch.cuda.memory._snapshot()
    result["settings"] = snapshot["allocator_settings"]
    result["segment_keys"] = sorted(snapshot["segments"][0])
    result["block_keys"] = sorted(snapshot["segments"][0]["blocks"][0])
    result["stats"] = dict(torch.cuda.memory_stats())
    result["nested"] = sorted(torch.cuda.memory_stats_as_nested_dict())
    names = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
    result["numbers"] = {name: getattr(torch.cuda, name)() for name in names}
    result["summary"] = torch.cuda.memory_summary()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    result["after"] = dict(torch.cuda.memory_stats())
    return result


def dump():
    """Writes snapshots to files that PyTorch's own viewer can read."""
    from torch.cuda import _memory_viz

    train_steps(3, "cuda")
    path = sys.argv[4]
    torch.cuda.memory._dump_snapshot(path)
    snapshot = torch.cuda.memory._snapshot()
    plot = _memory_viz.trace_plot(snapshot)
    return {
        "bytes": os.path.getsize(path),
        "segments": len(snapshot["segments"]),
        "plot": len(plot),
        "trace": len(_memory_viz.trace(snapshot)),
    }


def collect():
    """Frees unreferenced tensors that Python and cuBLAS still hold."""
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()


def stop_recording(seen):
    """Ends the recording, if there is one."""
    if seen is not None:
        seen.detach()


def is_refused(size):
    try:
        torch.empty(size, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError as error:
        return str(error)
    return None


def out_of_memory():
    """Runs out of memory repeatedly, with work in between."""
    kept = torch.empty(1 << 20, device="cuda")
    before = torch.cuda.memory_allocated()
    total = torch.cuda.mem_get_info()[1]
    texts = [is_refused(size) for size in (2 * total, total, 1 << 61)]
    torch.cuda.set_per_process_memory_fraction(0.25)
    texts.append(is_refused(total // 2))
    fits = is_refused(total // 8) is None
    torch.cuda.set_per_process_memory_fraction(1.0)
    raised = []

    def in_thread():
        raised.append(is_refused(2 * total))

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    model = torch.nn.Linear(8, 8).cuda()
    backward = None
    hook = model.weight.register_hook(lambda grad: torch.empty(2 * total, dtype=torch.uint8, device="cuda"))
    try:
        model(torch.ones(2, 8, device="cuda")).sum().backward()
    except torch.cuda.OutOfMemoryError as error:
        backward = str(error)
    hook.remove()
    del model
    losses = train_steps(3, "cuda")
    collect()
    stats = torch.cuda.memory_stats()
    assert kept.numel() == 1 << 20
    return {
        "texts": texts,
        "fits": fits,
        "thread": raised,
        "backward": backward,
        "steps": len(losses),
        "ooms": stats["num_ooms"],
        "leaked": stats["allocated_bytes.all.current"] - before,
    }


class Busy:
    """A stream with work that does not end inside the `with` block; on a real GPU, for some seconds."""

    def __init__(self, stream):
        self.stream = stream
        cuda = ctypes.CDLL("libcuda.so.1")
        self.hold = getattr(cuda, "fakecuda_hold", None)

    def __enter__(self):
        if self.hold is not None:
            self.hold(ctypes.c_void_p(self.stream.cuda_stream), 1)
        else:
            with torch.cuda.stream(self.stream):
                torch.cuda._sleep(20_000_000_000)

    def __exit__(self, *_):
        if self.hold is not None:
            self.hold(ctypes.c_void_p(self.stream.cuda_stream), 0)
        self.stream.synchronize()


def record_stream():
    """Checks that memory that another stream still uses is not reused."""
    result = {}
    stream = torch.cuda.Stream()
    # A kernel's first use loads it, which waits for the whole device.
    torch.ones(3 << 20, device="cuda").add(1)
    torch.cuda._sleep(1)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    for is_recorded in (True, False):
        tensor = torch.ones(3 << 20, device="cuda")
        address = tensor.data_ptr()
        with Busy(stream):
            with torch.cuda.stream(stream):
                used = tensor + 1
            if is_recorded:
                tensor.record_stream(stream)
            del tensor
            pending = [block["state"] for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]]
            other = torch.ones(3 << 20, device="cuda")
            result[f"reused, recorded {is_recorded}"] = other.data_ptr() == address
            result[f"pending, recorded {is_recorded}"] = "active_pending_free" in pending
        again = torch.ones(3 << 20, device="cuda")
        result[f"reused after, recorded {is_recorded}"] = again.data_ptr() == address or other.data_ptr() == address
        del used, other, again
        torch.cuda.empty_cache()
    return result


def threads():
    """Uses several threads on all devices, and backward passes in autograd's threads."""
    devices = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    failed = []

    def work(device):
        try:
            for _ in range(3):
                train_steps(8, device, width=64)
        except BaseException as error:
            failed.append(repr(error))

    workers = [threading.Thread(target=work, args=(devices[number % len(devices)],)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    collect()
    return {
        "failed": failed,
        "left": [torch.cuda.memory_allocated(device) for device in devices],
        "allocations": [torch.cuda.memory_stats(device)["allocation.all.allocated"] for device in devices],
        "traced": len(torch.cuda.memory._snapshot()["device_traces"]),
    }


def graphs():
    """Captures CUDA graphs: their memory is in a private pool, which a second graph shares, and is freed with them."""
    tensor = torch.ones(5 << 20, device="cuda")
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        doubled = tensor * 2
        result = doubled + 1
        del doubled
        result = result + 3
    states = [segments()]
    first.replay()
    with torch.cuda.graph(second, pool=first.pool()):
        other = result + 1
    states.append(segments())
    del result, other
    first.reset()
    second.reset()
    torch.cuda.empty_cache()
    states.append(segments())
    return {"states": states, "stats": dict(torch.cuda.memory_stats())}


def too_late():
    """Uses CUDA before changing the allocator, which is an error."""
    import vramscope

    torch.ones(1, device="cuda")
    try:
        vramscope.use_allocator()
    except RuntimeError as error:
        return {"error": str(error)}
    return {"error": None}


def arguments():
    """Passes invalid arguments, then valid ones."""
    import vramscope

    errors = []
    for options in ({"context": "deep"}, {"history": -1}, {"settings": "no_such:1"}, {"library": "/nowhere.so"}):
        try:
            vramscope.use_allocator(**options)
            errors.append(None)
        except (RuntimeError, ValueError, OSError) as error:
            errors.append(f"{type(error).__name__}: {error}")
    seen = vramscope.use_allocator(settings="max_split_size_mb:64", context="none")
    torch.ones(1 << 20, device="cuda")
    try:
        vramscope.use_allocator()
    except RuntimeError as error:
        errors.append(str(error))
    seen.set_settings("max_split_size_mb:128")
    return {
        "errors": errors,
        "max_split_size": seen.stats()["max_split_size"],
        "settings": seen.snapshot()["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"],
        "exact": seen.raises_out_of_memory_error,
    }


def main():
    name, whose, path = sys.argv[1:4]
    program = globals()[name]
    seen = None
    if whose == "ours" and name not in ("too_late", "arguments"):
        import vramscope

        out = sys.argv[5] if len(sys.argv) > 5 else None
        seen = vramscope.use_allocator(history=1_000_000, out=out)
    elif whose == "stock":
        torch.cuda.memory._record_memory_history(stacks="python")
    result = program()
    stop_recording(seen)
    with open(path, "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
