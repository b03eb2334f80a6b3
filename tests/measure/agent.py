#!/usr/bin/env python3
"""The agent's share of a job's time: the same job alone and recorded, alternating in one process.

    tests/measure/agent.py PYTHON [--rate EVENTS_PER_SECOND]... [--rounds N] [--seconds S]

PYTHON is a command that runs Python with torch. The job creates and frees tensors at a given rate, with plain Python work
in between that is calibrated so that the job alone has this rate. Then the same work is done with the agent attached. It
prints the median over all rounds of (recorded - alone) / alone, with the quartiles: of wall time, of the processor time of
the job's own thread, and of that of all threads, because the agent's threads may run on another core.
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
    "every event, no stacks": dict(mode="events", stacks=None),
    "every event, Python stacks": dict(mode="events", stacks="python"),
    "within 1 %, no stacks": dict(mode="budget", stacks=None),
    "within 1 %, Python stacks": dict(mode="budget", stacks="python"),
}


def job(rate, seconds, rounds, ways):
    """Runs in the measured process. Prints a line of JSON for each way."""
    import time

    import torch

    import vramscope

    torch.cuda.init()
    held = []

    def deep(n, call):
        return call() if n == 0 else deep(n - 1, call)

    def tensors(count):
        # Each tensor makes three events: an allocation, a requested free, and a completed free.
        for _ in range(count):
            held.append(torch.empty(1 << 18, device="cuda"))
            if len(held) > 20:
                held.pop(0)

    def spin(turns):
        x = 0
        for i in range(turns):
            x += i
        return x

    def timed(call):
        began, own, cpu = time.perf_counter(), time.thread_time(), time.process_time()
        call()
        return time.perf_counter() - began, time.thread_time() - own, time.process_time() - cpu

    each = 100
    chunks = max(1, round(rate * seconds / 3 / each))
    deep(15, lambda: tensors(1000))
    own = min(timed(lambda: tensors(each))[0] for _ in range(20))
    speed = 200_000 / min(timed(lambda: spin(200_000))[0] for _ in range(5))
    turns = max(0, int((seconds / chunks - own) * speed))

    def work():
        for _ in range(chunks):
            deep(15, lambda: tensors(each))
            spin(turns)

    with tempfile.TemporaryDirectory() as folder:
        found = {name: [] for name in ways}
        alone_rates, lost, events = [], dict.fromkeys(ways, 0), dict.fromkeys(ways, 0)
        timed(work)
        for round_ in range(rounds):
            for name in ways:
                before = timed(work)
                agent = vramscope.attach(out=os.path.join(folder, "a.vramscope"), **WAYS[name])
                is_wanted = (agent.mode == "every event") == (WAYS[name]["mode"] == "events")
                assert agent.state == "running" and is_wanted, agent.reason
                time.sleep(0.05)
                watched = timed(work)
                result = agent.detach()
                lost[name] += result["lost"]
                events[name] += result["events"]
                after = timed(work)
                alone = [(x + y) / 2 for x, y in zip(before, after)]
                alone_rates.append(3 * each * chunks / alone[0])
                found[name].append([(w - a) / a for w, a in zip(watched, alone)])
    for name in ways:
        wall, own, cpu = ([100 * shares[i] for shares in found[name]] for i in (0, 1, 2))
        line = {"way": name, "rate": statistics.median(alone_rates), "wall": wall, "own": own, "cpu": cpu}
        print(json.dumps({**line, "seen": events[name] / max(1, events[name] + lost[name])}), flush=True)


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{middle:6.2f} % ({low:.2f} to {high:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python")
    parser.add_argument("--rate", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--way", action="append", choices=list(WAYS))
    options = parser.parse_args()
    for rate in options.rate or [10_000, 50_000]:
        numbers = [str(rate), str(options.seconds), str(options.rounds), json.dumps(options.way or list(WAYS))]
        done = subprocess.run(
            [*shlex.split(options.python), str(pathlib.Path(__file__).resolve()), "--inside", *numbers],
            env={**os.environ, "PYTHONPATH": str(ROOT / "collector" / "python"), "VRAMSCOPE_QUIET": "1"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        for line in map(json.loads, done.stdout.strip().splitlines()):
            print(
                f"{line['rate']:8.0f} events/s  {line['way']:28} wall {quartiles(line['wall'])}  "
                f"job's thread {quartiles(line['own'])}  all threads {quartiles(line['cpu'])}  seen {100 * line['seen']:.1f} %"
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        job(int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), json.loads(sys.argv[5]))
    else:
        main()
