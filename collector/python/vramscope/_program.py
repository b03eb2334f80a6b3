"""Runs the program ``vramscope`` and returns what it prints."""

from __future__ import annotations

import subprocess

from . import _share

SECONDS = 60.0
"""How long it may take."""


def run(*arguments, text=None, program=None):
    """Returns (what the program printed, None), or (None, why not). `text` is its standard input."""
    given = {"stdin": subprocess.DEVNULL} if text is None else {"input": text}
    try:
        program = str(_share.find(program))
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=SECONDS, **given)
    except (OSError, subprocess.SubprocessError, _share.ShareError) as error:
        return None, str(error)
    # `doctor` exits with 1 because a request failed.
    if done.returncode not in (0, 1) or not done.stdout.strip():
        return None, _share.reason(done.stderr) or f"{program} ended with status {done.returncode}"
    return done.stdout, None
