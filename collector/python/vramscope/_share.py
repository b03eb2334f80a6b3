"""Shares a trace by a link, through the program ``vramscope``. `vramscope.share` documents it."""

from __future__ import annotations

import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from . import _server

NAME = "vramscope.exe" if os.name == "nt" else "vramscope"


class ShareError(RuntimeError):
    """The trace could not be shared. Its text is the reason."""


class Link(str):
    """The address of a shared trace. ``delete_token`` is what ``vramscope unshare`` needs to delete it."""

    delete_token = None


def _scripts(package):
    """Returns the folders in which an installer puts the program beside this package."""
    schemes = [sysconfig.get_path("scripts")]
    user = {"posix": "posix_user", "nt": "nt_user"}.get(os.name)
    if user in sysconfig.get_scheme_names():
        schemes.append(sysconfig.get_path("scripts", user))
    # The last is that of `pip install --target`.
    return [pathlib.Path(folder) for folder in schemes] + [package.parent / "bin"]


def candidates(argument=None, environ=os.environ, package=None):
    """Returns the possible paths of the program: only the requested one, or all usual places in order."""
    if argument:
        return [pathlib.Path(argument)]
    if environ.get("VRAMSCOPE_PROGRAM"):
        return [pathlib.Path(environ["VRAMSCOPE_PROGRAM"])]
    package = package or pathlib.Path(__file__).resolve().parent
    # The one that came with this package, on the PATH or not, is of the same version.
    places = [folder / NAME for folder in _scripts(package)]
    on_path = shutil.which(NAME, path=environ.get("PATH"))
    if on_path:
        places.append(pathlib.Path(on_path))
    # In a checkout, this package is collector/python/vramscope.
    if len(package.parents) > 2 and (package.parents[2] / "Cargo.toml").is_file():
        target = pathlib.Path(environ.get("CARGO_TARGET_DIR") or package.parents[2] / "target")
        places += [target / "release" / NAME, target / "debug" / NAME]
    return places


def find(argument=None):
    """Returns the program's path. Raises `ShareError` if it is missing."""
    for place in candidates(argument):
        if place.is_file():
            return place
    raise ShareError(
        "The program vramscope was not found. Install the package's wheel, put the program on the PATH, run "
        "`cargo build --release` in a checkout, or set VRAMSCOPE_PROGRAM."
    )


def server_of(argument, environ=os.environ):
    """Returns the server's address: the argument, that of the recording of this process, or the default one."""
    if argument:
        return argument
    from . import _agent

    agent = _agent.current()
    to = getattr(getattr(agent, "config", None), "to", None)
    if to:
        return to
    return _server.default(environ)


def snapshot_now():
    """Returns a snapshot of this process's GPU memory."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        raise ShareError("This process does not use the GPU yet: there is nothing to share. Name a file or a snapshot.")
    return torch.cuda.memory._snapshot()


def reason(stderr):
    """Returns the line of the program's messages that tells why it failed: that of an invalid argument, or the last one."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    invalid = [line[len("error: ") :] for line in lines if line.startswith("error: ")]
    return (invalid or lines[-1:] or [None])[0]


def share(trace, server, token, expires, password, name, is_public, ca_file, program):
    """Shares a trace. Returns its `Link`."""
    program = find(program)
    environ = dict(os.environ)
    # Neither is an argument, which every user of the machine could read.
    if token is not None:
        environ["VRAMSCOPE_TOKEN"] = token
    arguments = [str(program), "push", "--to", server_of(server), "--expires", "never" if expires is None else expires]
    for option, value in (("--name", name), ("--ca-file", ca_file)):
        if value is not None:
            arguments += [option, os.fspath(value)]
    if is_public:
        arguments.append("--public")
    # Only this user can read what is in it.
    with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
        folder = pathlib.Path(folder)
        if password is not None:
            secret = folder / "password"
            secret.write_text(password, encoding="utf-8")
            arguments += ["--password-file", str(secret)]
        if isinstance(trace, (str, os.PathLike)):
            path = os.path.abspath(os.fspath(trace))
        else:
            path = str(folder / "snapshot.pickle")
            with open(path, "wb") as file:
                pickle.dump(snapshot_now() if trace is None else trace, file)
        try:
            # The separator keeps a name that begins with a hyphen from being an option.
            done = subprocess.run(
                arguments + ["--", path], env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise ShareError(f"{program} can't be started: {error}") from None
    if done.returncode != 0:
        raise ShareError(reason(done.stderr) or f"{program} ended with status {done.returncode}")
    link = Link(done.stdout.strip())
    found = re.search(r"^Delete token, .*: (\S+)$", done.stderr, re.MULTILINE)
    link.delete_token = found and found[1]
    return link
