"""The lines on standard error."""

import os
import sys


def log(text):
    """Prints one line to standard error, unless ``VRAMSCOPE_QUIET`` is set or standard error is closed."""
    if os.environ.get("VRAMSCOPE_QUIET"):
        return
    try:
        print("vramscope: " + text, file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass
