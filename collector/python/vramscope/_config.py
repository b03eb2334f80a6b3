"""An agent's configuration: arguments, and environment variables of the same names."""

from __future__ import annotations

import os
import pathlib

from . import _server

MODES = ("auto", "events", "budget")
STACKS = (None, "python", "all")
CONTEXTS = ("state", "alloc", "all")
END_SECONDS = 10.0
SUFFIX = ".vramscope"
VARIABLES = ("to", "out", "mode", "stacks", "context", "budget", "name", "job", "token", "ca_file", "warn_at")
VARIABLES += ("end_seconds",)


class ConfigError(ValueError):
    """An invalid argument."""


class Config:
    """The checked configuration of an agent. `vramscope.attach` documents the arguments."""

    def __init__(
        self,
        to=None,
        out=None,
        mode="auto",
        stacks="python",
        context="alloc",
        budget=0.01,
        name=None,
        job=None,
        token=None,
        ca_file=None,
        library=None,
        stack_share=0.05,
        history=10_000,
        end_seconds=None,
        warn_at=None,
    ):
        if to is None and out is None:
            to = _server.default()
        if mode not in MODES:
            raise ConfigError(f"mode must be one of {', '.join(map(repr, MODES))}, not {mode!r}")
        stacks = None if stacks in ("none", "") else stacks
        if stacks not in STACKS:
            raise ConfigError(f"stacks must be 'python', 'all' or None, not {stacks!r}")
        if context not in CONTEXTS:
            raise ConfigError(f"context must be one of {', '.join(map(repr, CONTEXTS))}, not {context!r}")
        self.budget = _share("budget", budget)
        self.stack_share = _share("stack_share", stack_share)
        self.to, self.mode, self.stacks, self.context = to, mode, stacks, context
        self.out = None if out is None else os.path.abspath(os.fspath(out))
        if self.out not in (None, os.devnull) and not self.out.endswith(SUFFIX):
            raise ConfigError(f"the recording's name must end with {SUFFIX}, not {os.path.basename(self.out)}")
        self.name, self.job, self.library = name, job, library
        # Read here for every way to start, so that the secret need not be in the program.
        self.token = token if token is not None else _server.token(to)
        ca_file = ca_file if ca_file is not None else os.environ.get("VRAMSCOPE_CA_FILE") or None
        self.ca_file = None if ca_file is None else os.path.abspath(os.fspath(ca_file))
        self.warn_at = None if warn_at is None else threshold("warn_at", warn_at)
        # The variable counts in every process, so that one that waits too long can be told so from outside.
        if end_seconds is None:
            end_seconds = os.environ.get("VRAMSCOPE_END_SECONDS") or END_SECONDS
        self.history, self.end_seconds = int(history), _seconds("end_seconds", end_seconds)
        if self.history < 100:
            raise ConfigError(f"history must be at least 100 entries, not {history}")

    def place(self):
        """Returns where the recording goes, to show to people."""
        return " and ".join(str(place) for place in (self.to, self.out) if place is not None)


def of(function, **given):
    """Returns the configuration of a call of `function`. Raises a `TypeError` that names what the function doesn't have."""
    code = Config.__init__.__code__
    known = code.co_varnames[1 : code.co_argcount]
    for name in given:
        if name not in known:
            import difflib

            meant = difflib.get_close_matches(name, known, 1)
            hint = f" Did you mean {meant[0]}?" if meant else f" Its options: {', '.join(known)}."
            raise TypeError(f"{function}() has no option {name}.{hint}")
    return Config(**given)


def _seconds(name, value):
    try:
        value = float(value)
    except (TypeError, ValueError):
        value = -1.0
    if not 0.0 <= value <= 86_400.0:
        raise ConfigError(f"{name} must be a number of seconds, from 0 to a day")
    return value


def threshold(name, value):
    try:
        value = float(value)
    except (TypeError, ValueError):
        value = 0.0
    if not 0.0 < value < 1.0:
        raise ConfigError(f"{name} must be a share of the cached memory: more than 0, less than 1, such as 0.3")
    return value


def _share(name, value):
    try:
        value = float(value)
    except (TypeError, ValueError):
        value = 0.0
    if not 0.0 < value <= 1.0:
        raise ConfigError(f"{name} must be a share of the time: more than 0, at most 1 (0.01 is one percent)")
    return value


def from_environment(environ=os.environ):
    """Returns the configuration from VRAMSCOPE_TO, VRAMSCOPE_OUT and the others; None if neither of these two is set."""
    given = {name: environ.get("VRAMSCOPE_" + name.upper()) for name in VARIABLES}
    given = {name: value for name, value in given.items() if value}
    if not given.get("to") and not given.get("out"):
        return None
    if given.get("to") in ("1", "default"):
        given["to"] = _server.find(environ) or _server.USUAL
    given["token"] = _server.token(given.get("to"), environ)
    return Config(**given)


def out_of_rank(out, rank, ranks, pid=None):
    """Returns a file name for this process of a job: `{rank}` and `{pid}` are replaced; without them, the rank is inserted
    before the suffix."""
    pid = os.getpid() if pid is None else pid
    if "{rank}" in out or "{pid}" in out:
        return out.replace("{rank}", str(0 if rank is None else rank)).replace("{pid}", str(pid))
    if rank is None or ranks <= 1:
        return out
    path = pathlib.PurePath(out)
    return str(path.with_name(f"{path.stem}.rank{rank}{path.suffix}"))
