#!/usr/bin/env python3
"""Runs jobs on PyTorch: each as it is, recorded, and then under every other setting.

    record.py FOLDER [JOB...]
    record.py --names             prints the names of all jobs

Writes FOLDER/JOB.pickle, the snapshot with its history, FOLDER/JOB.bare.pickle, the same without stacks, and
FOLDER/JOB.json with what PyTorch's allocator counted. PyTorch is imported once, and each run is a forked child: PyTorch
reads its settings when CUDA is first used, which happens in the child. What a job prints is in FOLDER/JOB.log.
"""

import gc
import json
import os
import pathlib
import resource
import signal
import sys
import traceback

import torch
import torch.cuda._gpu_trace
import torch.cuda.memory
import torch.optim
import torch.utils.checkpoint

import recording
import settings
from jobs import all_jobs

SECONDS_PER_RUN = 120
# The largest fraction of a device's memory that is a limit of its own.
MOST = 0.97


def in_child(work, path):
    """Calls `work` in a child and returns its result, which goes through the file at `path`."""
    log = path.with_suffix(".log")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            # PyTorch warns of every failed mapping.
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            signal.alarm(SECONDS_PER_RUN)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            path.write_text(json.dumps(work()))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            # No teardown: the result is written, and PyTorch's may hang in a forked child.
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        raise SystemExit(f"{path.stem}: a run ended with status {status}; {log} says why")
    result = json.loads(path.read_text())
    path.unlink()
    return result


def run(job, case, marks, snapshot):
    """Runs a job once, in this process."""
    # An object that waits for the collector would free memory at another point in another run.
    gc.disable()
    torch.manual_seed(1)
    # Settings that change while the job runs are those of a history that begins late.
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = job.conf if job.begins_late else case["conf"]
    found = recording.Recording(job, case, marks)
    result = found.run()
    if snapshot is not None:
        found.store(snapshot)
    result["total"] = torch.cuda.get_device_properties(0).total_memory
    return result


def record(name, job, folder):
    """Records a job, runs it under all settings, and writes what was counted."""
    path = folder / f"{name}.json"
    cases, marks = [], []
    for setting in settings.of(job):
        conf = job.conf if setting.conf is None else setting.conf
        case = {"name": setting.name, "conf": conf, "fraction": None, "capacity": None, "has_stacks": False}
        if setting.limit is not None:
            share = setting.limit * cases[0]["end"]["peak_reserved"] / cases[0]["total"]
            case["fraction"] = round(min(share, MOST), 6)
        if setting.capacity is not None:
            granules = int(setting.capacity * cases[0]["end"]["peak_reserved"]) // recording.GRANULE
            case["capacity"] = granules * recording.GRANULE
        snapshot = None
        if not cases:
            snapshot = folder / f"{name}.pickle"
            in_child(lambda: run(job, {**case, "has_stacks": True}, [], snapshot), path)
            snapshot = folder / f"{name}.bare.pickle"
        case.update(in_child(lambda: run(job, case, marks, snapshot), path))
        if not cases:
            marks = recording.requests_that_failed(snapshot)
        cases.append(case)
    path.write_text(json.dumps({"torch": torch.__version__, "memory": job.memory, "begins_late": job.begins_late, "cases": cases}))
    print(f"{torch.__version__} {name}: recorded, and run under {len(cases)} settings", flush=True)


def main():
    if sys.argv[1:] == ["--names"]:
        print("\n".join(all_jobs()))
        return
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    jobs = all_jobs()
    for name in sys.argv[2:] or jobs:
        record(name, jobs[name], folder)


if __name__ == "__main__":
    main()
