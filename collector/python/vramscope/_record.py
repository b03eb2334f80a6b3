"""Records into a file, without a server. `vramscope.record` documents it."""

from __future__ import annotations

import contextlib
import itertools
import os

from . import _agent, _config, _oom, _ring, _torch
from ._log import log, why

MOST_WRITES = 10
"""How many times one use of `record(on_oom=...)` writes its file, each time over the one before: a job that catches errors
in every step must not spend its time with writing."""


class Record(contextlib.ContextDecorator):
    """Records into a file while it is entered. Created by `vramscope.record`.

    ``path`` is the file, once it is written, or None. ``result`` has the counts of the recording, or None.
    """

    def __init__(self, path, *, on_oom=None, **options):
        self._name = os.path.abspath(os.fspath(path))
        self._history = 0 if on_oom is None or on_oom is False else _ring.entries(on_oom, "on_oom")
        if self._history and options:
            raise TypeError(f"with on_oom there is no recording to set {', '.join(sorted(options))} for")
        if not self._history:
            _config.of("record", out=self._name, **options)  # Raises an error if an option is invalid.
        self._options, self._uses = options, itertools.count(1)
        self._is_entered, self._agent, self._writes = False, None, 0
        self.path, self.result = None, None

    def __call__(self, function):
        _oom._require_whole_call(function, "record")
        return super().__call__(function)

    def _recreate_cm(self):
        """Returns the object for one call of a decorated function. Calls may be nested, and their numbers go on."""
        one = Record(self._name, on_oom=self._history or None, **self._options)
        one._uses = self._uses
        return one

    def __enter__(self):
        if self._is_entered:
            raise RuntimeError("this vramscope.record is in use: make another one")
        if not os.path.isdir(os.path.dirname(self._name)):
            raise FileNotFoundError(f"there is no folder {os.path.dirname(self._name)} for {os.path.basename(self._name)}")
        self._agent, self._writes, self.path, self.result = None, 0, None, None
        self._file = self._name.replace("{n}", str(next(self._uses)))
        if self._history:
            _, rank, ranks = _torch.identity()
            self._file = _config.out_of_rank(self._file, rank, ranks)
            _ring.hold(self._history)
            _ring.watch(self._write)
        elif _agent._recording() is not None:
            log(f"{self._file} is not written: this process is already recorded to {_place(_agent.current())}.")
        else:
            self._agent = _agent.attach(_config.Config(out=self._file, **self._options))
        self._is_entered = True
        return self

    def __exit__(self, _kind, error, _traceback):
        self._is_entered = False
        if self._history:
            # Errors of the driver itself are not told to observers.
            if error is not None and not self._writes and _oom.is_out_of_memory(error):
                self._write()
            _ring.unwatch(self._write)
            _ring.release()
        elif self._agent is not None:
            self._end()
        return False

    def _end(self):
        agent, self._agent = self._agent, None
        self.result = agent.detach()
        claim = getattr(agent, "_claim", None)
        if self.result is not None and claim is not None:
            self.path = claim.path
        elif agent.reason is None:
            log(f"{self._file} is not written: the GPU was not used.")

    def _write(self):
        """Writes the ring. Called while memory is short, also for errors that the program catches."""
        self._writes += 1
        if self._writes > MOST_WRITES:
            return
        try:
            self.path = _ring.write(self._file)
        except Exception as error:  # The job's own error matters more.
            log(f"{self._file} was not written: {why(error)}")
            return
        log(f"Out of memory; what led to it: {self.path}")


def _place(agent):
    config = getattr(agent, "config", None)
    return config.place() if hasattr(config, "place") else "another place"
