"""Every event: a tracker in PyTorch's allocator hands each entry to the library.

How the state at the start and the events after it fit together: the tracker is attached first, and lets pass what it
sees. Then a snapshot is taken. PyTorch copies a device's segments and makes an entry `snapshot` under one and the same
lock, so for each device that entry stands exactly where the copy was made: with it the tracker begins to keep entries.
What came before is in the segments, what comes after is in the events, and nothing is in both.
"""

from __future__ import annotations

import ctypes
import threading
import time

from . import _library, _polling, _state, _torch

RING = 1 << 17
"""Entries of one device that may wait for their stacks, 80 bytes each."""
CONTEXTS = 1 << 14
"""Stacks of one device that may wait to be looked at, a KiB or so each."""


class TrackerError(RuntimeError):
    """The tracker can't be attached."""


class _Functions:
    """The tracker's functions."""

    def __init__(self, path):
        # The same functions twice: those that may take time, without the GIL; those that need it, with it.
        without, held = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
        i64 = ctypes.c_int64
        for of, name, result, arguments in (
            (without, "error", ctypes.c_char_p, []),
            (without, "prepare", ctypes.c_int, [ctypes.c_char_p, i64, ctypes.c_size_t, ctypes.c_size_t]),
            (without, "ready", i64, []),
            (without, "direct", None, []),
            (without, "stop", None, []),
            (without, "drain", i64, [i64]),
            (held, "resolve", i64, [ctypes.c_int]),
            (without, "skip", None, []),
            (without, "backlog", i64, []),
            (without, "stacks_dropped", ctypes.c_uint64, []),
            (held, "forget", i64, []),
        ):
            function = getattr(of, "vs_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)


_loaded = {}


def load(path):
    """The tracker's functions; a tracker is loaded once, since PyTorch never lets go of it."""
    key = str(path)
    if key not in _loaded:
        _loaded[key] = _Functions(path)
    return _loaded[key]


class EveryEvent:
    """The mode *every event*."""

    name = "every event"

    def __init__(self, torch, library, functions, stacks, context, share):
        self._torch, self._library, self._functions = torch, library, functions
        self._stacks, self._context, self._share = stacks, context, share
        self._is_history_ours = False
        self._sampler = None
        self._thread = None
        self._stop = threading.Event()

    def open(self, config):
        """Attaches the tracker, takes the state, and begins the recording."""
        torch, library = self._torch, self._library
        numbers = [device["number"] for device in config["devices"]]
        if self._stacks == "all":
            _torch.prepare_symbols()
        if self._stacks and not _torch.is_recording(torch):
            # Entries have their stacks only while history is recorded; one entry is the least it can be made to keep.
            _torch.record_history(torch, 1, self._context, self._stacks)
            self._is_history_ours = True
        try:
            path = library.path.encode()
            if self._functions.prepare(path, max(numbers) + 1, RING, CONTEXTS) != 0:
                raise TrackerError((self._functions.error() or b"").decode(errors="replace"))
            snapshot = _torch.snapshot(torch, traces=False)
            if self._functions.ready() < len(numbers):
                raise TrackerError("this PyTorch tells nothing of its snapshots")
            config["settings"] = _torch.settings(snapshot)
            for device, segments in _state.by_device(snapshot["segments"], numbers).items():
                library.segments(_library.START, device, _state.columns(segments))
            library.start(config)
            self._sampler = _polling.Sampler(torch, library, numbers)
            self._sampler.take()
        except BaseException:
            self._functions.stop()
            self._end_history()
            raise
        if self._stacks:
            self._thread = threading.Thread(target=self._follow, name="vramscope-stacks", daemon=True)
            self._thread.start()
        else:
            self._functions.direct()

    def _follow(self):
        """Hands on entries with their stacks, as fast as its share of the time allows."""
        functions = self._functions
        spent, since = 0.0, time.perf_counter()
        while not self._stop.is_set():
            waiting = functions.drain(100_000)
            if not waiting:
                continue
            now = time.perf_counter()
            if spent <= self._share * (now - since) + 0.05:
                if functions.resolve(_torch.symbols_are_ready()) < 0:
                    time.sleep(0.001)
                spent += time.perf_counter() - now
            elif functions.backlog() > 500:
                functions.skip()
            else:
                self._stop.wait(0.005)
            if now - since > 10:
                spent, since = spent / 2, since + (now - since) / 2

    def flush(self, seconds):
        """Hands on what waits for its stacks, for so long at most."""
        if not self._stacks:
            return
        until = time.perf_counter() + seconds
        while self._functions.drain(0):
            if time.perf_counter() > until:
                self._functions.skip()
            elif self._functions.resolve(_torch.symbols_are_ready()) < 0:
                time.sleep(0.001)

    def interval(self):
        """Seconds until the next turn."""
        return 1.0

    def turn(self):
        """Events come by themselves; the allocator's own sums stand beside them."""
        self._sampler.take()
        if self._library.poll_ask():
            self.flush(0.5)

    stack_of = None
    """Segments at the end have no stacks of their own: those of the events that made them are known."""

    def out_of_memory(self, seconds):
        self.flush(seconds)

    def stop(self, seconds):
        """Lets go of the allocator, and hands on what was kept."""
        self._sampler.take()
        self._functions.stop()
        self._stop.set()
        if self._thread is not None:
            self._thread.join(seconds)
            self.flush(seconds)
        until = time.perf_counter() + seconds
        while self._functions.forget() < 0 and time.perf_counter() < until:
            time.sleep(0.001)
        self._end_history()

    def _end_history(self):
        if self._is_history_ours:
            self._is_history_ours = False
            _torch.end_history(self._torch)

    def stats(self):
        return {"stacks_dropped": self._functions.stacks_dropped()}
