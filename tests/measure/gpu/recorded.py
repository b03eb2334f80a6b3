#!/usr/bin/env python3
"""What recording costs a real training job on a GPU: the same steps alone and recorded, in turns in one process.

    recorded.py [--job NAME]... [--rounds N] [--seconds S]

The installed package `vramscope` is measured. In each round every way of recording runs between two runs of the job alone.
Prints medians over all rounds, with the quartiles: the steps per second of a way divided by those of the job alone.
"""

import argparse
import os
import statistics
import tempfile
import time

import torch
import training

import vramscope

WAYS = {
    "every event, no stacks": dict(mode="events", stacks=None),
    "every event, Python stacks": dict(mode="events", stacks="python"),
    "within 1 %": dict(mode="budget", stacks=None),
}
HISTORY = {
    "PyTorch's history, no stacks": dict(context=None),
    "PyTorch's history, Python stacks": dict(context="alloc", stacks="python"),
}


def speed(step, seconds):
    """Returns how many steps a second there are."""
    torch.cuda.synchronize()
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        step()
        steps += 1
    torch.cuda.synchronize()
    return steps / (time.perf_counter() - began)


def recorded(step, seconds, options, folder):
    """Returns the speed while the agent records, and the agent's result."""
    agent = vramscope.attach(out=os.path.join(folder, "a.vramscope"), **options)
    assert agent.state == "running" and (agent.mode == "every event") == (options["mode"] == "events"), agent.reason
    time.sleep(0.1)
    found = speed(step, seconds)
    return found, agent.detach()


def with_history(step, seconds, options):
    """Returns the speed while PyTorch keeps its history."""
    torch.cuda.memory._record_memory_history(max_entries=100_000, **options)
    found = speed(step, seconds)
    torch.cuda.memory._record_memory_history(enabled=None)
    return found


def measure(name, rounds, seconds):
    """Measures a job. Returns the medians and quartiles of each way."""
    torch.manual_seed(1)
    step = training.JOBS[name]()
    speed(step, 3 * seconds)
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    alone = speed(step, seconds)
    events = 2 * (torch.cuda.memory_stats()["allocation.all.allocated"] - before) / seconds
    found = {way: [] for way in (*WAYS, *HISTORY)}
    speeds, lost, seen = [alone], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for way in found:
                if way in WAYS:
                    now, result = recorded(step, seconds, WAYS[way], folder)
                    lost += result["lost"] if WAYS[way]["mode"] == "events" else 0
                    seen += result["events"]
                else:
                    now = with_history(step, seconds, HISTORY[way])
                after = speed(step, seconds)
                found[way].append(2 * now / (speeds[-1] + after))
                speeds.append(after)
    print(f"{name}: {statistics.median(speeds):.2f} steps/s alone, {events:,.0f} events/s; {lost:,} of {seen:,} events lost", flush=True)
    for way, ratios in found.items():
        low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        print(f"  {way:34} {100 * middle:6.2f} % ({100 * low:.2f} to {100 * high:.2f})", flush=True)
    noise = [after / before for before, after in zip(speeds, speeds[1:])]
    low, middle, high = statistics.quantiles(noise, n=4)
    print(f"  {'alone beside alone':34} {100 * middle:6.2f} % ({100 * low:.2f} to {100 * high:.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="append", choices=list(training.JOBS))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    print(torch.__version__, torch.cuda.get_device_name())
    for name in options.job or training.JOBS:
        measure(name, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
