"""The lines on standard error."""

import errno
import os
import sys


def why(error):
    """Returns what an exception says. The system says "no space left on device" of a full disk, which is not the GPU."""
    number = getattr(error, "errno", None)
    if number == errno.ENOSPC:
        return "the disk is full"
    if number == errno.EDQUOT:
        return "your quota on this disk is used up"
    return f"{type(error).__name__}: {error}"


def log(text):
    """Prints one line to standard error, unless ``VRAMSCOPE_QUIET`` is set or standard error is closed."""
    if os.environ.get("VRAMSCOPE_QUIET"):
        return
    try:
        print("vramscope: " + text, file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass
