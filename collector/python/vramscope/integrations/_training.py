"""What the callbacks of training libraries have in common."""

from __future__ import annotations

import os
import pathlib

import vramscope

from .. import _agent
from .._log import log


class Training:
    """The recording of a trainer's run: attaches if nobody has, marks steps, and holds the spans that are open.

    A trainer that is never recorded, or whose recording fails, trains all the same.
    """

    def __init__(self, options, scalars):
        self._options, self._scalars = options, scalars
        self._agent, self._spans, self._step, self._runs = None, {}, None, 0
        self._is_early = False

    def __getstate__(self):
        # A copy in another process has no recording yet.
        return {**self.__dict__, "_agent": None, "_spans": {}, "_is_early": False}

    def begin_early(self):
        """Begins before the run does, so that memory which the trainer takes while it is made has its lines."""
        self.begin()
        self._is_early = self._agent is not None

    def restart(self):
        """Begins a run, and ends what an error in the one before has left open. A recording that began early goes on."""
        is_early, self._is_early = self._is_early, False
        if not is_early or _agent.current() is not self._agent:
            self.end()
            self.begin()

    def begin(self):
        """Attaches, unless this process is recorded already."""
        self._step = None
        if _agent.current() is not None:
            return
        self._runs += 1
        options = dict(self._options)
        if self._runs > 1 and options.get("out") is not None:
            # A further run must not write over the file of the one before.
            of = pathlib.PurePath(os.fspath(options["out"]))
            options["out"] = str(of.with_name(f"{of.stem}.run{self._runs}{of.suffix}"))
        try:
            self._agent = vramscope.attach(**options)
        except Exception as error:
            log(f"Not recording: {error}")

    def step(self, number):
        """Marks an optimiser's step. Several batches may belong to one."""
        if number == self._step:
            return
        self._step = number
        vramscope.step(number)
        if self._scalars is not None:
            self._scalars.step(number)

    def open(self, name, title=None):
        """Begins a span, unless it is open."""
        if name not in self._spans:
            span = vramscope.span(title or name)
            span.__enter__()
            self._spans[name] = span

    def close(self, name):
        """Ends a span, if it is open."""
        span = self._spans.pop(name, None)
        if span is not None:
            span.__exit__(None, None, None)

    def end(self):
        """Ends all spans, and the recording if `begin` has started it."""
        for name in reversed(list(self._spans)):
            self.close(name)
        agent, self._agent = self._agent, None
        if agent is not None:
            agent.detach()
