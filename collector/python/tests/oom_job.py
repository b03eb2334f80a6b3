"""Jobs that run out of memory: `oom_job.py NAME FOLDER`. Each prints JSON as its last line. The device has 2 GiB."""

import gc
import json
import os
import sys
import threading

MIB = 1 << 20
HUGE = 1 << 42


def tensor(torch, mebibytes):
    return torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda")


def name(folder, of):
    return os.path.join(folder, of)


def limit(torch):
    """Limits a larger device to 2 GiB."""
    total = torch.cuda.get_device_properties(0).total_memory
    if total > 2048 * MIB:
        torch.cuda.set_per_process_memory_fraction(2048 * MIB / total)


def retried(folder):
    """Fits at the third try. Each call holds 8 * batch MiB while it asks for batch * batch MiB."""
    import torch

    import vramscope

    seen, held, failures = [], [], []

    def failed(failure):
        failures.append(failure)

    @vramscope.retry_on_oom(sizes="batch", times=5, on_oom=failed, out=name(folder, "oom-{n}.pickle"))
    def step(note, batch=128):
        held.append(torch.cuda.memory_allocated())
        seen.append(batch)
        vramscope.step(batch)
        kept = [tensor(torch, batch) for _ in range(8)]
        kept.append(kept)  # A cycle, which only the collector can release.
        tensor(torch, batch * batch)
        return batch, note

    limit(torch)
    gc.disable()
    result = step("x")
    return {
        "result": result,
        "seen": seen,
        "held": held,
        "sizes": step.sizes,
        "failures": [(f.sizes, f.next_sizes, os.path.basename(f.path), "oom_job.py" in (f.verdict or "")) for f in failures],
        "is_recording": bool(torch._C._cuda_isHistoryEnabled()),
    }


def exhausted(folder):
    """Never fits: the last call's own error arrives, with its frames."""
    import torch

    import vramscope

    seen = []

    @vramscope.retry_on_oom(sizes=("batch", "length"), factor=0.1, times=2, out=None)
    def step(**sizes):
        seen.append(sizes)
        local = HUGE
        torch.empty(local, device="cuda")

    try:
        step(batch=64, length=2.5)
    except torch.OutOfMemoryError as error:
        at = error.__traceback__
        while at.tb_next is not None:
            at = at.tb_next
        local = at.tb_frame.f_locals["local"]
        return {"seen": seen, "local": local, "context": repr(error.__context__), "files": os.listdir(folder)}
    return {}


def guarded(folder):
    """Skips a step that does not fit, and lets another error and another step's failure through."""
    import torch

    import vramscope

    def deep(torch):
        kept = [tensor(torch, 100) for _ in range(10)]
        tensor(torch, 4000)
        return kept

    limit(torch)
    with vramscope.oom_guard(lambda failure: True, out=name(folder, "{n}.pickle")):
        deep(torch)
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    errors = []
    for guard, call in [
        (vramscope.oom_guard(lambda failure: True, out=None), lambda: [][1]),
        (vramscope.oom_guard(lambda failure: None, out=None), lambda: deep(torch)),
        (vramscope.oom_guard(out=None), lambda: exec("raise RuntimeError('CUDA error: invalid argument')")),
    ]:
        try:
            with guard:
                call()
        except Exception as error:
            errors.append(type(error).__name__)
    return {"left": [allocated, reserved], "errors": errors, "files": sorted(os.listdir(folder))}


def beside(folder):
    """Guards a job that an agent records: into a file, and then without one in both modes."""
    import torch

    import vramscope

    out, paths = name(folder, "run.vramscope"), []

    def failed(failure):
        paths.append(failure.path)
        return True

    away = {"to": "http://127.0.0.1:9", "end_seconds": 0.2}
    for mode, options in (("events", {"out": out}), ("events", away), ("budget", {**away, "history": 300})):
        agent = vramscope.attach(mode=mode, **options)
        vramscope.step(3)
        with vramscope.oom_guard(failed, out=name(folder, f"{mode}.pickle"), history=500):
            for _ in range(100):
                tensor(torch, 1)
            torch.empty(HUGE, device="cuda")
        agent.detach()
        torch.cuda.memory._record_memory_history(enabled=None)
    with vramscope.oom_guard():
        again = bool(torch._C._cuda_isHistoryEnabled())
    return {"paths": [os.path.basename(path) for path in paths], "is_again": again}


def handed_over(folder):
    """Holds a ring before, in and after an agent's recording, which has its stacks all the time."""
    import torch

    import vramscope

    found = []

    def note():
        found.append([bool(torch._C._cuda_isHistoryEnabled()), len(torch.cuda.memory._snapshot()["device_traces"][0]) > 1])

    first = vramscope.record(name(folder, "first.pickle"), on_oom=500)
    with first:
        tensor(torch, 1)
        tensor(torch, 1)
        note()
        agent = vramscope.attach(out=name(folder, "run.vramscope"))
        tensor(torch, 2)
    for ends_first in (False, True):
        tensor(torch, 3)
        note()
        with vramscope.record(name(folder, "inner.pickle"), on_oom=500):
            tensor(torch, 4)
            tensor(torch, 4)
            note()
            if ends_first:
                agent.detach()
                note()
    found.append(bool(torch._C._cuda_isHistoryEnabled()))
    return found


def ring(folder):
    """Keeps the last events, of which the file has exactly that many, and marks."""
    import torch

    import vramscope

    fine = vramscope.record(name(folder, "fine.vramscope"), on_oom=True)
    with fine:
        tensor(torch, 1)
    with vramscope.record(name(folder, "oom.vramscope"), on_oom=300) as recording:
        for i in range(400):
            vramscope.step(i)
            tensor(torch, 1)
        with vramscope.record(name(folder, "inner.vramscope"), on_oom=7):
            thread = threading.Thread(target=lambda: fails(torch))
            thread.start()
            thread.join()
        is_recording = bool(torch._C._cuda_isHistoryEnabled())
    return {
        "paths": [fine.path, os.path.basename(recording.path)],
        "is_recording": [is_recording, bool(torch._C._cuda_isHistoryEnabled())],
        "files": sorted(os.listdir(folder)),
    }


def fails(torch):
    try:
        torch.empty(HUGE, device="cuda")
    except torch.OutOfMemoryError:
        pass


def files(folder):
    """Records blocks, calls, an error, and a block inside another."""
    import torch

    import vramscope

    first, inner = vramscope.record(name(folder, "first.vramscope")), vramscope.record(name(folder, "inner.vramscope"))
    errors = []
    try:
        with first:
            with inner:
                tensor(torch, 1)
            raise KeyError("mine")
    except KeyError as error:
        errors.append(repr(error))

    @vramscope.record(name(folder, "call{n}.vramscope"), stacks=None)
    def call(depth):
        tensor(torch, 1)
        return depth and call(depth - 1)

    call(1)
    call(0)
    return {
        "errors": errors,
        "paths": [os.path.basename(first.path), inner.path],
        "events": first.result["events"],
        "files": sorted(os.listdir(folder)),
        "after": repr(vramscope.detach()),
    }


def unused(folder):
    """Never uses the GPU."""
    import torch

    import vramscope

    with vramscope.record(name(folder, "a.vramscope")), vramscope.record(name(folder, "b.vramscope"), on_oom=True):
        with vramscope.oom_guard():
            pass
    return {"is_initialized": torch.cuda.is_initialized(), "files": os.listdir(folder)}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](sys.argv[2])), flush=True)
