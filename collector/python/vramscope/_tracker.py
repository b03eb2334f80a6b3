"""The mode *every event*: a tracker in PyTorch's allocator passes each entry to the library.

The state at the start and the events after it fit together as follows. The tracker is attached first and ignores entries.
Then a snapshot is taken. PyTorch copies a device's segments and makes an entry `snapshot` under the same lock, so for each
device that entry marks the moment of the copy, and from it on the tracker keeps entries. Everything before it is in the
segments, everything after it is in the events, and nothing is in both.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time

from . import _backward, _history, _library, _polling, _torch

RING = 1 << 17
"""The most entries of one device that wait for their stacks, 104 bytes each."""
CONTEXTS = 1 << 14
"""The most stacks of one device that wait to be resolved, roughly 1 KiB each."""


class TrackerError(RuntimeError):
    """The tracker cannot be attached."""


class _Functions:
    """The tracker's functions."""

    def __init__(self, path):
        # The library is opened twice: for functions that may take long, without the GIL, and for those that need it.
        without, held = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
        i64 = ctypes.c_int64
        for of, name, result, arguments in (
            (without, "error", ctypes.c_char_p, []),
            (without, "prepare", ctypes.c_int, [ctypes.c_char_p, i64, ctypes.c_size_t, ctypes.c_size_t]),
            (without, "ready", i64, []),
            (without, "direct", None, []),
            (without, "stop", None, []),
            (without, "drain", i64, [i64]),
            (held, "resolve", i64, []),
            (held, "backward", None, [ctypes.c_uint32]),
            (held, "call", None, [ctypes.c_uint32, *[ctypes.c_void_p] * 3, ctypes.c_size_t]),
            (held, "folders", None, [ctypes.c_char_p, ctypes.c_char_p]),
            (without, "state", ctypes.c_int, [ctypes.c_int]),
            (without, "annotations", ctypes.c_int, [ctypes.c_int]),
            (without, "skip", None, []),
            (without, "backlog", i64, []),
            (without, "stacks_dropped", ctypes.c_uint64, []),
            (without, "largest", i64, [i64]),
            (held, "forget", i64, []),
        ):
            function = getattr(of, "vs_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)


_loaded = {}


def load(path):
    """Returns the tracker's functions. A tracker is loaded once, because PyTorch never detaches it."""
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
        begin = lambda: _torch.record_history(torch, 1, context, stacks)  # noqa: E731 - It keeps at least one entry.
        self._history = _history.History(torch, begin, True) if stacks else None
        self._backward = _backward.Backward(torch, library, functions.backward, self._know_call) if stacks else None
        self._sampler = None
        self._thread = None
        self._stop = threading.Event()

    def open(self, config):
        """Attaches the tracker, reads the present state, and starts the recording."""
        torch, library = self._torch, self._library
        numbers = [device["number"] for device in config["devices"]]
        config["settings"] = _torch.allocator_settings(torch)
        self._pass_annotations_on(0)
        try:
            if self._history is not None:
                self._history.open()
            self._functions.folders(*(os.fsencode(path) for path in _backward.folders(torch)))
            path = library.path.encode()
            if self._functions.prepare(path, max(numbers) + 1, RING, CONTEXTS) != 0:
                raise TrackerError((self._functions.error() or b"").decode(errors="replace"))
            self._pass_state_on(_library.START)
            if self._functions.ready() < len(numbers):
                raise TrackerError("this PyTorch makes no trace entries for snapshots")
            library.start(config)
            self._sampler = _polling.Sampler(torch, library, numbers)
            self._sampler.sample()
        except BaseException:
            self._functions.stop()
            self._close_history()
            raise
        if self._stacks:
            self._backward.open()
            self._thread = threading.Thread(target=self._follow, name="vramscope-stacks", daemon=True)
            self._thread.start()
        else:
            self._functions.direct()

    def _pass_state_on(self, when):
        if self._functions.state(when) != 0:
            raise TrackerError((self._functions.error() or b"").decode(errors="replace"))

    def _pass_annotations_on(self, is_recording):
        # PyTorch keeps them in the history that the job records.
        if _torch.is_recording(self._torch) and not (self._history is not None and self._history.is_ours):
            self._functions.annotations(is_recording)

    def _know_call(self, number, frames):
        """Tells the tracker of a stack that begins backward passes: its frames' numbers, names and files."""
        count = len(frames)
        numbers, names, files = zip(*frames) if frames else ((), (), ())
        texts = ctypes.c_char_p * count
        self._functions.call(
            number,
            (ctypes.c_uint32 * count)(*numbers),
            texts(*(name.encode() for name in names)),
            texts(*(os.fsencode(file) for file in files)),
            count,
        )

    def _resolve(self):
        with _torch.naming(self._torch):
            return self._functions.resolve()

    def _follow(self):
        """Passes entries on with their stacks, as fast as its share of the time allows."""
        functions = self._functions
        spent, since = 0.0, time.perf_counter()
        while not self._stop.is_set():
            waiting = functions.drain(100_000)
            if not waiting:
                continue
            now = time.perf_counter()
            if spent <= self._share * (now - since) + 0.05:
                if self._resolve() < 0:
                    time.sleep(0.001)
                spent += time.perf_counter() - now
            elif functions.backlog() > 500:
                functions.skip()
            else:
                self._stop.wait(0.005)
            if now - since > 10:
                spent, since = spent / 2, since + (now - since) / 2

    def flush(self, seconds):
        """Passes on the annotations that the job records, and the entries that wait for stacks; after `seconds`, without
        them."""
        self._pass_annotations_on(1)
        if not self._stacks:
            return
        until = time.perf_counter() + seconds
        while self._functions.drain(0):
            if time.perf_counter() > until:
                self._functions.skip()
            elif self._resolve() < 0:
                time.sleep(0.001)

    def interval(self):
        """Returns the seconds until the next turn."""
        return 1.0

    def turn(self):
        """Records a sample of the allocator's own totals. Events need no turn."""
        self._sampler.sample()
        if self._history is not None:
            self._history.check()
        if self._library.poll_ask():
            self.flush(0.5)

    def write_end(self):
        """Records the state at the end. The tracker is stopped, so this adds no entry to the recording."""
        self._pass_state_on(_library.END)

    def out_of_memory(self, seconds):
        self.flush(seconds)

    def stop(self, seconds):
        """Stops the tracker and passes on the remaining entries."""
        self._sampler.sample()
        if self._backward is not None:
            self._backward.close()
        self._functions.stop()
        self._pass_annotations_on(1)
        self._stop.set()
        if self._thread is not None:
            self._thread.join(seconds)
            self.flush(seconds)
        until = time.perf_counter() + seconds
        while self._functions.forget() < 0 and time.perf_counter() < until:
            time.sleep(0.001)
        self._close_history()

    def _close_history(self):
        if self._history is not None:
            self._history.close()

    def stats(self):
        return {"stacks_dropped": self._functions.stacks_dropped()}
