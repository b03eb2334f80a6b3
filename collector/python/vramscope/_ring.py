"""PyTorch's own ring of its last events, and snapshots of it as files. Needs neither the native library nor a server.

PyTorch keeps the last events of each device in a ring of a fixed number of entries. An entry with a Python stack takes about
0.4 KiB of host memory, so the default of 100,000 entries takes about 40 MiB a device, and its file 8 MiB. Writing a snapshot
needs some 80 MiB for a moment.
"""

from __future__ import annotations

import collections
import contextlib
import os
import pickle
import sys
import threading
import time

from . import _hook, _torch
from ._log import log

ENTRIES = 100_000
"""How many events of each device the ring keeps if nothing else is asked for."""
MARKS = 10_000
"""How many marks are kept beside it."""
STAGES = ("START", "END", "INSTANT")

_lock = threading.RLock()
_holders = 0
_is_ours = False
_settings = ("alloc", "python")
"""Which events have a stack, and which frames it has, in a ring that was started here."""
_is_observed = False
_marks = collections.deque(maxlen=MARKS)
_watchers = []


def entries(value, name):
    """Returns a number of entries: `value`, or the default if it is True."""
    if value is True:
        return ENTRIES
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} must be a number of events, not {value!r}")
    return value


def hold(count):
    """Keeps the last `count` events from now on, or from CUDA's initialisation on, until `release`. If others hold the ring
    or the program keeps a history of its own, that one is used as it is."""
    global _holders
    with _lock:
        _holders += 1
    _hook.when_torch_cuda_is_imported(lambda torch_cuda: _when_initialised(torch_cuda, count))


def _when_initialised(torch_cuda, count):
    if torch_cuda.is_initialized():
        _start(count)
    elif _holders:
        # PyTorch calls this at the end of its initialisation, before the first allocation.
        torch_cuda._lazy_call(lambda: _start(count))


def _start(count):
    global _is_ours, _settings
    torch = sys.modules["torch"]
    try:
        with _lock:
            if not _holders or _torch.backend(torch) != "native":
                return
            agent = _agent_with_history()
            if _torch.is_recording(torch) and agent is None:
                return
            if agent is None or agent.config.stacks is None:
                _settings = ("alloc", "python")
            else:
                _settings = (agent.config.context, agent.config.stacks)
            if agent is not None and not _is_of_every_event(agent):
                # Within a budget, an agent reads the ring again and again. A larger one would cost more than its budget.
                count = min(count, agent.config.history)
            _torch.record_history(torch, count, *_settings)
            _is_ours = True
            _tell(torch)
    except Exception as error:  # The job runs without the ring.
        log(f"PyTorch's history cannot be recorded: {type(error).__name__}: {error}")


def _tell(torch):
    """Tells the agent of a change of the history, as if the program had made it. Its own ring comes back after this one."""
    if _torch._watcher is not None:
        is_recording = _torch.is_recording(torch)
        _torch._watcher(is_recording, _settings[0] if is_recording else None)


def hold_again(count):
    """Starts the ring again if somebody has ended it since `hold`."""
    torch_cuda = sys.modules.get("torch.cuda")
    if torch_cuda is not None and torch_cuda.is_initialized():
        _start(count)


def restart(count):
    """Empties the ring, if it was started here."""
    with _lock:
        if _is_ours:
            _marks.clear()
            _torch.record_history(sys.modules["torch"], count, *_settings)


def release():
    """Ends what `hold` began. The last one ends the history, if it was started here."""
    global _holders, _is_ours
    with _lock:
        _holders -= 1
        if _holders:
            return
        _marks.clear()
        was_ours, _is_ours = _is_ours, False
        if was_ours:
            torch = sys.modules["torch"]
            _torch.end_history(torch)
            _tell(torch)


def recorder():
    """Returns the agent that records this process now, or None."""
    from . import _agent

    agent = _agent.current()
    return agent if isinstance(agent, _agent.Agent) and agent.state == "running" else None


def _agent_with_history():
    """Returns the agent that has switched the history on, or None. Its ring is no use: that of an agent that records every
    event has one entry, because only the stacks matter, and within a budget it is emptied from time to time."""
    agent = recorder()
    history = agent and getattr(agent._mode, "_history", None)
    return agent if history is not None and history.is_ours else None


def _is_of_every_event(agent):
    from . import _tracker

    return isinstance(agent._mode, _tracker.EveryEvent)


def mark(name, stage=2):
    """Keeps a mark, if anyone holds the ring: 0 starts a span, 1 ends it, 2 is a moment."""
    if _holders:
        _marks.append((str(name), stage, time.time_ns() // 1000))


def is_in_use(torch):
    """Returns whether PyTorch keeps a history, whoever switched it on."""
    return _torch.backend(torch) == "native" and _torch.is_recording(torch)


def write(path):
    """Writes a snapshot with the ring, as PyTorch's own viewer reads it too. Returns the path. An existing file is replaced
    once the new one is complete."""
    torch = sys.modules["torch"]
    snapshot = _torch.snapshot(torch, traces=True)
    kept = snapshot.setdefault("external_annotations", [])
    for name, stage, time_us in list(_marks):
        for device in range(len(snapshot["device_traces"])):
            kept.append({"device": device, "name": name, "stage": STAGES[stage], "time_us": time_us})
    path = os.path.abspath(os.fspath(path))
    replace(path, lambda file: pickle.dump(snapshot, file))
    return path


def replace(path, write):
    """Writes a file by `write(file)` under another name until it is complete. An existing one stays if that fails."""
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())  # Some file systems notice only now that a disk is full.
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def watch(call):
    """Calls `call()` whenever PyTorch runs out of memory, also if the program catches the error, until `unwatch`."""
    with _lock:
        _watchers.append(call)
    _hook.when_torch_cuda_is_imported(_observe)


def unwatch(call):
    with _lock:
        if call in _watchers:
            _watchers.remove(call)


def _observe(torch_cuda):
    global _is_observed
    with _lock:
        is_observed, _is_observed = _is_observed, True
    if is_observed:
        return  # PyTorch cannot remove an observer.

    def observer(device, size, total, free):
        for call in list(_watchers):
            try:
                call()
            except BaseException as error:  # It would replace the error that the user has to see.
                log(f"Failed to record the out-of-memory state: {type(error).__name__}: {error}")

    def register():
        try:
            sys.modules["torch"]._C._cuda_attach_out_of_memory_observer(observer)
        except Exception as error:
            log(f"Out-of-memory errors will not be recorded at once: {error}")

    if torch_cuda.is_initialized():
        register()
    else:
        # Registering initialises CUDA, which the program may never do.
        torch_cuda._lazy_call(register)
