#!/usr/bin/env python3
"""A real training job on PyTorch's allocator, on Vramscope's, and on cudaMallocAsync, each in processes of its own that alternate.

    swapped.py [--job NAME]... [--rounds N] [--seconds S] [--steps N]

Prints whether the losses of the first steps are equal to the bit, whether the memory statistics are, and the steps per second
of Vramscope's allocator divided by those of PyTorch's; of cudaMallocAsync, the steps per second and the peak of what it reserved.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

STATISTICS = [
    f"{what}.all.{kind}"
    for what in ("allocated_bytes", "active_bytes", "reserved_bytes", "requested_bytes", "segment", "allocation")
    for kind in ("current", "peak", "allocated")
] + ["num_device_alloc", "num_device_free", "num_alloc_retries"]


def run(allocator, name, steps, seconds):
    """Runs in the measured process. Prints what it found as JSON."""
    import torch

    import training
    import recorded

    if allocator == "vramscope":
        import vramscope

        vramscope.use_allocator(context="none")
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    step = training.JOBS[name]()
    losses = [step().item().hex() for _ in range(steps)]
    stats = torch.cuda.memory_stats()
    torch.use_deterministic_algorithms(False)
    recorded.speed(step, seconds)
    speed = recorded.speed(step, 2 * seconds)
    print(json.dumps({"losses": losses, "stats": {key: stats.get(key, 0) for key in STATISTICS}, "speed": speed}))


def in_process(allocator, name, options):
    conf = "backend:cudaMallocAsync" if allocator == "async" else ""
    done = subprocess.run(
        [sys.executable, __file__, "--inside", allocator, name, str(options.steps), str(options.seconds)],
        env={**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "PYTHONWARNINGS": "ignore", "PYTORCH_CUDA_ALLOC_CONF": conf},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main():
    import training

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="append", choices=list(training.JOBS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    for name in options.job or training.JOBS:
        rounds = [[in_process(way, name, options) for way in ("torch", "vramscope", "async")] for _ in range(options.rounds)]
        pairs = [pair[:2] for pair in rounds]
        first = pairs[0][0]
        again = all(pair[0]["losses"] == first["losses"] for pair in pairs)
        losses = all(pair[1]["losses"] == first["losses"] for pair in pairs)
        differing = sorted({key for pair in pairs for key in STATISTICS if pair[1]["stats"][key] != pair[0]["stats"][key]})
        ratios = [ours["speed"] / theirs["speed"] for theirs, ours in pairs]
        print(f"{name}: losses of {options.steps} steps {'equal' if losses else 'DIFFER'} (PyTorch beside itself: {'equal' if again else 'differ'})")
        print(f"  statistics: {'all equal' if not differing else ', '.join(differing) + ' differ'}; peak reserved {first['stats']['reserved_bytes.all.peak']:,}")
        for key in differing:
            print(f"    {key}: PyTorch {pairs[0][0]['stats'][key]:,}, Vramscope {pairs[0][1]['stats'][key]:,}")
        print(f"  speed: {statistics.median(ratios):.4f} of PyTorch's ({min(ratios):.4f} to {max(ratios):.4f}); {first['speed']:.2f} steps/s")
        ratios = [runs[2]["speed"] / runs[0]["speed"] for runs in rounds]
        reserved = rounds[0][2]["stats"]["reserved_bytes.all.peak"]
        print(f"  cudaMallocAsync: {statistics.median(ratios):.4f} of its speed ({min(ratios):.4f} to {max(ratios):.4f}); peak reserved {reserved:,}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        run(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
    else:
        main()
