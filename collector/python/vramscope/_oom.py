"""What happens when memory runs out: the verdict, a recording, memory given back, and another call with less.

`vramscope.oom_guard` and `vramscope.retry_on_oom` document it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import itertools
import numbers
import os
import re
import sys
import threading
import traceback
from typing import Any, Dict, NamedTuple, Optional

from . import _monitor, _program, _ring
from ._log import log, why

MOST_FILES = 10
"""How many files a process writes: one that runs out of memory in every step must not fill the disk."""
OUT = "oom-{pid}-{n}.pickle"
TEXTS = ("CUDA out of memory", "CUDA error: out of memory", "HIP out of memory", "HIP error: out of memory")
"""What a `RuntimeError` says that is not PyTorch's `OutOfMemoryError`: errors of older releases, of the driver and of
another allocator."""

_numbers = itertools.count(1)
_lock = threading.Lock()
_is_holding = False


class Failure(NamedTuple):
    """A failed allocation, for `on_oom`. It holds no tensor."""

    message: str
    """The text of the error."""
    path: Optional[str]
    """The file that was written, or None."""
    verdict: Optional[str]
    """What ``vramscope doctor`` says, or None."""
    sizes: Dict[str, Any]
    """The arguments of the failed call, by the names in `sizes` of `retry_on_oom`; empty for a guard."""
    next_sizes: Dict[str, Any]
    """Those of the next call; empty if there is none."""


def is_out_of_memory(error):
    """Returns whether an error says that the GPU's memory ran out."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(error, RuntimeError):
        return False
    of = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
    return isinstance(error, of) or any(text in str(error) for text in TEXTS)


def hold(history):
    """Makes PyTorch keep its last events from now on until the process ends, so that also a later failure has those of
    earlier steps."""
    global _is_holding
    if not history:
        return
    with _lock:
        was_holding, _is_holding = _is_holding, True
    if was_holding:
        _ring.hold_again(history)
    else:
        _ring.hold(history)


def forget(error):
    """Clears the variables of the finished frames that an error and those before it hold, and thereby their tensors. What
    the errors print stays as it is."""
    waiting, seen = [error], set()
    while waiting:
        of = waiting.pop()
        if of is None or id(of) in seen:
            continue
        seen.add(id(of))
        waiting += [of.__cause__, of.__context__]
        traceback.clear_frames(of.__traceback__)


def give_back():
    """Releases what nothing holds any longer. Returns a sentence about it."""
    cuda = sys.modules["torch"].cuda
    gc.collect()
    if not cuda.is_initialized():
        return "CUDA is not in use."
    devices = range(cuda.device_count())
    before = sum(cuda.memory_reserved(device) for device in devices)
    cuda.empty_cache()
    after = sum(cuda.memory_reserved(device) for device in devices)
    held = sum(cuda.memory_allocated(device) for device in devices)
    return f"{_monitor._bytes(max(0, before - after))} were given back to the driver; {_monitor._bytes(held)} remain in use."


def _write(out):
    """Writes what led to the failure. Returns the file, or None, and whether it has events: it is this process's recording,
    or a new snapshot."""
    from . import _agent

    agent = _agent.current()
    claim = getattr(agent, "_claim", None)
    if claim is not None and getattr(agent, "state", None) == "running":
        agent.flush()
        return claim.path, True
    number = next(_numbers)
    if out is None or number > MOST_FILES:
        if out is not None and number == MOST_FILES + 1:
            log(f"{MOST_FILES} files were written; no more are.")
        return None, False
    path = os.path.abspath(os.fspath(out).replace("{pid}", str(os.getpid())).replace("{n}", str(number)))
    if hasattr(agent, "dump_snapshot"):
        agent.dump_snapshot(path)
        return path, True
    return _ring.write(path), _ring.is_in_use(sys.modules["torch"])


def doctor(path, message=None, program=None):
    """Returns what the program's doctor says about a file, or about the text of an error if that is given; or None."""
    said, why = _program.run("doctor", "--", path if message is None else "-", text=message, program=program)
    if said is None:
        log(f"No verdict: {why.rstrip('.')}." + (f" Later: vramscope doctor {path}" if path else ""))
        return None
    # Its first line is the file's name.
    return said.partition("\n")[2].strip("\n").rstrip()


def _brief(message):
    """Returns what failed and how much was asked for. The rest of PyTorch's text is in the error itself."""
    found = re.match(r".*?\. Tried to allocate [^.]*\.\d* ?\w*\.", message)
    return found[0] if found else (message.splitlines() or ["no text"])[0]


def report(error, where, out, program):
    """Writes the file and prints the verdict. Returns (message, path, verdict)."""
    message, path, has_events = str(error), None, False
    log(f"Out of memory{where}: {_brief(message)}")
    try:
        path, has_events = _write(out)
    except Exception as reason:  # The error itself matters more.
        log(f"The memory's state was not written to {out}: {why(reason)}")
    if path is not None:
        log(f"What led to it: {path}")
    verdict = doctor(path, None if has_events else message, program)
    if verdict is not None and not os.environ.get("VRAMSCOPE_QUIET"):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            print(verdict, file=sys.stderr, flush=True)
    return message, path, verdict


def _require_whole_call(function, name):
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    if any(is_such(function) for is_such in kinds):
        raise TypeError(
            f"{name} cannot decorate {function.__qualname__}, which is a generator or a coroutine: it only begins when it is "
            "called. Use vramscope.oom_guard() inside it."
        )


class Guard(contextlib.ContextDecorator):
    """Reports when memory runs out. Created by `vramscope.oom_guard`."""

    def __init__(self, on_oom=None, *, out=OUT, history=_ring.ENTRIES, program=None):
        if on_oom is not None and not callable(on_oom):
            raise TypeError(f"on_oom must be a function, not {on_oom!r}")
        self._on_oom, self._out, self._program = on_oom, out, program
        self._history = _ring.entries(history, "history")

    def __call__(self, function):
        _require_whole_call(function, "oom_guard")
        return super().__call__(function)

    def __enter__(self):
        hold(self._history)
        return self

    def __exit__(self, _kind, error, _traceback):
        if error is None or not is_out_of_memory(error):
            return False
        failure = Failure(*report(error, "", self._out, self._program), {}, {})
        if self._on_oom is None or self._on_oom(failure) is not True:
            return False
        forget(error)
        log(give_back())
        return True


def _is_one_of_many():
    of = sys.modules.get("torch.distributed")
    return of is not None and of.is_available() and of.is_initialized() and of.get_world_size() > 1


def less(value, factor):
    """Returns a smaller size: an integer stays one, and is at least 1."""
    if not isinstance(value, numbers.Integral):
        return value * factor
    return type(value)(max(1, min(int(value * factor), value - 1)))


def _text(sizes):
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


class Retry:
    """Calls a function again with less. Created by `vramscope.retry_on_oom`."""

    def __init__(self, sizes, factor, times, on_oom, out, history, program, in_many_ranks):
        self._names = (sizes,) if isinstance(sizes, str) else tuple(sizes)
        if not self._names or not all(isinstance(name, str) for name in self._names):
            raise ValueError(f"sizes must name at least one argument, not {sizes!r}")
        if not 0 < float(factor) < 1:
            raise ValueError(f"factor must be more than 0 and less than 1, not {factor!r}")
        if isinstance(times, bool) or not isinstance(times, int) or times < 1:
            raise ValueError(f"times must be a number of calls, at least 1, not {times!r}")
        if on_oom is not None and not callable(on_oom):
            raise TypeError(f"on_oom must be a function, not {on_oom!r}")
        self._factor, self._times, self._on_oom = float(factor), times, on_oom
        self._out, self._program, self._in_many_ranks = out, program, in_many_ranks
        self._history = _ring.entries(history, "history")

    def __call__(self, function):
        _require_whole_call(function, "retry_on_oom")
        signature = inspect.signature(function)
        takes_any = any(of.kind is of.VAR_KEYWORD for of in signature.parameters.values())
        for name in self._names:
            if name not in signature.parameters and not takes_any:
                raise ValueError(f"{function.__qualname__} has no argument {name!r}: it takes {signature}")

        @functools.wraps(function)
        def call(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            places = {name: self._place(signature, bound, name) for name in self._names}
            hold(self._history)
            for left in range(self._times, -1, -1):
                sizes = {name: of[name] for name, of in places.items()}
                try:
                    result = function(*bound.args, **bound.kwargs)
                except Exception as error:
                    if not is_out_of_memory(error):
                        raise
                    smaller = self._smaller(sizes) if left else {}
                    where = f" in {function.__qualname__}({_text(sizes)})"
                    failure = Failure(*report(error, where, self._out, self._program), sizes, smaller)
                    if self._on_oom is not None:
                        self._on_oom(failure)
                    if not smaller:
                        raise
                    forget(error)
                else:
                    call.sizes = sizes
                    return result
                # The failed call's tensors have no holder any more: neither the error nor its frames exist.
                log(f"{give_back()} Calling {function.__qualname__} again with {_text(smaller)}; {left - 1} more after that.")
                _mark(f"out of memory with {_text(sizes)}, again with {_text(smaller)}")
                for name, value in smaller.items():
                    places[name][name] = value

        call.sizes = None
        return call

    @staticmethod
    def _place(signature, bound, name):
        """Returns the dictionary of the call's arguments that has this one."""
        if name in signature.parameters:
            of = bound.arguments
        else:
            of = next((bound.arguments[p.name] for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), {})
        value = of.get(name)
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"{name} must be a number that can be made smaller, not {value!r}")
        return of

    def _smaller(self, sizes):
        """Returns the next sizes; nothing if none can be smaller."""
        if _is_one_of_many() and not self._in_many_ranks:
            log("Not calling again: the other ranks would wait for the collective operations of the failed call.")
            return {}
        smaller = {name: less(value, self._factor) for name, value in sizes.items()}
        return smaller if any(smaller[name] < sizes[name] for name in sizes) else {}


def _mark(name):
    import vramscope

    vramscope.mark(name)
