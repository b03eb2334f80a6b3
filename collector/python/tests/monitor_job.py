"""Jobs that are watched by a monitor: `monitor_job.py NAME`. Each prints JSON as its last line."""

import json
import sys
import time

MIB = 1 << 20
LEAST = MIB


def tensors(torch, count, mebibytes):
    return [torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda") for _ in range(count)]


def wait_for(condition):
    until = time.monotonic() + 20
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return bool(condition())


def largest_of_snapshot(torch):
    blocks = [block for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]]
    return max((block["size"] for block in blocks if block["state"] == "inactive"), default=0)


def readings():
    """Looks between the steps of a program that frees every other tensor, without a thread."""
    import torch

    import vramscope

    acted = []
    monitor = vramscope.Monitor(0.3, acted.append, interval=None, least=LEAST)
    before = monitor.check()
    kept = tensors(torch, 100, 4)
    full = monitor.check()
    del kept[::2]
    passed = monitor.check()
    still = monitor.check()
    kept.clear()
    torch.cuda.empty_cache()
    fallen = monitor.check()
    kept = tensors(torch, 100, 4)
    del kept[::2]
    again = monitor.check()
    stats = torch.cuda.memory_stats()
    return {
        "looks": [len(found) for found in (before, full, passed, still, fallen, again)],
        "acted": len(acted),
        "times": [reading.times for reading in acted],
        "cached": [again[0].cached, stats["reserved_bytes.all.current"] - stats["active_bytes.all.current"]],
        "largest": [again[0].largest, largest_of_snapshot(torch)],
        "split": [again[0].inactive_split, stats["inactive_split_bytes.all.current"]],
        "unusable": again[0].unusable,
        "has_tracker": monitor._functions is not None,
        "reason": monitor.reason,
    }


def emptied():
    """Caches many whole segments, which the monitor releases."""
    import torch

    import vramscope

    with vramscope.Monitor(0.5, interval=0.02, least=LEAST) as monitor:
        kept = tensors(torch, 30, 30)
        most = torch.cuda.memory_reserved()
        kept.clear()
        is_released = wait_for(lambda: torch.cuda.memory_reserved() == 0)
        wait_for(lambda: monitor.actions)
    return {"most": most, "is_released": is_released, "actions": monitor.actions, "reason": monitor.reason}


def warned():
    """Is warned by the agent."""
    import torch

    import vramscope

    capacity = torch.cuda.get_device_properties(0).total_memory
    with vramscope.attach(out=sys.argv[2], warn_at=0.3) as agent:
        kept = tensors(torch, 40, max(2, capacity // MIB // 200))
        del kept[::2]
        wait_for(lambda: agent._monitor.actions)
        time.sleep(1.5)
        actions = agent._monitor.actions
    return {"actions": actions, "threads": agent._monitor._thread.is_alive()}


def failing():
    """Has an action that fails, and goes on."""
    import torch

    import vramscope

    def action(_reading):
        raise RuntimeError("no")

    monitor = vramscope.Monitor(0.3, action, interval=None, least=LEAST)
    for _ in range(5):
        kept = tensors(torch, 100, 4)
        del kept[::2]
        monitor.check()
        kept.clear()
        torch.cuda.empty_cache()
        monitor.check()
    return {"actions": monitor.actions, "reason": monitor.reason, "looks": len(monitor.check())}


def unused():
    """Never uses the GPU, so the monitor must not either."""
    import torch

    import vramscope

    with vramscope.Monitor(0.3, interval=0.01) as monitor:
        time.sleep(0.2)
        found = monitor.check()
    return {"is_initialized": torch.cuda.is_initialized(), "found": found, "reason": monitor.reason}


def cost():
    """Measures what a look takes of the thread's own time, in microseconds, with and without the tracker."""
    import torch

    import vramscope

    kept = tensors(torch, int(sys.argv[3]) if len(sys.argv) > 3 else 2000, 1)
    del kept[::2]
    monitor = vramscope.Monitor(0.999, print, interval=None, least=LEAST)

    def look(count):
        best = []
        for _ in range(5):
            began = time.thread_time()
            for _ in range(count):
                monitor._next_snapshot = 0.0
                monitor.check()
            best.append((time.thread_time() - began) / count * 1e6)
        return round(sorted(best)[2], 1)

    monitor.check()
    with_tracker = look(200) if monitor._functions is not None else None
    monitor._functions = None
    return {"blocks": 2 * len(kept), "tracker_us": with_tracker, "snapshot_us": look(5), "reason": monitor.reason}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()), flush=True)
