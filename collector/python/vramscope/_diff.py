"""Compares two runs, through the program ``vramscope``. `vramscope.diff` documents it."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import subprocess
import tempfile

from . import _share


class DiffError(RuntimeError):
    """The runs could not be compared. Its text is the reason."""


class Difference(dict):
    """What ``vramscope diff --json`` prints. As a text, it is its sentence."""

    def __str__(self):
        return self.get("sentence", "")

    @property
    def is_tripped(self):
        """Whether a rule is broken."""
        return any(rule["tripped"] for rule in self.get("gate", ()))


def diff(before, after, at, device, mapped, fail_if, force, program):
    """Compares two runs. Returns their `Difference`."""
    try:
        program = str(_share.find(program))
    except _share.ShareError as error:
        raise DiffError(str(error)) from None
    arguments = [program, "diff", "--json"]
    for moment in [at] if isinstance(at, str) else at or ():
        arguments += ["--at", moment]
    if device is not None:
        arguments += ["--device", str(device)]
    for old, new in (mapped or {}).items():
        arguments += ["--map", f"{os.fspath(old)}={os.fspath(new)}"]
    for rule in [fail_if] if isinstance(fail_if, str) else fail_if:
        arguments += ["--fail-if", rule]
    if force:
        arguments.append("--force")
    # Only this user can read what is in it.
    with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
        # The separator keeps a name that begins with a hyphen from being an option.
        arguments += ["--", _file(before, folder, "before.pickle")]
        if after is not None:
            arguments.append(_file(after, folder, "after.pickle"))
        try:
            done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        except OSError as error:
            raise DiffError(f"{program} can't be started: {error}") from None
    # It exits with 1 if a rule is broken.
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise DiffError(_share.reason(done.stderr) or f"{program} ended with status {done.returncode}")
    return Difference(json.loads(done.stdout))


def _file(run, folder, name):
    """Returns the path of a run: its own, or that of the snapshot after it was written."""
    if isinstance(run, (str, os.PathLike)):
        return os.path.abspath(os.fspath(run))
    path = pathlib.Path(folder) / name
    with open(path, "wb") as file:
        pickle.dump(run, file)
    return str(path)
