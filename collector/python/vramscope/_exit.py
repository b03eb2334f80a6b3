"""`os._exit`, which ends a process without its cleanup: what was recorded leaves the process first."""

from __future__ import annotations

import functools
import os
import threading

SECONDS = 1.0
"""How long the end of a process may be delayed."""

_ends = []


def before_exit(end):
    """Calls `end` once `os._exit` is called in this process. It may take `SECONDS`."""
    if (os.getpid(), end) not in _ends:
        _ends.append((os.getpid(), end))
    real = os._exit
    if hasattr(real, "_vramscope"):
        return

    @functools.wraps(real)
    def _exit(status):
        try:
            _run()
        finally:
            real(status)

    _exit._vramscope = True
    os._exit = _exit


_exiting = None


def is_exiting():
    """Returns whether this process is about to end by `os._exit`."""
    return _exiting == os.getpid()


def _run():
    global _exiting
    ends = [end for pid, end in _ends if pid == os.getpid()]
    _ends.clear()
    _exiting = os.getpid()
    if not ends:
        return
    # In a thread of its own: the caller may hold a lock that `end` needs.
    thread = threading.Thread(target=lambda: [end() for end in ends], name="vramscope-exit", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return  # The interpreter is being finalised.
    thread.join(SECONDS)
