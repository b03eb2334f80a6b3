"""Leaves the package's own frames out of the traceback of an operation that failed for the program's own reasons."""

import contextlib
import linecache
import os
import re
import types

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_RUNS = re.compile(r"\b(run|redispatch|make|torch\.empty\w*)\(")
"""A line that runs what the program asked for, or makes the memory for it. What fails in any other line of the package is a fault of the package."""


@contextlib.contextmanager
def shortened(error):
    """An exception, and those that led to it, have no frames of the package meanwhile."""
    kept = [(one, one.__traceback__) for one in _chain(error)]
    for one, trace in kept:
        one.__traceback__ = _without_own(trace)
    try:
        yield
    finally:
        for one, trace in kept:
            one.__traceback__ = trace


def _chain(error):
    """Returns an exception, and those that Python prints with it."""
    found, left = [], [error]
    while left:
        one = left.pop()
        if isinstance(one, BaseException) and not any(one is other for other in found):
            found.append(one)
            left += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return found


def _without_own(trace):
    """Returns a traceback without the package's frames, or as it is where one of them is where the fault is."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    own = [one for one in frames if _is_own(one)]
    others = [one for one in frames if not _is_own(one)]
    if own and others and _RUNS.search(linecache.getline(own[-1].tb_frame.f_code.co_filename, own[-1].tb_lineno)):
        frames = others
    result = None
    for one in reversed(frames):
        result = types.TracebackType(result, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return result


def _is_own(trace):
    return os.path.abspath(trace.tb_frame.f_code.co_filename).startswith(_OWN)
