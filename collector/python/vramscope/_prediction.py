"""Predicts a program's memory without a GPU, through the program ``vramscope``. `vramscope.predict` documents it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from . import _share

CALL = "vramscope._predict.call"
"""The module that calls a function."""


class PredictError(RuntimeError):
    """Nothing could be predicted. Its text is the reason, and `output` what the program printed."""

    output = ""


class Prediction(dict):
    """What ``vramscope predict --json`` prints. As a text, it is its sentence."""

    def __str__(self):
        return self.get("sentence", "")

    @property
    def fits(self):
        """Whether it fits, and needs no larger share than `fail_if_over`; None if no memory was named."""
        return None if self.get("fits") is None else self["fits"] and not self.get("is_over")


def predict(script, arguments, program, options):
    """Runs a script or a function without a GPU. Returns its `Prediction`."""
    try:
        program = str(_share.find(program))
    except _share.ShareError as error:
        raise PredictError(str(error)) from None
    environ = dict(os.environ)
    if callable(script):
        arguments = _called(script, arguments)
        # It must find what this process has imported.
        environ["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    else:
        arguments = [os.fspath(script), *map(str, arguments)]
    options.setdefault("python", sys.executable)
    command = [program, "predict", "--json", *_options(options), *arguments]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environ)
    except OSError as error:
        raise PredictError(f"{program} can't be started: {error}") from None
    # It exits with 1 if it does not fit, and with 2 also where the program failed after some time.
    if done.returncode not in (0, 1) or not done.stdout.strip():
        error = PredictError(_share.reason(done.stderr) or f"{program} ended with status {done.returncode}")
        error.output = done.stderr
        raise error
    return Prediction(json.loads(done.stdout))


def _called(function, arguments):
    """Returns the arguments with which Python calls a function."""
    if arguments:
        raise PredictError("A function is called without arguments. Write one that has none, at the top of a module.")
    name, file = getattr(function, "__qualname__", ""), getattr(getattr(function, "__code__", None), "co_filename", "")
    if not name.isidentifier() or not os.path.isfile(file):
        raise PredictError(f"{name or function!r} can't be called in another process. Write a function at the top of a module.")
    return ["-m", CALL, function.__module__, file, name]


def _options(options):
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            words += [option, ",".join(map(str, value))]
        elif value is not None and value is not False:
            words += [option, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return words
