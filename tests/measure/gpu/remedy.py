#!/usr/bin/env python3
"""An out-of-memory error on a GPU, and whether the setting that `vramscope doctor` recommends really avoids it.

    remedy.py [--job NAME]... [--program PROGRAM] [--keep FOLDER]

Each job runs in processes of its own: with all of the GPU, recorded; then with the smallest capacity that `whatif` names for
that recording, where it has to fit, and with 2 % less, where it has to fail. Then `doctor` reads the recording of the failure,
and the job runs with as little memory under each setting that it recommends; for the best of them, also with the smallest
capacity that `whatif` names under it, and with 2 % less.

What is free is limited by memory that another part of the process holds, so it is the driver that refuses. Beside what a run
counted stands what `whatif` says of it.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
COUNTERS = {
    "peak_reserved": "reserved_bytes.all.peak",
    "peak_allocated": "allocated_bytes.all.peak",
    "device_allocs": "num_device_alloc",
    "device_frees": "num_device_free",
    "retries": "num_alloc_retries",
    "ooms": "num_ooms",
}


def run(name, capacity, out):
    """Runs a job in this process, with at most `capacity` bytes if it isn't 0. Prints what PyTorch counted as JSON."""
    sys.path.insert(0, str(HERE.parent.parent / "truth"))
    import torch

    import device
    import fragmenting

    agent, why = None, None
    if out:
        import vramscope

        agent = vramscope.attach(out=out, stacks="python")
    # What the driver loads while the job runs would otherwise come out of the capacity.
    torch.ones(64, 64, device="cuda").matmul(torch.ones(64, 64, device="cuda")).sum().item()
    if capacity:
        device.Device().set_capacity(capacity)
    torch.manual_seed(1)
    try:
        fragmenting.JOBS[name]()
    except torch.OutOfMemoryError as error:
        why = str(error).split(". If reserved")[0]
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    lost = agent.detach()["lost"] if agent else 0
    found = {key: stats[counter] for key, counter in COUNTERS.items()}
    print(json.dumps({**found, "why": why, "lost": lost}))


def in_process(name, conf="", capacity=0, out=None):
    environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": conf, "CUDA_MODULE_LOADING": "EAGER", "VRAMSCOPE_QUIET": "1"}
    command = [sys.executable, __file__, "--inside", name, str(capacity), str(out or "")]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return {"why": f"the process ended with {done.returncode}", **dict.fromkeys(COUNTERS, 0), "lost": 0}
    return json.loads(done.stdout.splitlines()[-1])


def ask(program, *arguments):
    """Returns what the program answers as JSON."""
    done = subprocess.run([program, *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def told(run):
    """Returns the counters of a run in a line."""
    numbers = (f"{run[key] / MIB:,.0f} MiB" if key.startswith("peak") else run[key] for key in COUNTERS)
    return ", ".join(f"{key} {number}" for key, number in zip(COUNTERS, numbers))


def pages(size):
    """Returns a size in whole pages of 2 MiB."""
    return -(-size // (2 * MIB)) * 2 * MIB


class Check:
    """The runs of one job."""

    def __init__(self, name, program, folder):
        self.name, self.program = name, program
        self.whole, self.failing = folder / f"{name}.vramscope", folder / f"{name}-failing.vramscope"

    def predicted(self, conf, capacity=None):
        """Returns what `whatif` says of the run with all of the GPU."""
        limit = ["--capacity", capacity] if capacity else []
        return ask(self.program, "whatif", self.whole, *limit, "--json", "--conf", conf)["runs"][-1]

    def run(self, what, conf="", capacity=0, out=None):
        """Runs the job and prints what it came to."""
        if out:
            out.unlink(missing_ok=True)
        found = in_process(self.name, conf, capacity, out)
        went = f"FAILS: {found['why']}" if found["why"] else "fits"
        print(f"  {what}{f', {capacity / MIB:,.0f} MiB' if capacity else ''}: {went}")
        print(f"    counted:   {told(found)}; {found['lost']} events lost", flush=True)
        if capacity:
            print(f"    predicted: {told(self.predicted(conf, capacity))}", flush=True)

    def smallest(self, conf, what):
        """Runs the job with the smallest capacity that `whatif` names under a setting, and with less. Returns the latter."""
        smallest = pages(self.predicted(conf)["smallest_capacity"])
        self.run(f"{what}, the smallest capacity", conf, smallest)
        less = pages(int(0.98 * smallest))
        self.run(f"{what}, 2 % less", conf, less, None if conf else self.failing)
        return less

    def all(self):
        print(self.name, flush=True)
        self.run("all of the GPU", out=self.whole)
        less = self.smallest("", "no settings")
        device = ask(self.program, "doctor", self.failing, "--json", "--fail-on", "never")["files"][0]["devices"][0]
        print(f"  doctor: {device['verdict']['sentence']}")
        remedies = device["verdict"]["remedies"]
        for remedy in remedies:
            print(f"    {'checked' if remedy['checked'] else 'try'}: {remedy['text']}  {remedy['copy']}")
        settings = [remedy["copy"].split("=", 1)[1].strip("'") for remedy in remedies if remedy["copy"].startswith("PYTORCH_CUDA_ALLOC_CONF=")]
        if not settings:
            print("  doctor recommends no setting")
            return
        for conf in settings:
            self.run(f"as little, {conf}", conf, less)
        self.smallest(settings[0], settings[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="append")
    parser.add_argument("--program", default="vramscope")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    import fragmenting

    with tempfile.TemporaryDirectory() as folder:
        keep = options.keep or pathlib.Path(folder)
        keep.mkdir(parents=True, exist_ok=True)
        for name in options.job or fragmenting.JOBS:
            Check(name, options.program, keep).all()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        run(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        main()
