"""Stored peaks, with which the fixture for pytest compares."""

from __future__ import annotations

import json
import os
import re

try:
    import fcntl
except ImportError:  # Windows has no such locks.
    fcntl = None


def growth(value):
    """Returns "2%" and 0.02 as 0.02."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", str(value))
    if isinstance(value, bool) or not found:
        raise ValueError(f'max_growth must be a share such as "2%" or 0.02, not {value!r}')
    return float(found[1]) / (100 if found[2] else 1)


def _write(file, content):
    """Makes `content` all that a file has."""
    file.seek(0)
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
    file.truncate(len(content))


class Baselines:
    """The stored peaks: by PyTorch's release and GPU, then by test, then by device."""

    def __init__(self, path):
        self._path, self._new, self._kept = path, {}, self._read(path)

    @staticmethod
    def _read(path):
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}

    def get(self, place, key):
        return self._kept.get(place, {}).get(key)

    def put(self, place, key, peaks):
        self._new.setdefault(place, {})[key] = peaks

    def save(self):
        """Writes what is new. Several processes of one run may do so at the same time."""
        if not self._new:
            return
        with open(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666), "rb+", buffering=0) as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            old = file.read()
            kept = json.loads(old or "{}")
            for place, of in self._new.items():
                kept.setdefault(place, {}).update(of)
            new = (json.dumps(kept, indent=1, sort_keys=True) + "\n").encode()
            # In place, since others wait for the lock of this file. A full disk always has room for what was there.
            try:
                _write(file, new)
            except OSError:
                _write(file, old)
                raise
