"""Vramscope's native library: its path and its functions. The header ``vramscope.h`` documents them."""

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
"""The moments that `Library.segments` accepts."""

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
"""PyTorch's actions by the library's codes."""

CODES = {name: code for code, name in enumerate(ACTIONS)}


class LibraryError(RuntimeError):
    """The library is missing, or one of its functions failed."""


def other_build(path):
    """Returns the error for a library that lacks a function of this package."""
    return LibraryError(
        f"{path} belongs to another build of Vramscope than this package. "
        "In a checkout, run `cargo build --release -p pluggable`; otherwise install the package again."
    )


def candidates(argument=None, environ=os.environ, package=None, name=NAME, variable="VRAMSCOPE_LIBRARY"):
    """Returns the possible paths of the library: only the requested one, or all usual places in order. `name` and `variable` are for
    another of the package's libraries."""
    if argument:
        return [pathlib.Path(argument)]
    if environ.get(variable):
        return [pathlib.Path(environ[variable])]
    package = package or pathlib.Path(__file__).resolve().parent
    places = [package / name]
    # In a checkout, this package is collector/python/vramscope.
    if len(package.parents) > 2 and (package.parents[2] / "Cargo.toml").is_file():
        target = pathlib.Path(environ.get("CARGO_TARGET_DIR") or package.parents[2] / "target")
        places += [target / "release" / name, target / "debug" / name]
    return places


def unsupported(platform):
    """Returns why a job on this platform can't be recorded, or None if it can."""
    if platform.startswith("linux"):
        return None
    text = "Jobs can be recorded on Linux with CUDA only. Here, the program vramscope has the server, the page and the reports"
    if platform == "darwin":
        text += "; PyTorch keeps no history of its allocator for MPS that could be recorded"
    return text + "."


def find(argument=None):
    """Returns the library's path. Raises `LibraryError` if it is missing, or if there is none for this platform."""
    reason = unsupported(sys.platform)
    if reason is not None:
        raise LibraryError(reason)
    places = candidates(argument)
    for place in places:
        if place.is_file():
            return place
    looked = ", ".join(str(place) for place in places)
    raise LibraryError(
        f"Vramscope's library was not found at {looked}. "
        "Install the package's wheel, run `cargo build --release -p pluggable`, or set VRAMSCOPE_LIBRARY."
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
                ("outside", ctypes.c_int, [i64] * 6),
                ("mark", ctypes.c_int, [i64, text, ctypes.c_int, i64]),
                ("text", u32, [text, ctypes.c_size_t]),
                ("metadata", ctypes.c_int, [i64, u32]),
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
            raise LibraryError(f"cannot load {self.path}: {error}") from None
        except AttributeError:
            raise other_build(self.path) from None

    def _check(self, code):
        if code != 0:
            raise LibraryError((self._error() or b"unknown").decode(errors="replace"))

    def start(self, config):
        self._check(self._start(json.dumps(config).encode()))

    def address(self, to):
        """Returns the full form of a server's address. Raises `ConfigError` if it is invalid."""
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
        """Records events and returns how many were recorded."""
        pointers = _Events(*(_pointer(getattr(events, name)) for name, _ in Events.KINDS))
        return self._events(device, len(events), ctypes.byref(pointers))

    def frame(self, name, filename, line):
        """Returns a frame's number; negative beyond the library's bounds."""
        encoded = (text.encode("utf-8", "surrogateescape") for text in (name, filename))
        return self._frame(*encoded, line if 0 <= line < 1 << 32 else 0)

    def stack(self, frames):
        """Returns the number of a stack, given the numbers of its frames, innermost first."""
        numbers = array.array("I", frames)
        return self._stack(_pointer(numbers), len(numbers))

    def segments(self, when, device, segments):
        """Records a device's segments at START, NOW or END."""
        columns = [_pointer(getattr(segments, name)) for name, _ in Segments.KINDS]
        blocks = [_pointer(getattr(segments, name)) for name, _ in Segments.BLOCKS]
        pointers = _Segments(len(segments.address), *columns, len(segments.block_address), *blocks)
        self._check(self._segments(when, device, ctypes.byref(pointers)))

    def sample(self, device, time_us, allocated, active, reserved):
        self._sample(device, time_us, allocated, active, reserved)

    def outside(self, device, time_us, resident, pinned, outside, others):
        """Records a sample of the memory beside a device's allocator; -1 is unknown."""
        self._outside(device, time_us, resident, pinned, outside, others)

    def mark(self, device, name, stage, time_us=0):
        """Marks a moment; the time 0 is now."""
        self._mark(device, name.encode("utf-8", "surrogateescape").replace(b"\0", b" "), stage, time_us)

    def text(self, text):
        """Returns the number of a text that the job attaches to events."""
        encoded = text.encode("utf-8", "surrogateescape")
        return self._text(encoded, len(encoded))

    def metadata(self, device, number):
        """Sets the text that the job attaches to a device's later events."""
        self._metadata(device, number)

    def flush(self, timeout_ms):
        """Waits until everything so far is written. Returns whether it is."""
        return self._flush(int(timeout_ms)) == 0

    def finish(self, timeout_ms):
        """Ends the recording. Returns its statistics, or None after a timeout."""
        return json.loads(self._finish(int(timeout_ms)) or b"null")

    def stats(self):
        return json.loads(self._stats_json() or b"null")

    def poll_ask(self):
        """Returns what a viewer asked for since the last call: `history`, `state`, or an empty string."""
        return (self._poll_ask() or b"").decode()

    def abandon_after_fork(self):
        self._abandon_after_fork()


assert array.array("I").itemsize == 4 and array.array("Q").itemsize == 8, sys.version
