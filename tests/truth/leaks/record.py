#!/usr/bin/env python3
"""Runs jobs on PyTorch and records them.

    record.py FOLDER JOBS [JOB...]

JOBS is the folder of the jobs. Writes FOLDER/JOB.pickle, the snapshot with its history, and FOLDER/JOB.json, what
PyTorch counted. PyTorch is imported once, and each run is a forked child. What a job prints is in FOLDER/JOB.log.
"""

import importlib.util
import json
import os
import pathlib
import resource
import signal
import sys
import time
import traceback

import torch
import torch._dynamo
import torch.optim
import torch.utils.checkpoint

from run import Run

SECONDS_PER_RUN = 60
AT_A_TIME = min(os.cpu_count(), 4)


def load(folder):
    """Returns the jobs of a folder by name."""
    jobs = {}
    for path in sorted(folder.glob("[!_]*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        jobs.update(vars(module))
    return jobs


def run(job, path):
    """Runs a job in this process."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    # The library's choice of an algorithm needs a device; PyTorch's own convolutions do not.
    torch.backends.cudnn.enabled = False
    torch.cuda.init()
    recorded = Run(path.with_suffix(".pickle"))
    if not getattr(job, "begins_late", False):
        recorded.begin()
    began = time.monotonic()
    job(recorded)
    assert recorded.has_ended, "the job has no loop over run.steps, and no run.end()"
    found = {**recorded.result(), "seconds": round(time.monotonic() - began, 2)}
    path.with_suffix(".json").write_text(json.dumps(found))


def start(job, path):
    """Starts a child that runs a job; returns its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        log = os.open(path.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        signal.alarm(SECONDS_PER_RUN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        run(job, path)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        # No teardown: the result is written, and PyTorch's may hang in a forked child.
        sys.stderr.flush()
        os._exit(status)


def wait(running):
    """Waits until one of the children has ended; returns whether it did its work."""
    pid, status = os.wait()
    path = running.pop(pid)
    status = os.waitstatus_to_exitcode(status)
    if status != 0:
        path.with_suffix(".pickle").unlink(missing_ok=True)
        print(f"{path.stem}: its run ended with status {status}; {path.with_suffix('.log')} says why", flush=True)
    return status == 0


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    folder, jobs = pathlib.Path(sys.argv[1]), load(pathlib.Path(sys.argv[2]))
    folder.mkdir(parents=True, exist_ok=True)
    running, is_right = {}, True
    for name in sys.argv[3:]:
        if len(running) == AT_A_TIME:
            is_right &= wait(running)
        running[start(jobs[name], folder / name)] = folder / name
    while running:
        is_right &= wait(running)
    sys.exit(0 if is_right else 1)


if __name__ == "__main__":
    main()
