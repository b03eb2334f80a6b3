"""The lines on standard error."""

import errno
import os
import re
import sys

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""What a terminal obeys or a reader does not see, as in ``shared/trace/src/text.rs``."""


def shown(text):
    """Returns a text in one line, hidden characters as ``\\u{1b}``: names can hold what a terminal obeys."""
    return _HIDDEN.sub(lambda found: "\\u{%x}" % ord(found[0]), text)


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
        print("vramscope: " + shown(text), file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass
