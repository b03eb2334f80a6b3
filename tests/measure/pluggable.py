#!/usr/bin/env python3
"""The cost of an allocation in PyTorch with Vramscope's allocator and with PyTorch's own.

    VRAMSCOPE_LIBRARY=target/release/libvramscope_pluggable.so python pluggable.py [ROUNDS [PASSES]]

Requires a Python with torch and a GPU. Each way runs in its own process, PASSES (5) times in turn. It prints the best pass
of each: the nanoseconds of the calling thread for one `torch.empty` and the end of its tensor, including all of Python and
PyTorch, in a function DEPTH calls deep. The differences are the costs of the allocators and of recording.
"""

import os
import subprocess
import sys
import tempfile
import time

DEPTH = 20
WAYS = {
    "PyTorch's own": None,
    "PyTorch's own, history without stacks": {"enabled": "all", "context": None},
    "PyTorch's own, history with Python stacks of allocations": {"enabled": "all", "context": "alloc"},
    "PyTorch's own, history with all Python stacks": {"enabled": "all", "context": "all"},
    "ours": {"context": "none"},
    "ours, recording without stacks": {"context": "none", "out": True},
    "ours, recording with stacks of allocations": {"context": "alloc", "out": True},
    "ours, recording with all stacks": {"context": "all", "out": True},
}


def deep(depth, work):
    return work() if depth == 0 else deep(depth - 1, work)


def measure(way, rounds):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "collector", "python"))
    import torch

    options = WAYS[way]
    file = None
    if way.startswith("ours"):
        import vramscope

        options = dict(options)
        if options.pop("out", None):
            file = tempfile.NamedTemporaryFile(suffix=".vramscope")
            options["out"] = file.name
        vramscope.use_allocator(**options)
    elif options is not None:
        torch.cuda.memory._record_memory_history(stacks="python", max_entries=100_000, **options)
    kept = [torch.empty(1000 * n, device="cuda") for n in range(1, 200)]

    def work():
        empty = torch.empty
        # The cost of the loop itself is the same for all ways.
        start = time.thread_time_ns()
        for _ in range(rounds):
            empty(4096, device="cuda")
        return (time.thread_time_ns() - start) / rounds

    # With pauses, so that the writer keeps up as in a job, which computes between allocations.
    best = min(pause() or deep(DEPTH, work) for _ in range(10))
    assert len(kept) == 199
    print(best)


def pause():
    time.sleep(0.05)


def main():
    if len(sys.argv) == 3 and sys.argv[1] in WAYS:
        return measure(sys.argv[1], int(sys.argv[2]))
    rounds = sys.argv[1] if len(sys.argv) > 1 else "10000"
    passes = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    best = {}
    for _ in range(passes):
        for way in WAYS:
            out = subprocess.run([sys.executable, __file__, way, rounds], capture_output=True, text=True, check=True)
            best[way] = min(best.get(way, float("inf")), float(out.stdout.split()[-1]))
    for way, nanoseconds in best.items():
        print(f"{nanoseconds:8.0f} ns  {way}")


if __name__ == "__main__":
    main()
