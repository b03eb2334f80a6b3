"""Vramscope's library: where it is, and its functions. What each does stands in its header, ``vramscope.h``."""

from __future__ import annotations

import array
import ctypes
import json
import os
import pathlib
import sys

from . import _config

NAME = "libvramscope_pluggable.so"

START, NOW, END = 0, 1, 2
"""Which moment a state is of."""

ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
    "user_defined",
    "annotate",
    "other",
)
"""PyTorch's actions, by the number that the library knows them by."""

CODES = {name: code for code, name in enumerate(ACTIONS)}


class LibraryError(RuntimeError):
    """The library is missing, or refused."""


def other_build(path):
    """The error of a library that lacks what this package calls."""
    return LibraryError(
        f"{path} is of another build of Vramscope than this package. "
        "In a checkout: cargo build --release -p pluggable; or install the package again"
    )


def candidates(argument=None, environ=os.environ, package=None):
    """Where the library may be: what was asked for alone, else every usual place in order."""
    if argument:
        return [pathlib.Path(argument)]
    if environ.get("VRAMSCOPE_LIBRARY"):
        return [pathlib.Path(environ["VRAMSCOPE_LIBRARY"])]
    package = package or pathlib.Path(__file__).resolve().parent
    places = [package / NAME]
    # Beside the sources: collector/python/vramscope.
    if len(package.parents) > 2 and (package.parents[2] / "Cargo.toml").is_file():
        target = pathlib.Path(environ.get("CARGO_TARGET_DIR") or package.parents[2] / "target")
        places += [target / "release" / NAME, target / "debug" / NAME]
    return places


def find(argument=None):
    """The library's path."""
    places = candidates(argument)
    for place in places:
        if place.is_file():
            return place
    looked = ", ".join(str(place) for place in places)
    raise LibraryError(
        f"Vramscope's library is not at {looked}. "
        "Install the package's wheel, build it with `cargo build --release -p pluggable`, or set VRAMSCOPE_LIBRARY."
    )


class _Events(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("action", "address", "size", "stream")] + [
        (name, ctypes.c_void_p) for name in ("pool0", "pool1", "stack", "time_us")
    ]


class _Segments(ctypes.Structure):
    _fields_ = (
        [("segments", ctypes.c_size_t)]
        + [(name, ctypes.c_void_p) for name in ("address", "size", "stream", "flags", "pool0", "pool1", "stack")]
        + [("blocks_each", ctypes.c_void_p), ("blocks", ctypes.c_size_t)]
        + [("block_" + name, ctypes.c_void_p) for name in ("address", "size", "requested", "state", "stack")]
    )


def _pointer(column):
    return column.buffer_info()[0] if len(column) else None


class Events:
    """Events of one device as columns."""

    KINDS = (("action", "B"), ("address", "Q"), ("size", "Q"), ("stream", "q"))
    KINDS += (("pool0", "Q"), ("pool1", "Q"), ("stack", "I"), ("time_us", "q"))

    def __init__(self):
        for name, kind in self.KINDS:
            setattr(self, name, array.array(kind))

    def __len__(self):
        return len(self.action)


class Segments:
    """Segments of one device with their blocks, as columns."""

    KINDS = (("address", "Q"), ("size", "Q"), ("stream", "q"), ("flags", "B"), ("pool0", "Q"), ("pool1", "Q"))
    KINDS += (("stack", "I"), ("blocks_each", "I"))
    BLOCKS = (("block_address", "Q"), ("block_size", "Q"), ("block_requested", "Q"))
    BLOCKS += (("block_state", "B"), ("block_stack", "I"))

    def __init__(self):
        for name, kind in self.KINDS + self.BLOCKS:
            setattr(self, name, array.array(kind))


class Library:
    """The library's functions."""

    def __init__(self, path):
        self.path = str(path)
        try:
            c = ctypes.CDLL(self.path)
            i64, u64, u32, text = ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_char_p
            for name, result, arguments in (
                ("start", ctypes.c_int, [text]),
                ("error", text, []),
                ("address", text, [text]),
                ("session", text, []),
                ("now", i64, []),
                ("event", ctypes.c_int, [i64, ctypes.c_int, u64, u64, i64, u64, u64, u32, i64]),
                ("lost", ctypes.c_int, [i64, ctypes.c_int, u32]),
                ("events", i64, [i64, ctypes.c_size_t, ctypes.POINTER(_Events)]),
                ("frame", i64, [text, text, u32]),
                ("stack", u32, [ctypes.c_void_p, ctypes.c_size_t]),
                ("segments", ctypes.c_int, [ctypes.c_int, i64, ctypes.POINTER(_Segments)]),
                ("sample", ctypes.c_int, [i64, i64, u64, u64, u64]),
                ("mark", ctypes.c_int, [i64, text, ctypes.c_int]),
                ("flush", ctypes.c_int, [i64]),
                ("finish", text, [i64]),
                ("stats_json", text, []),
                ("poll_ask", text, []),
                ("abandon_after_fork", None, []),
            ):
                function = getattr(c, "vramscope_" + name)
                function.restype, function.argtypes = result, arguments
                setattr(self, "_" + name, function)
        except OSError as error:
            raise LibraryError(f"{self.path} can't be used: {error}") from None
        except AttributeError:
            raise other_build(self.path) from None

    def _check(self, code):
        if code != 0:
            raise LibraryError((self._error() or b"unknown").decode(errors="replace"))

    def start(self, config):
        self._check(self._start(json.dumps(config).encode()))

    def address(self, to):
        """A server's address as it is spoken to, of what a person writes. Raises where nothing can be sent there."""
        found = self._address(str(to).encode("utf-8", "replace"))
        if found is None:
            raise _config.ConfigError((self._error() or b"unknown").decode(errors="replace"))
        return found.decode()

    def session(self):
        return self._session().decode()

    def now(self):
        return self._now()

    def lost(self, device, action, count):
        while count > 0:
            self._lost(device, action, min(count, 0xFFFFFFFF))
            count -= 0xFFFFFFFF

    def events(self, device, events):
        """Hands in events; how many were taken."""
        pointers = _Events(*(_pointer(getattr(events, name)) for name, _ in Events.KINDS))
        return self._events(device, len(events), ctypes.byref(pointers))

    def frame(self, name, filename, line):
        """A frame's number; negative where there is no room for more."""
        encoded = (text.encode("utf-8", "surrogateescape") for text in (name, filename))
        return self._frame(*encoded, line if 0 <= line < 1 << 32 else 0)

    def stack(self, frames):
        """The number of a stack of frames' numbers, innermost first."""
        numbers = array.array("I", frames)
        return self._stack(_pointer(numbers), len(numbers))

    def segments(self, when, device, segments):
        """Says what a device has reserved at START, NOW or END."""
        columns = [_pointer(getattr(segments, name)) for name, _ in Segments.KINDS]
        blocks = [_pointer(getattr(segments, name)) for name, _ in Segments.BLOCKS]
        pointers = _Segments(len(segments.address), *columns, len(segments.block_address), *blocks)
        self._check(self._segments(when, device, ctypes.byref(pointers)))

    def sample(self, device, time_us, allocated, active, reserved):
        self._sample(device, time_us, allocated, active, reserved)

    def mark(self, device, name, stage):
        self._mark(device, name.encode("utf-8", "surrogateescape").replace(b"\0", b" "), stage)

    def flush(self, timeout_ms):
        """Whether all that was handed in is written."""
        return self._flush(int(timeout_ms)) == 0

    def finish(self, timeout_ms):
        """Ends the recording; what it came to, or None when time was out."""
        return json.loads(self._finish(int(timeout_ms)) or b"null")

    def stats(self):
        return json.loads(self._stats_json() or b"null")

    def poll_ask(self):
        """What a page asked for since the last call: `history`, `state`, or nothing."""
        return (self._poll_ask() or b"").decode()

    def abandon_after_fork(self):
        self._abandon_after_fork()


assert array.array("I").itemsize == 4 and array.array("Q").itemsize == 8, sys.version
