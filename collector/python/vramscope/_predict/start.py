"""Turns a process into a prediction, as the environment's variables say.

- ``VRAMSCOPE_PREDICT``: the folder where the result is written, ``rank-PID.json``.
- ``VRAMSCOPE_PREDICT_STEPS``: after how many optimizer steps the program ends, at most. It ends earlier when two steps in a
  row have the same peak; with ``VRAMSCOPE_PREDICT_WHOLE`` set it does not.
- ``VRAMSCOPE_PREDICT_SECONDS``: after how much time the program ends, at most.
- ``VRAMSCOPE_PREDICT_BATCHES``: how many batches of a `DataLoader` are loaded; the rest are these again.
- ``VRAMSCOPE_PREDICT_WORLD``, ``VRAMSCOPE_PREDICT_RANK``: the number of ranks and this one, for `torch.distributed`. Without them
  they are what a launcher set, or what the program gives itself.
- ``VRAMSCOPE_PREDICT_SELECTED``: see `sizes`.

The result is written when the program ends by itself or by an exception, not when a signal ends it.
"""

import atexit
import json
import os
import sys
import threading

from .. import _exit, _hook, _log
from . import tracebacks

_result = None


def start(torch):
    """Starts, once torch is imported. Does nothing without the variable, and the second time."""
    global _result
    folder = os.environ.get("VRAMSCOPE_PREDICT")
    if not folder or _result is not None:
        return
    from . import readbacks, steps, values

    found = readbacks.Readbacks(torch.__path__)
    computed = values.Values(found)
    _result = result = Result(torch, folder, found, computed)
    computed.start()
    for module, name, method in LAUNCHERS:
        _hook.when_imported(module, lambda loaded, name=name, method=method: _watch(computed, loaded, name, method))
    number_of_batches = number("VRAMSCOPE_PREDICT_BATCHES")
    if number_of_batches:
        from . import batches

        batches.repeat(torch.utils.data.DataLoader, number_of_batches)
    _hook.when_imported("torch.distributed", _start_rank)
    result.steps = steps.Steps(
        result.memory, result.end, number("VRAMSCOPE_PREDICT_STEPS"), not os.environ.get("VRAMSCOPE_PREDICT_WHOLE")
    )
    result.steps.start()
    found.on_loop = lambda: result.end("loop")
    result.limit()
    atexit.register(result.write)
    _exit.before_exit(result.write)
    os.register_at_fork(after_in_child=result.forked)
    _watch_exceptions(result)


LAUNCHERS = (
    ("triton.runtime.jit", "JITFunction", "run"),
    ("torch._inductor.runtime.triton_heuristics", "CachingAutotuner", "run"),
)
"""What launches kernels past PyTorch's operations."""


def _watch(values, module, name, method):
    """Tells `values` of the tensors into which a launched kernel may write."""
    launcher = getattr(module, name, None)
    real = getattr(launcher, method, None)
    if real is None:
        return

    def run(*args, **kwargs):
        values.launched(args)
        return real(*args, **kwargs)

    setattr(launcher, method, run)


def _start_rank(distributed):
    if distributed.is_available():
        from . import ranks

        ranks.start(*_rank())


def _rank():
    """Returns this process's rank and the number of ranks, if it is one of several; otherwise None twice."""
    ranks = sys.modules.get(f"{__package__}.ranks")
    if ranks is not None and ranks.place is not None:
        return ranks.place
    for rank, world in (("VRAMSCOPE_PREDICT_RANK", "VRAMSCOPE_PREDICT_WORLD"), ("RANK", "WORLD_SIZE")):
        if number(world) is not None:
            return number(rank) or 0, number(world)
    return None, None


def number(name):
    """Returns a variable's number, or None."""
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None


def _watch_exceptions(result):
    real, real_of_threads = sys.excepthook, threading.excepthook

    def excepthook(kind, error, trace):
        result.failed(error)
        with tracebacks.shortened(error):
            real(kind, error, getattr(error, "__traceback__", None) or trace)

    def excepthook_of_threads(about):
        with tracebacks.shortened(about.exc_value):
            real_of_threads(about)

    sys.excepthook, threading.excepthook = excepthook, excepthook_of_threads


class Result:
    """What a process found, written into a file at its end."""

    def __init__(self, torch, folder, readbacks, values=None):
        self._torch, self._folder, self._readbacks, self._values = torch, folder, readbacks, values
        self._pid = os.getpid()
        self._why, self._error = "exit", None
        self._is_written = False
        self.steps = None

    def memory(self):
        """Returns the peaks and what is allocated now, by device."""
        found = []
        if self._torch.cuda.is_initialized():
            for device in range(self._torch.cuda.device_count()):
                stats = self._torch._C._cuda_memoryStats(device)
                allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
                found.append(
                    {
                        "device": device,
                        "allocated": allocated["peak"],
                        "reserved": reserved["peak"],
                        "allocated_now": allocated["current"],
                        "out_of_memory": stats["num_ooms"],
                    }
                )
        return found

    def limit(self):
        """Ends the process when its time is over."""
        seconds = number("VRAMSCOPE_PREDICT_SECONDS")
        if seconds is not None:
            timer = threading.Timer(seconds, self.end, ("time",))
            timer.daemon = True
            timer.start()

    def forked(self):
        """This process was forked: what it finds is its own."""
        self.limit()
        self._pid, self._is_written = os.getpid(), False
        self._why, self._error = "exit", None
        _exit.before_exit(self.write)

    def failed(self, error):
        """An exception ends the program."""
        # A part of a sentence: long ones explain themselves in lines, and some begin with a ruler.
        lines = (line.strip(" .") for line in str(error).splitlines())
        text = next((line for line in lines if any(map(str.isalnum, line))), "")
        self._error = f"{type(error).__name__}: {text}" if text else type(error).__name__
        self._why = "error"
        out_of_memory = getattr(self._torch, "OutOfMemoryError", None) or self._torch.cuda.OutOfMemoryError
        while error is not None:
            if isinstance(error, out_of_memory):
                self._why, self._error = "out of memory", str(error)
            error = error.__cause__ or error.__context__

    def end(self, why):
        """Ends the process, with everything written."""
        self._why = why
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        agent = sys.modules.get("vramscope._agent")
        if agent is not None and agent.current() is not None:
            agent.current().detach()
        self.write()
        os._exit(0)

    def write(self):
        """Writes the file, once. A process that neither used the GPU nor failed writes none."""
        if self._is_written or os.getpid() != self._pid:  # Forked from outside Python.
            return
        if not self._torch.cuda.is_initialized() and self._error is None:
            return
        self._is_written = True
        rank, world = _rank()
        found = {
            "pid": self._pid,
            "rank": rank,
            "world": world,
            "torch": self._torch.__version__,
            "ended": self._why,
            "error": self._error,
            "steps": self.steps.count if self.steps is not None else 0,
            "devices": self.memory(),
            "convolutions": self._values is not None and self._values.has_convolved,
            "readbacks": self._readbacks.rows(),
        }
        path = os.path.join(self._folder, f"rank-{self._pid}.json")
        try:
            os.makedirs(self._folder, exist_ok=True)
            with open(path + ".part", "w", encoding="utf-8") as file:
                json.dump(found, file)
            os.replace(path + ".part", path)
        except OSError as error:
            _log.log("The prediction can't be written: %s" % error)
