#!/usr/bin/env python3
"""What an event costs a job that does nothing but allocate and free: the agent beside PyTorch's own history.

    tests/measure/per_event.py PYTHON [--rounds N] [--pairs N] [--depth N]

PYTHON is a command that runs Python with torch. Each round starts a process for each way, in turn, because PyTorch cannot
remove a tracker. A process makes PAIRS tensors of 4,000 bytes and frees each at once: three events. Printed are the medians
over the rounds of the processor time of an event, in nanoseconds, less that of the job alone: in the job's own thread, and in
all threads. The last columns compare with PyTorch's own history of the same kind. Then: the seconds by which the agent
lengthens the job's start and its end.
"""

import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WAYS = {
    "alone": None,
    "PyTorch's history": dict(context=None),
    "PyTorch's history, Python stacks": dict(context="alloc", stacks="python"),
    "every event": dict(mode="events", stacks=None),
    "every event, Python stacks": dict(mode="events", stacks="python"),
    "within 1 %": dict(mode="budget", stacks=None),
    "within 1 %, Python stacks": dict(mode="budget", stacks="python"),
}
BESIDE = {
    "every event": "PyTorch's history",
    "every event, Python stacks": "PyTorch's history, Python stacks",
    "within 1 %": "PyTorch's history",
    "within 1 %, Python stacks": "PyTorch's history, Python stacks",
}


def job(way, pairs, depth):
    """Runs in the measured process. Prints a line of JSON."""
    import time

    import torch

    torch.empty(1, device="cuda")
    options, agent, result = WAYS[way], None, {}
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        if options is not None and "mode" in options:
            import vramscope

            agent = vramscope.attach(out=os.path.join(folder, "a.vramscope"), **options)
            assert agent.state == "running" and (agent.mode == "every event") == (options["mode"] == "events"), agent.reason
        elif options is not None:
            torch.cuda.memory._record_memory_history(max_entries=100_000, **options)
        seconds["start"] = time.perf_counter() - began

        def allocate(n):
            return torch.empty(1000, device="cuda") if n == 0 else allocate(n - 1)

        for _ in range(2000):
            allocate(depth)
        # In the mode within a budget, the first turns decide what is recorded.
        until = time.perf_counter() + 1.0
        while time.perf_counter() < until:
            allocate(depth)
        own, cpu = time.thread_time(), time.process_time()
        for _ in range(pairs):
            allocate(depth)
        own, cpu = time.thread_time() - own, time.process_time() - cpu
        began = time.perf_counter()
        if agent is not None:
            result = agent.detach()
        seconds["end"] = time.perf_counter() - began
    lost = {name: result[name] for name in ("events", "lost", "stacks_dropped") if name in result}
    print(json.dumps({"own": own / pairs / 3 * 1e9, "cpu": cpu / pairs / 3 * 1e9, **seconds, **lost}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--depth", type=int, default=2)
    options = parser.parse_args()
    found = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            command = [*shlex.split(options.python), str(pathlib.Path(__file__).resolve()), "--inside", way]
            done = subprocess.run(
                [*command, str(options.pairs), str(options.depth)],
                env={**os.environ, "PYTHONPATH": str(ROOT / "collector" / "python"), "VRAMSCOPE_QUIET": "1"},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            found[way].append(json.loads(done.stdout.strip().splitlines()[-1]))

    def median(way, name):
        return statistics.median(one[name] for one in found[way])

    print(f"{'way':34} {'own':>9} {'all':>9} {'own':>7} {'all':>7} {'start':>8} {'end':>8}  lost")
    for way in WAYS:
        own, cpu = (median(way, name) - median("alone", name) for name in ("own", "cpu"))
        if way == "alone":
            own, cpu = median(way, "own"), median(way, "cpu")
        beside = ""
        if way in BESIDE:
            theirs = (median(BESIDE[way], name) - median("alone", name) for name in ("own", "cpu"))
            beside = " ".join(f"{ours / other:6.2f}x" for ours, other in zip((own, cpu), theirs))
        times = f"{median(way, 'start'):7.3f}s {median(way, 'end'):7.3f}s"
        lost = max(100 * one.get("lost", 0) / max(1, one.get("lost", 0) + one.get("events", 0)) for one in found[way])
        print(f"{way:34} {own:7.0f}ns {cpu:7.0f}ns {beside:15} {times}  {lost:.0f} %")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        job(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
