#!/usr/bin/env python3
"""Runs a script of operations on PyTorch's own CUDA caching allocator.

    environment.py 2.11 execute.py SCRIPT.json[.gz] [RESULT.json[.gz]]

Scripts and results have the form of `vramscope replay`; README.md lists the operations. It runs in an environment of
`environment.py`. Addresses in a result are offsets from where the device's memory begins; those of expandable segments
are offsets from where reserved ranges begin, with 2^44 added.
"""

import ctypes
import gzip
import json
import os
import sys

RANGES = 1 << 44
# What an allocation of 0 bytes has for an address: 0, counted from where the simulated device's ranges begin.
NO_MEMORY = RANGES - 0x7400_0000_0000
DEVICE = 0
DEFAULT_CAPACITY = 80 << 30


def load(path):
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rb") as file:
        return json.loads(file.read())


def store(path, result):
    text = json.dumps(result, separators=(",", ":")).encode()
    if str(path).endswith(".gz"):
        # Without a name and a time: equal results are equal files.
        text = gzip.compress(text, mtime=0)
    with open(path, "wb") as file:
        file.write(text)


def variables(script, torch_version):
    """The environment variables that a script asks for. PyTorch and the fake library read them when CUDA starts."""
    minor = tuple(int(part) for part in torch_version.split(".")[:2])
    settings = "PYTORCH_ALLOC_CONF" if minor >= (2, 10) else "PYTORCH_CUDA_ALLOC_CONF"
    return {
        settings: script.get("config", ""),
        "FAKECUDA_CAPACITY": str(script.get("capacity_bytes", DEFAULT_CAPACITY)),
        "FAKECUDA_REUSE": "0" if script.get("va") == "bump" else "1",
    }


class Device:
    """The fake library's controls."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        for name, *arguments in (
            ("fakecuda_set_capacity", ctypes.c_uint32, ctypes.c_uint64),
            ("fakecuda_hold", ctypes.c_size_t, ctypes.c_uint32),
            ("fakecuda_refuse", ctypes.c_uint32, ctypes.c_uint32),
        ):
            getattr(self.library, name).argtypes = arguments
        for name in ("fakecuda_memory_base", "fakecuda_ranges_base"):
            getattr(self.library, name).restype = ctypes.c_uint64
        self.memory, self.ranges = self.library.fakecuda_memory_base(DEVICE), self.library.fakecuda_ranges_base(DEVICE)

    def offset(self, address):
        if address == 0:
            return NO_MEMORY
        return address - self.memory if address >= self.memory else address - self.ranges + RANGES


class Execution:
    """A script under execution: a method for each operation, named `do_` and the operation."""

    def __init__(self, script):
        import torch

        self.torch, self.script = torch, script
        torch.cuda.init()
        self.device = Device()
        self.streams = [torch.cuda.default_stream()]
        while len(self.streams) <= highest_stream(script["ops"]):
            self.streams.append(torch.cuda.Stream())
        self.numbers = {stream.cuda_stream: i for i, stream in enumerate(self.streams)}
        self.current = 0
        self.tensors, self.pools, self.open_pools, self.graphs = {}, {}, {}, {}
        self.last_graph = None
        self.malloc, self.errors, self.snapshots = [], {}, []
        # Which operation an entry of the trace belongs to; releases before 2.10 have no such mark.
        self.mark = getattr(torch._C, "_cuda_setMemoryMetadata", lambda text: None)

    def run(self):
        torch, ops = self.torch, self.script["ops"]
        torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python", max_entries=1 << 62)
        for i, op in enumerate(ops):
            self.mark(str(i))
            try:
                perform = getattr(self, "do_" + str(op[0]), None)
                if perform is None:
                    raise ValueError("unknown operation")
                perform(i, *op[1:])
            except torch.OutOfMemoryError as error:
                self.errors[i] = "oom: " + first_line(error)
            except Exception as error:
                self.errors[i] = f"{type(error).__name__}: {first_line(error)}"
        self.mark(str(len(ops)))
        final, snapshot = self.state(), torch.cuda.memory._snapshot()
        return {
            "torch": torch.__version__,
            "script": {k: v for k, v in self.script.items() if k != "ops"},
            "n_ops": len(ops),
            "malloc": self.malloc,
            "errors": self.errors,
            "trace": [self.entry(e) for e in snapshot["device_traces"][DEVICE]],
            "snapshots": self.snapshots,
            "final": final,
            "settings": snapshot["allocator_settings"],
        }

    def do_malloc(self, i, name, size, stream):
        torch = self.torch
        if stream != self.current:
            self.current = stream
            torch.cuda.set_stream(self.streams[stream])
        try:
            # The tensor that had the name before is freed after this one is made.
            self.tensors[name] = torch.empty(size, dtype=torch.uint8, device=torch.device("cuda", DEVICE))
        except torch.OutOfMemoryError:
            self.malloc.append([i, None])
            raise
        self.malloc.append([i, self.device.offset(self.tensors[name].data_ptr())])

    def do_free(self, _, name):
        self.tensors.pop(name, None)

    def do_record_stream(self, _, name, stream):
        if name in self.tensors:
            self.tensors[name].record_stream(self.streams[stream])

    def do_hold(self, _, stream):
        self.device.library.fakecuda_hold(self.streams[stream].cuda_stream, 1)

    def do_release(self, _, stream):
        self.device.library.fakecuda_hold(self.streams[stream].cuda_stream, 0)

    def do_synchronize(self, _):
        self.torch.cuda.synchronize()

    def do_empty_cache(self, _):
        self.torch.cuda.empty_cache()

    def do_reset_peak(self, _):
        self.torch.cuda.reset_peak_memory_stats()

    def do_fraction(self, _, fraction):
        self.torch.cuda.set_per_process_memory_fraction(fraction)

    def do_config(self, _, text):
        newer = getattr(self.torch._C, "_accelerator_setAllocatorSettings", None)
        (newer or self.torch.cuda.memory._set_allocator_settings)(text)

    def do_capacity(self, _, size):
        self.device.library.fakecuda_set_capacity(DEVICE, size)

    def do_fail_next(self, _, count):
        self.device.library.fakecuda_refuse(DEVICE, count)

    def do_pool_new(self, _, name, options=None):
        self.pools[name] = self.torch.cuda.MemPool(**(options or {}))

    def do_pool_begin(self, _, name):
        # A context that was open under the name ends here.
        self.open_pools[name] = self.torch.cuda.use_mem_pool(self.pools[name])
        self.open_pools[name].__enter__()

    def do_pool_end(self, _, name):
        self.open_pools.pop(name).__exit__(None, None, None)

    def do_pool_del(self, _, name):
        self.pools.pop(name)

    def do_graph_begin(self, _, name):
        # The graph begun last stays alive when its name is deleted; `vramscope replay` has the same rule.
        self.last_graph = self.torch.cuda.CUDAGraph()
        self.graphs[name] = self.last_graph, self.torch.cuda.graph(self.last_graph)
        self.graphs[name][1].__enter__()

    def do_graph_end(self, _, name):
        self.graphs[name][1].__exit__(None, None, None)

    def do_graph_del(self, _, name):
        self.graphs.pop(name)

    def do_snapshot(self, i):
        self.snapshots.append({"op": i, **self.state()})

    def stream(self, handle):
        """A stream's number: negative for one that is not the script's, as a capture's."""
        return self.numbers.setdefault(handle, -len(self.numbers))

    def segments(self):
        try:
            return self.torch.cuda.memory_snapshot(include_traces=False)
        except TypeError:
            return self.torch.cuda.memory_snapshot()

    def state(self):
        offset = self.device.offset
        segments = []
        for segment in self.segments():
            kept = ("total_size", "segment_type", "allocated_size", "active_size", "requested_size", "is_expandable")
            blocks = [[offset(b["address"]), b["size"], b["requested_size"], b["state"]] for b in segment["blocks"]]
            segments.append({
                "address": offset(segment["address"]),
                "stream": self.stream(segment["stream"]),
                "pool": list(segment["segment_pool_id"]),
                **{key: segment[key] for key in kept},
                "blocks": blocks,
            })
        return {"segments": segments, "stats": dict(self.torch.cuda.memory_stats())}

    def entry(self, entry):
        """An entry of the trace as a row. One of an allocation that failed has no address, and what was free at its end."""
        row = [int(entry.get("user_metadata") or -1), entry["action"], 0, entry["size"], self.stream(entry["stream"])]
        if "device_free" in entry:
            row[2] = None
            row.append(entry["device_free"])
        elif entry.get("addr"):
            row[2] = self.device.offset(entry["addr"])
        return row


def first_line(error):
    return str(error).split("\n")[0]


def highest_stream(ops):
    places = {"malloc": 3, "record_stream": 2, "hold": 1, "release": 1}
    return max([0, *(op[places[op[0]]] for op in ops if op[0] in places)])


def main():
    import torch

    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    script = load(sys.argv[1])
    os.environ.update(variables(script, torch.__version__))
    result = Execution(script).run()
    store(sys.argv[2] if len(sys.argv) == 3 else "/dev/stdout", result)
    sys.stdout.flush()
    # No teardown: the result is written.
    os._exit(0)


if __name__ == "__main__":
    main()
