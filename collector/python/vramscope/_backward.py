"""The stack of the code that began a backward pass, for memory that autograd's own threads allocate: they have no stack."""

from __future__ import annotations

import collections
import functools
import os
import sys
import threading
import time

from ._log import log

_NAME = "_engine_run_backward"


def folders(torch):
    """Returns torch's folder and this package's, with their separators, as stacks name them."""
    return os.path.join(os.path.dirname(torch.__file__), ""), OWN


class Backward:
    """Follows the backward passes of a job. `tell` is called with the number of the stack that began one, and with 0 at its
    end, or while there are several at once: which of them allocates can't be told then. `know` is called once with the number of
    each stack and its frames' numbers, functions and files, from the innermost one on."""

    MAX_CACHED = 1 << 12
    """The most cached stacks; beyond it the cache is emptied."""
    MAX_SPANS = 1 << 12
    """The most passes whose times are kept."""

    def __init__(self, torch, library, tell=lambda number: None, know=lambda number, frames: None):
        self._torch, self._library, self._tell, self._know = torch, library, tell, know
        self._stacks = {}
        self._lock = threading.Lock()
        self._running = 0
        # The start and the end of each pass in microseconds since the epoch, and the number of its stack.
        self._spans = collections.deque(maxlen=self.MAX_SPANS)
        self._original = self._ours = None

    def open(self):
        """Begins to follow them. A torch whose `backward` is built otherwise is left alone."""
        autograd, task = self._torch.autograd, getattr(self._torch._C, "_current_graph_task_id", None)
        original = getattr(autograd, _NAME, None)
        if original is None or task is None:
            return

        @functools.wraps(original)
        def run(*arguments, **options):
            # A pass within another one, such as that of a recomputed segment, belongs to the outer one.
            if self._ours is None or task() != -1:
                return original(*arguments, **options)
            self._begin(sys._getframe(1))
            try:
                return original(*arguments, **options)
            finally:
                self._end()

        self._original, self._ours = original, run
        setattr(autograd, _NAME, run)

    def close(self):
        """Ends it. If another library has wrapped the function since, what is left only passes calls on."""
        if self._ours is not None and getattr(self._torch.autograd, _NAME, None) is self._ours:
            setattr(self._torch.autograd, _NAME, self._original)
        self._ours = None

    def at(self, time_us):
        """Returns the number of the stack that began the pass that ran at a time; 0 if there was none, or several."""
        found = 0
        for start, end, number in reversed(self._spans):
            if start <= time_us <= (end or time_us):
                if found:
                    return 0
                found = number
            elif end is not None and end < time_us:
                break
        return found

    def _begin(self, frame):
        try:
            number = self._number(frame)
        except Exception as error:  # It must not reach the job.
            log(f"the stack of a backward pass: {error}")
            number = 0
        with self._lock:
            self._running += 1
            self._spans.append([time.time_ns() // 1000, None, number])
            self._tell(number if self._running == 1 else 0)

    def _end(self):
        with self._lock:
            self._running -= 1
            open_spans = (span for span in reversed(self._spans) if span[1] is None)
            span = next(open_spans, None)
            if span is not None:
                span[1] = time.time_ns() // 1000
            self._tell(0)

    def _number(self, frame):
        """Returns the number of the stack that ends with a frame."""
        key = []
        while frame is not None:
            key.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        key = tuple(key)
        number = self._stacks.get(key)
        if number is None:
            if len(self._stacks) >= self.MAX_CACHED:
                self._stacks.clear()
            frames = [
                (self._library.frame(code.co_name, code.co_filename, line), code.co_name, code.co_filename)
                for code, line in key
            ]
            frames = [frame for frame in frames if frame[0] >= 0]
            number = self._stacks[key] = self._library.stack([frame[0] for frame in frames])
            self._know(number, frames)
        return number


OWN = os.path.join(os.path.dirname(Backward._begin.__code__.co_filename), "")
"""This package's folder as stacks name it. What it has between a program and PyTorch belongs in none."""
