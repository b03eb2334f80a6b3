"""Records this process, from `attach` to `detach`.

Imports go one way: this module imports `_hook`, `_delivery` and the modes; `_hook` imports only `_log`, and
`_environment`, which the .pth file calls, imports this module.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time

from . import _delivery, _exit, _file, _hook, _library, _torch
from ._log import log

NEVER_ANSWERED_SECONDS = 1.0
"""How long the end waits for a server that has not answered since the start."""
QUIET_SECONDS = 0.5
"""How long the end waits before it says so."""
OOM_SECONDS = 2.0
"""How long an out-of-memory error may be delayed while the state is sent."""

EARLY_MARKS = 10_000
"""The most marks that are kept until CUDA is initialised."""

_lock = threading.Lock()
_current = None
_is_observed = False
_has_recorded = False


def current():
    """Returns the agent of this process, or None."""
    return _current


def has_recorded():
    """Returns whether this process has begun to be recorded, or said why it is not."""
    return _has_recorded


class Agent:
    """Records this process's GPU memory until it is detached. Created by `vramscope.attach`.

    - ``state``: ``waiting`` (CUDA is not initialised yet), ``running``, ``detached`` or ``failed``. If the server refuses
      for good (for example, a wrong token), it becomes ``failed``, unless a file is written too.
    - ``reason``: why it failed, what was not delivered, or why the mode is not *every event*.
    - ``mode``: the mode's name.
    - ``url``: the address of the recording's page, once the program uses the GPU; until then, the address of the server's
      page, which lists its jobs. None without a server.
    - ``result``: the counts of the recording, once it has ended.
    """

    def __init__(self, config):
        self.config = config
        self.state, self.reason, self.mode = "waiting", None, None
        self.session = ""
        self.result = None
        self._library = _library.Library(_library.find(config.library))
        if config.to is not None:
            config.to = self._library.address(config.to)
        self._delivery = None
        self._ended = threading.Event()
        self._devices = []
        self._early = []
        self._mode = None
        self._thread = None
        self._claim = None
        self._monitor = None
        self._is_opening = False
        self.is_inherited = False
        self._stop = threading.Event()
        self._turn = threading.RLock()
        self._pid = os.getpid()

    # ---- start --------------------------------------------------------------------------------------------------

    def _begin(self):
        """Starts recording once the program has initialised CUDA; never initialises it."""
        _hook.when_torch_cuda_is_imported(self._on_torch_cuda)

    def _on_torch_cuda(self, torch_cuda):
        _hook.reached("torch")
        if self.state != "waiting":
            return
        if torch_cuda.is_initialized():
            self._on_cuda()
        else:
            # PyTorch calls this at the end of its initialisation, before the first allocation.
            torch_cuda._lazy_call(self._on_cuda)

    def _on_cuda(self):
        if self.state != "waiting" or self._pid != os.getpid():
            return
        global _has_recorded
        _hook.reached("gpu")
        self._is_opening = _has_recorded = True
        try:
            self._open()
        except Exception as error:  # The job must continue without the recording.
            self.state, self.reason = "failed", f"{type(error).__name__}: {error}"
            self._library.finish(1000)
            self._release()
            log(f"Not recording: {error}")

    def _open(self):
        import torch

        config = self.config
        self._devices = _torch.devices(torch)
        if not self._devices:
            raise RuntimeError("no GPU is visible")
        backend = _torch.backend(torch)
        settings = {
            **_torch.recording(config),
            "torch": "%d.%d" % _torch.version(torch),
            "allocator": "PyTorch's own" if backend == "native" else backend,
            "stacks": config.stacks is not None,
            "devices": self._devices,
        }
        if settings.get("out") is not None:
            self._claim = _file.Claim(settings["out"])
            settings["out"] = self._claim.path
        with self._turn:
            self._mode = self._choose(torch, settings)
            self.mode = self._mode.name
            self.session = self._library.session()
            self.state = "running"
        self._record_early_marks()
        _observe(torch)
        _end_with_child()
        _exit.before_exit(_at_exit)
        self._thread = threading.Thread(target=self._run, args=(torch,), name="vramscope", daemon=True)
        self._thread.start()
        self._delivery = _delivery.Delivery(self._library, config.to, settings.get("out"), log, self._refused, self.url)
        self._delivery.start(self.mode, self.reason)
        if config.warn_at is not None:
            from . import _monitor

            self._monitor = _monitor.Monitor(config.warn_at, "warn")

    def _choose(self, torch, settings):
        from . import _build, _polling, _tracker

        config = self.config
        if config.mode != "budget":
            try:
                if _torch.backend(torch) != "native":
                    raise _tracker.TrackerError(f"the allocator is {_torch.backend(torch)}")
                functions = _tracker.load(_build.build(torch, config.mode == "events"))
                mode = _tracker.EveryEvent(
                    torch, self._library, functions, config.stacks, config.context, config.stack_share
                )
                mode.open({**settings, "mode": mode.name})
                return mode
            except (_build.BuildError, _tracker.TrackerError, OSError, AttributeError) as error:
                if config.mode == "events":
                    raise
                self.reason = str(error)
        mode = _polling.WithinBudget(
            torch, self._library, config.stacks, config.context, config.budget, config.history
        )
        mode.open({**settings, "mode": mode.name + (f" ({self.reason})" if self.reason else "")})
        return mode

    # ---- recording ------------------------------------------------------------------------------------------------

    def _run(self, torch):
        while not self._stop.wait(self._mode.interval()):
            try:
                with self._turn:
                    if self._stop.is_set():
                        return
                    self._mode.turn()
            except Exception as error:
                if not self._stop.is_set():
                    self.reason = f"{type(error).__name__}: {error}"
                    log(f"Recording stopped: {self.reason}")
                return

    @property
    def url(self):
        """The address of the recording's page. Before the program uses the GPU there is no recording yet: then it is the
        address of the server's page, where the job appears. None without a server."""
        if self.config.to is None:
            return None
        part = f"#session={self.session}" if self.session else ""
        return f"{self.config.to.rstrip('/')}/{part}"

    def mark(self, name, stage=2):
        """Marks this moment on every device's timeline. Before CUDA is initialised, the mark is kept until then."""
        if self._pid != os.getpid():
            return
        if self.state == "running":
            for device in self._devices:
                self._library.mark(device["number"], str(name), stage)
        elif self.state == "waiting" and len(self._early) < EARLY_MARKS:
            self._early.append((str(name), stage, time.time_ns() // 1000))

    def _record_early_marks(self):
        early, self._early = self._early, []
        for device in self._devices:
            for name, stage, time_us in early:
                self._library.mark(device["number"], name, stage, time_us)
        if len(early) == EARLY_MARKS:
            log(f"Only the first {EARLY_MARKS:,} marks from before CUDA was initialised are recorded.")

    def flush(self, seconds=OOM_SECONDS):
        """Waits until everything so far is written or sent. Returns whether it is."""
        if self.state != "running" or self._pid != os.getpid():
            return False
        with self._turn:
            self._mode.flush(seconds)
        return self._library.flush(seconds * 1000)

    def _out_of_memory(self):
        if self.state != "running" or self._pid != os.getpid():
            return
        until = time.monotonic() + OOM_SECONDS
        # The thread that failed to allocate waits here, but not for another thread's whole turn.
        if self._turn.acquire(timeout=OOM_SECONDS):
            try:
                self._mode.out_of_memory(max(0.0, until - time.monotonic()))
            finally:
                self._turn.release()
        self._library.flush(max(0.0, until - time.monotonic()) * 1000)

    # ---- end ------------------------------------------------------------------------------------------------------

    def detach(self):
        """Ends the recording; the job continues. Returns the counts of the recording, or None if they are unknown."""
        global _current
        with _lock:
            if _current is self:
                _current = None
        if self._pid == os.getpid():
            self._end("detached")
        return self.result

    def _refused(self, why):
        """Ends the recording after the server has refused it, unless a file is written too."""
        self.reason = why
        if self.config.out is None:
            self._end("failed")

    def _end(self, state):
        with _lock:
            was = self.state
            if was in ("waiting", "running"):
                self.state = state
        if was == "failed" and self._thread is not None:
            # Another thread is ending it because the server refused; its result follows.
            self._ended.wait(self.config.end_seconds + OOM_SECONDS)
        if was != "running":
            return
        self._stop.set()
        if self._monitor is not None:
            self._monitor.stop()
        try:
            if self._thread is not threading.current_thread():
                self._thread.join(OOM_SECONDS)
            with self._turn:
                self._mode.stop(OOM_SECONDS)
                if state != "failed":
                    self._write_end()
        except Exception as error:
            log(f"The recording's end is incomplete: {type(error).__name__}: {error}")
        finally:
            result = self._finish()
            if result is not None:
                result.update(self._mode.stats())
            self.result = result
            self._release()
            self._ended.set()
        if result is not None and result.get("failure"):
            log(f"The recording is incomplete: {result['failure']}")
        if self._delivery is not None:
            self.reason = self._delivery.end(result) or self.reason

    def _finish(self):
        """Ends the library's recording, which waits for the server. Returns its statistics, or None after a timeout or Ctrl-C."""
        seconds = self.config.end_seconds
        if self._delivery is not None and not self._delivery.was_connected(self._library.stats()):
            seconds = min(seconds, NEVER_ANSWERED_SECONDS)
        found = []
        # In a thread, because Ctrl-C can't interrupt a call into the library.
        ending = threading.Thread(
            target=lambda: found.append(self._library.finish(seconds * 1000)), name="vramscope-finish", daemon=True
        )
        ending.start()
        try:
            ending.join(QUIET_SECONDS)
            if ending.is_alive() and seconds > 2 * QUIET_SECONDS:
                log(f"Waiting up to {seconds:g} s for {self.config.place()} to receive the rest (Ctrl-C ends the wait)")
            ending.join()
        except KeyboardInterrupt:
            self._delivery, self.reason = None, "interrupted before everything was delivered"
            log("Interrupted: the rest of the recording was not delivered.")
        return found[0] if found else None

    def _write_end(self):
        self._mode.write_end()

    def _release(self):
        if self._claim is not None:
            self._claim.release()

    def waits_in_child(self):
        """Called in the child of a fork. Returns whether the child is recorded once it uses the GPU, which is possible if
        its parent had not used the GPU yet."""
        if self.state != "waiting" or self._is_opening:
            return False
        self.is_inherited = True
        self._pid, self._turn = os.getpid(), threading.RLock()
        self._stop, self._ended = threading.Event(), threading.Event()
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.detach()

    def __repr__(self):
        return f"<vramscope.Agent {self.state}, {self.mode or 'no mode yet'}, to {self.config.place()}>"


def _recording():
    """Returns the agent that records this process, or None. An agent inherited from a fork that still waits is replaced."""
    agent = _current
    if agent is None or agent._pid != os.getpid() or agent.state not in ("waiting", "running"):
        return None
    if agent.state == "waiting" and agent.is_inherited:
        agent.state = "detached"
        return None
    return agent


def attach(config):
    """Creates and starts the agent of this process. Returns the one that there is, if it still records."""
    global _current
    with _lock:
        known = _recording()
        if known is not None:
            there = getattr(known, "config", None)
            if there is not None and there.place() != config.place():
                log(f"Already recording to {there.place()}: the arguments of attach() have no effect.")
            return known
        agent = Agent(config)
        _current = agent
    _register()
    _hook.reached("started")
    agent._begin()
    return agent


def enter(source):
    """Makes `source` take an `Agent`'s place: it receives marks, and is called at the program's end and at forks."""
    global _current
    global _has_recorded
    with _lock:
        known = _recording()
        if known is not None:
            raise RuntimeError(f"already attached: {known!r}. Call vramscope.detach() first.")
        _current, _has_recorded = source, True
    _register()


def forget(source):
    """Ends what `enter` began."""
    global _current
    with _lock:
        if _current is source:
            _current = None


# ---- callbacks of Python and PyTorch---------------------------------------------------------------------------------

_is_registered = False


def _register():
    global _is_registered
    if not _is_registered:
        _is_registered = True
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_in_child)


def _at_exit():
    agent = _current
    if agent is not None:
        agent.detach()


def _in_child():
    """Cleans up in the child of a fork: it has neither the parent's threads nor its GPU, and its locks may be held for ever."""
    global _current, _lock
    agent, _lock = _current, threading.Lock()
    if agent is None or agent.waits_in_child():
        return
    _current = None
    agent._library.abandon_after_fork()


def _end_with_child():
    """Ends the recording at the end of a multiprocessing child: before Python 3.14, atexit does not run in children that
    were forked."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing import util

        util.Finalize(None, _at_exit, exitpriority=0)


def _observe(torch):
    """Registers, once, for PyTorch's out-of-memory errors."""
    global _is_observed
    if _is_observed:
        return
    _is_observed = True

    def observer(device, size, total, free):
        agent = _current
        if agent is None:
            return
        started = time.perf_counter()
        try:
            agent._out_of_memory()
        except BaseException as error:  # It would replace the error that the user has to see.
            seconds = time.perf_counter() - started
            log(f"Failed to record the out-of-memory state: {type(error).__name__}: {error} ({seconds:.1f} s)")

    try:
        torch._C._cuda_attach_out_of_memory_observer(observer)
    except Exception as error:
        log(f"Out-of-memory errors will not be recorded at once: {error}")
