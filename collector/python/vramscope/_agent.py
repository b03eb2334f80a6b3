"""One recording of this process, from `attach` to `detach`."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time

from . import _delivery, _file, _hook, _library, _state, _torch

OOM_SECONDS = 2.0
"""How long an out-of-memory may be held up while its state is sent."""

_lock = threading.Lock()
_current = None
_is_observed = False


def log(text):
    """One line for the person at the terminal; nothing where they want none, or there is no terminal any more."""
    if os.environ.get("VRAMSCOPE_QUIET"):
        return
    try:
        print("vramscope: " + text, file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass


def current():
    """The agent of this process, or None."""
    return _current


class Agent:
    """Watches this process's GPU memory until it is detached. Made by `vramscope.attach`.

    ``state`` is ``waiting`` (CUDA is not initialised yet), ``running``, ``detached`` or ``failed``, and ``reason`` says
    why it failed, what did not arrive, or why the mode is not *every event*. ``mode`` is the mode's name. A server that
    refuses for good (a wrong token, say) makes it ``failed`` where there is no file beside it. ``result`` is what it came
    to, when it has ended.
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
        self._mode = None
        self._thread = None
        self._claim = None
        self._is_opening = False
        self.is_inherited = False
        self._stop = threading.Event()
        self._turn = threading.RLock()
        self._pid = os.getpid()

    # ---- beginning ----------------------------------------------------------------------------------------------

    def _begin(self):
        """Begins as soon as CUDA is there; never makes it be there."""
        _hook.when_torch_cuda_is_there(self._torch_is_there)

    def _torch_is_there(self, torch_cuda):
        if self.state != "waiting":
            return
        if torch_cuda.is_initialized():
            self._cuda_is_there()
        else:
            # PyTorch calls this at the end of its initialisation, before anything is allocated.
            torch_cuda._lazy_call(self._cuda_is_there)

    def _cuda_is_there(self):
        if self.state != "waiting" or self._pid != os.getpid():
            return
        self._is_opening = True
        try:
            self._open()
        except Exception as error:  # Whatever it is: the job goes on without us.
            self.state, self.reason = "failed", f"{type(error).__name__}: {error}"
            self._library.finish(1000)
            self._release()
            log(f"nothing is recorded: {error}")

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
        _observe(torch)
        _end_with_child()
        self._thread = threading.Thread(target=self._run, args=(torch,), name="vramscope", daemon=True)
        self._thread.start()
        self._delivery = _delivery.Delivery(self._library, config.to, settings.get("out"), log, self._refused)
        self._delivery.start(self.mode, self.reason)

    def _choose(self, torch, settings):
        from . import _build, _polling, _tracker

        config = self.config
        if config.mode != "budget":
            try:
                if _torch.backend(torch) != "native":
                    raise _tracker.TrackerError(f"the allocator is {_torch.backend(torch)}")
                functions = _tracker.load(_build.build(torch))
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

    # ---- while it runs --------------------------------------------------------------------------------------------

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
                    log(f"watching stopped: {self.reason}")
                return

    def mark(self, name, stage=2):
        """Marks this moment on every device's line of time."""
        if self.state == "running" and self._pid == os.getpid():
            for device in self._devices:
                self._library.mark(device["number"], str(name), stage)

    def flush(self, seconds=OOM_SECONDS):
        """Waits until all that happened is written or sent; whether it is."""
        if self.state != "running" or self._pid != os.getpid():
            return False
        with self._turn:
            self._mode.flush(seconds)
        return self._library.flush(seconds * 1000)

    def _out_of_memory(self):
        if self.state != "running" or self._pid != os.getpid():
            return
        # The thread that failed to allocate waits here; another one's turn is not waited out.
        if self._turn.acquire(timeout=OOM_SECONDS):
            try:
                self._mode.out_of_memory(OOM_SECONDS)
            finally:
                self._turn.release()
        self._library.flush(OOM_SECONDS * 1000)

    # ---- the end --------------------------------------------------------------------------------------------------

    def detach(self):
        """Ends the recording; the job goes on. What it came to, where that is known."""
        global _current
        with _lock:
            if _current is self:
                _current = None
        if self._pid == os.getpid():
            self._end("detached")
        return self.result

    def _refused(self, why):
        """The server takes nothing any more: without a file there is nothing to go on for."""
        self.reason = why
        if self.config.out is None:
            self._end("failed")

    def _end(self, state):
        with _lock:
            was = self.state
            if was in ("waiting", "running"):
                self.state = state
        if was == "failed" and self._thread is not None:
            # It is just ending because the server refused; the result is about to come.
            self._ended.wait(self.config.end_seconds + OOM_SECONDS)
        if was != "running":
            return
        self._stop.set()
        try:
            if self._thread is not threading.current_thread():
                self._thread.join(OOM_SECONDS)
            with self._turn:
                self._mode.stop(OOM_SECONDS)
                if state != "failed":
                    self._say_end()
        except Exception as error:
            log(f"the end is not whole: {type(error).__name__}: {error}")
        finally:
            result = self._library.finish(self.config.end_seconds * 1000)
            if result is not None:
                result.update(self._mode.stats())
            self.result = result
            self._release()
            self._ended.set()
        if result is not None and result.get("failure"):
            log(f"the recording is not whole: {result['failure']}")
        if self._delivery is not None:
            self.reason = self._delivery.end(result) or self.reason

    def _say_end(self):
        import torch

        numbers = [device["number"] for device in self._devices]
        # The tracker is off, so this leaves no entry in the recording.
        snapshot = _torch.snapshot(torch, traces=False)
        for device, segments in _state.by_device(snapshot["segments"], numbers).items():
            self._library.segments(_library.END, device, _state.columns(segments, self._mode.stack_of))

    def _release(self):
        if self._claim is not None:
            self._claim.release()

    def waits_in_child(self):
        """Called in a child of a fork: whether it is to be watched as soon as it uses the GPU itself. It can where its
        parent had not begun to."""
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


def _make_room():
    """Raises where this process is recorded already. What a fork left waiting gives way."""
    of = _current
    if of is None or of._pid != os.getpid() or of.state not in ("waiting", "running"):
        return
    if of.state == "waiting" and of.is_inherited:
        of.state = "detached"
        return
    raise RuntimeError(f"already attached: {of!r}. Call its detach() first.")


def attach(config):
    """The agent of this process, begun."""
    global _current
    with _lock:
        _make_room()
        agent = Agent(config)
        _current = agent
    _register()
    agent._begin()
    return agent


def enter(source):
    """Makes something else than an `Agent` what this process is recorded by: marks, the end and forks are told to it."""
    global _current
    with _lock:
        _make_room()
        _current = source
    _register()


def forget(source):
    """Nothing more is told to it."""
    global _current
    with _lock:
        if _current is source:
            _current = None


# ---- what Python and PyTorch call -----------------------------------------------------------------------------------

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
    """A child of a fork has neither our threads nor its parent's GPU, and may have inherited locks that nobody will open."""
    global _current, _lock
    agent, _lock = _current, threading.Lock()
    if agent is None or agent.waits_in_child():
        return
    _current = None
    agent._library.abandon_after_fork()


def _end_with_child():
    """Lets the recording end where multiprocessing ends its processes: before Python 3.14 it asks atexit for nothing in
    those that it forks."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing import util

        util.Finalize(None, _at_exit, exitpriority=0)


def _observe(torch):
    """Asks PyTorch, once, to be told of out-of-memories."""
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
        except BaseException as error:  # It would take the place of the error that the user has to see.
            log(f"at the out-of-memory: {type(error).__name__}: {error} ({time.perf_counter() - started:.1f} s)")

    try:
        torch._C._cuda_attach_out_of_memory_observer(observer)
    except Exception as error:
        log(f"an out-of-memory will not be told at once: {error}")
