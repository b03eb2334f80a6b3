"""Watches how much of PyTorch's cached memory no request can use, and acts when that is too much. Needs no server.

The *unusable share* is 1 - the largest request that the cache can serve / all cached bytes. Statistics have the cached bytes
but not that request. It comes from the tracker, if it is compiled or can be, in some microseconds; otherwise from a
snapshot of the segments, which takes some microseconds for each block and is therefore taken less often.

PyTorch tells the tracker the largest free block of all pools, but not of which pool it is. A small pool serves 1 MiB of a
larger block, so the tracker's figure can be too large by that difference: at most 1 MiB, unless small pools with expandable
segments have a larger free stretch than all large pools. A snapshot tells pools apart and has no such error.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import threading
import time
from typing import NamedTuple

from . import _config, _torch
from ._log import log

INTERVAL_SECONDS = 1.0
LEAST_SHARE = 0.05
"""The share of the device's memory that must be cached before the unusable share matters."""
LEAST_BYTES = 256 << 20
"""The same for a device of unknown size."""
SNAPSHOT_SHARE = 0.002
"""The share of the time that snapshots may use."""
SMALL_SIZE = 1 << 20
"""The largest request that small pools serve."""
ERRORS = 3
"""The number of errors in succession after which a monitor gives up."""


class Reading(NamedTuple):
    """A device's memory at one moment, in bytes."""

    device: int
    allocated: int
    active: int
    reserved: int
    inactive_split: int
    """Cached bytes in segments that are partly in use. PyTorch does not count those of expandable segments."""
    largest: int
    """The largest request that the cache can serve."""
    times: int
    """How many times the unusable share has passed the threshold."""

    @property
    def cached(self):
        return max(0, self.reserved - self.active)

    @property
    def unusable(self):
        """The unusable share: 0 without cached bytes, near 1 if all free blocks are small."""
        return 1 - self.largest / self.cached if self.cached else 0.0


def text(of):
    """Returns a sentence about a reading, and what to try."""
    split, whole = of.inactive_split, max(0, of.cached - of.inactive_split)
    said = (
        f"{int(100 * of.unusable)} % of the cached memory of device {of.device} is unusable: of {_bytes(of.cached)} cached "
        f"({_bytes(of.reserved)} reserved), the largest request that fits has {_bytes(of.largest)}. "
    )
    if _is_expandable():
        said += "Try to allocate what lives long before what lives short."
    elif split >= whole:
        said += f"{_bytes(split)} are gaps in segments that are in use. Try {_set('expandable_segments:True')}."
    else:
        said += f"{_bytes(whole)} are whole segments. Try torch.cuda.empty_cache(), which gives them back to the driver."
    return said if of.times < 2 else f"{said} This has happened {of.times:,} times."


def _settings():
    """Returns the variable that sets the allocator's settings, and those. In PyTorch's order: the newer name takes
    precedence."""
    names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
    return next(((name, os.environ[name]) for name in names if os.environ.get(name)), (names[-1], ""))


def _is_expandable():
    return "expandable_segments:true" in _settings()[1].lower().replace(" ", "")


def _set(setting):
    """Returns the line that adds a setting to those of this process, in place of one of the same name."""
    name, own = _settings()
    # Lists in brackets have commas of their own; PyTorch reads past white space.
    parts = re.findall(r"(?:\[[^\]]*\]|[^,\[])+", re.sub(r"\s", "", own))
    kept = [part for part in parts if part.partition(":")[0] != setting.partition(":")[0]]
    return f"{name}={shlex.quote(','.join([*kept, setting]))}"


def _bytes(count):
    """Returns an amount with three digits, as the program prints it."""
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 999.5 or unit == "TiB":
            break
        value /= 1024
    digits = 0 if unit == "B" or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {unit}"


def warn(reading):
    """The action of `attach(warn_at=...)`: prints a line the first, second, fourth, eighth time and so on, because a share
    that rises in every step would fill the terminal."""
    if reading.times & (reading.times - 1) == 0:
        log(text(reading))


def servable(gap, is_small):
    """Returns the largest request that a free block of a small or a large pool can serve: requests up to 1 MiB go to small
    pools, larger ones to large pools."""
    if is_small:
        return min(gap, SMALL_SIZE)
    return gap if gap > SMALL_SIZE else 0


class Threshold:
    """Tells when the unusable share of one device passes a threshold."""

    def __init__(self, threshold, least):
        self._threshold, self._least = threshold, max(1, least)
        self._is_over = False
        self.times = 0

    def passes(self, cached, largest):
        """Returns whether the share passes the threshold now. Before it can pass again, it must have fallen below. For
        `largest` it calls a function, and only if enough is cached."""
        is_over = cached >= self._least and 1 - largest() / cached >= self._threshold
        passes, self._is_over = is_over and not self._is_over, is_over
        self.times += passes
        return passes


class Monitor:
    """Acts when too much of the cached memory is unusable.

        with vramscope.Monitor(0.3, action="empty_cache"):
            train()

    - `threshold`: the unusable share, 1 - the largest request that the cache can serve / all cached bytes.
    - `action`: ``"empty_cache"``, ``"warn"`` (a line on standard error), or a function that receives a `Reading`. It is
      called once when the share passes the threshold, and again only after the share has fallen below.
    - `interval`: the seconds between two looks of the monitor's own thread, which also runs the action. With None there is
      no thread, and only `check()` looks: call it between steps, for example if the job captures CUDA graphs, during which
      no thread may release memory.
    - `least`: the cached bytes from which on the share matters (5 % of the device's memory).

    It never initialises CUDA, holds no lock while it acts, and raises no error into the job. ``actions`` counts the calls
    of the action, and ``reason`` says why it ended early.
    """

    def __init__(self, threshold=0.3, action="empty_cache", *, interval=INTERVAL_SECONDS, least=None):
        if not callable(action) and action not in ("empty_cache", "warn"):
            raise ValueError(f'action must be "empty_cache", "warn" or a function, not {action!r}')
        if interval is not None and not float(interval) > 0:
            raise ValueError(f"interval must be a number of seconds or None, not {interval!r}")
        self._threshold, self._least = _config.threshold("threshold", threshold), least
        self._action, self._interval = action, None if interval is None else float(interval)
        self.actions, self.reason = 0, None
        self._errors = {"look": 0, "action": 0}
        self._next_snapshot = 0.0
        self._thresholds = {}
        self._functions = None
        self._is_ready = False
        self._looks = threading.Lock()
        self._pid = os.getpid()
        self._stop = threading.Event()
        self._thread = None
        if interval is not None:
            self._thread = threading.Thread(target=self._run, name="vramscope-monitor", daemon=True)
            self._thread.start()

    def check(self):
        """Looks now, and acts if the share passes the threshold. Returns the readings for which it acted."""
        # A second thread need not look at the same time, and a child of a fork does not know the state of this lock.
        if self._stop.is_set() or self._pid != os.getpid() or not self._looks.acquire(blocking=False):
            return []
        try:
            found = self._look()
            self._errors["look"] = 0
        except Exception as error:  # The job must continue.
            found = []
            self._failed("look", error)
        finally:
            self._looks.release()
        for reading in found:
            self._act(reading)
        return found

    def stop(self):
        """Ends the monitor. An action that is running is waited for, at most a second."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread() and self._pid == os.getpid():
            self._thread.join(1.0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _run(self):
        while not self._stop.wait(self._interval):
            self.check()

    def _look(self):
        torch = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        if cuda is None or not getattr(cuda, "is_initialized", bool)():
            return []
        if not self._is_ready:
            self._prepare(torch)
        if self._functions is None and not self._can_take_snapshots(torch):
            return []
        found, segments = [], []
        for device, threshold in self._thresholds.items():
            stats = _torch.stats(torch, device)
            allocated, active, reserved = _torch.sums(stats)
            split = stats["inactive_split_bytes"]["all"]["current"]
            largest = []

            def find(device=device, largest=largest):
                largest.append(self._largest(torch, device, segments))
                return largest[0]

            if threshold.passes(max(0, reserved - active), find):
                found.append(Reading(device, allocated, active, reserved, split, largest[0], threshold.times))
        return found

    def _prepare(self, torch):
        backend = _torch.backend(torch)
        if backend == "cudaMallocAsync":
            raise RuntimeError("cudaMallocAsync does not tell which memory is cached")
        if backend == "native":
            from . import _build, _tracker

            try:
                self._functions = _tracker.load(_build.build(torch))
            except (_build.BuildError, OSError, AttributeError):
                pass  # Snapshots work without a compiler.
        for device in _torch.devices(torch):
            capacity = device["capacity"]
            least = int(LEAST_SHARE * capacity) if capacity else LEAST_BYTES
            least = least if self._least is None else int(self._least)
            self._thresholds[device["number"]] = Threshold(self._threshold, least)
        self._is_ready = True

    def _can_take_snapshots(self, torch):
        """Returns whether the last snapshot's time is saved again."""
        return time.monotonic() >= self._next_snapshot

    def _largest(self, torch, device, segments):
        """Returns the largest free block of a device. `segments` keeps a snapshot for the next device."""
        if self._functions is not None:
            largest = self._functions.largest(device)
            if largest >= 0:
                return largest
            self._functions = None
        if not segments:
            began = time.thread_time()
            segments.append(_torch.snapshot(torch, traces=False)["segments"])
            self._next_snapshot = time.monotonic() + (time.thread_time() - began) / SNAPSHOT_SHARE
        own = (segment for segment in segments[0] if segment["device"] == device)
        gaps = ((block["size"], segment) for segment in own for block in segment["blocks"] if block["state"] == "inactive")
        return max((servable(size, segment.get("segment_type") == "small") for size, segment in gaps), default=0)

    def _act(self, reading):
        try:
            if callable(self._action):
                self._action(reading)
            elif self._action == "warn":
                warn(reading)
            else:
                sys.modules["torch"].cuda.empty_cache()
            self.actions += 1
            self._errors["action"] = 0
        except Exception as error:
            self._failed("action", error)

    def _failed(self, what, error):
        self._errors[what] += 1
        self.reason = f"{type(error).__name__}: {error}"
        if self._errors[what] >= ERRORS:
            self._stop.set()
            log(f"The monitor has stopped: {self.reason}")
