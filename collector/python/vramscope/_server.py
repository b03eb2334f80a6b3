"""Finds the server of this user that runs on this machine.

A server that was given no tokens writes a file while it runs: ``servers/PID.json`` in the folder ``vramscope`` of the user's
state folder (``XDG_STATE_HOME``, or ``~/.local/state``). Where the system does not tell the server which user is asking, the
file also holds the token that every request needs. So a folder that others can access is not used. The program's module
`announcement` documents it.
"""

from __future__ import annotations

import json
import os
import pathlib
import socket
import stat
from urllib.parse import urlsplit

from . import _log

USUAL = "http://127.0.0.1:7070"
"""The address of a server that was not told another one."""
ANSWER_SECONDS = 1.0
"""How long a server may take to answer. It is on this machine, which may be busy."""
MOST = 64
"""The most files that are looked at."""


def folder(environ=os.environ):
    """Returns the folder of announcements."""
    state = environ.get("XDG_STATE_HOME", "")
    base = pathlib.Path(state) if os.path.isabs(state) else pathlib.Path(os.path.expanduser("~")) / ".local" / "state"
    return base / "vramscope" / "servers"


def is_private(folder):
    """Returns whether a folder exists. Raises `OSError` if another user than this one can access it, or turn it elsewhere."""
    try:
        status = os.lstat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISDIR(status.st_mode):
        raise OSError(f"{folder} is a link or a file, and has to be a folder. Remove it.")
    if hasattr(os, "geteuid"):
        if status.st_uid != os.geteuid():
            raise OSError(f"{folder} belongs to another user. Set XDG_STATE_HOME to a folder of yours.")
        if status.st_mode & 0o077:
            raise OSError(f"Other users of this machine have access to {folder}, which holds secrets. Run: chmod 700 {folder}")
    return True


def _is_own(path):
    """Returns whether a path is a file that this user wrote and nobody else can change."""
    status = os.lstat(path)
    mine = not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)
    return stat.S_ISREG(status.st_mode) and mine


def _known(environ, complain=None):
    """Returns the address and the token, or None, of each server that was announced on this machine, the newest first.
    `complain` gets the sentence about a folder that is not used."""
    found = []
    place = folder(environ)
    try:
        if not is_private(place):
            return []
        paths = sorted(place.glob("*.json"))[:MOST]
    except OSError as error:
        if complain is not None:
            complain(str(error))
        return []
    for path in paths:
        try:
            if not _is_own(path):
                continue
            of = json.loads(path.read_text(encoding="utf-8"))
            found.append((int(of["started_us"]), str(of["address"]), str(of["host"]), of.get("token")))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # Of another version, or written at this moment.
    own = socket.gethostname()
    found.sort(key=lambda server: server[0], reverse=True)
    return [(address, token) for _, address, host, token in found if host == own]


def find(environ=os.environ):
    """Returns the address of the newest server on this machine that answers, or None."""
    return next((address for address, _ in _known(environ, _log.log) if answers(address)), None)


def token(to, environ=os.environ):
    """Returns the token for the server at an address: the one that it made itself, if it announced one, or that of the variable
    ``VRAMSCOPE_TOKEN``, or None. A server that made its token knows no other."""
    # Only for the very address: another name of this machine may lead to another server.
    wanted = (to or "").strip().rstrip("/")
    made = [token for address, token in (_known(environ) if wanted else []) if token and address == wanted]
    return made[0] if made else environ.get("VRAMSCOPE_TOKEN")


def answers(address):
    """Returns whether a Vramscope server answers at an address of this machine."""
    try:
        parts = urlsplit(address)
        if parts.scheme != "http" or parts.hostname not in ("127.0.0.1", "::1", "localhost"):
            return False
        with socket.create_connection((parts.hostname, parts.port or 80), ANSWER_SECONDS) as connection:
            connection.settimeout(ANSWER_SECONDS)
            request = f"GET /api/v1/health/live HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
            connection.sendall(request.encode())
            answer = b""
            while len(answer) < 4096:
                piece = connection.recv(4096)
                if not piece:
                    break
                answer += piece
        return answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"ok\n")
    except (OSError, ValueError):
        return False


def default(environ=os.environ):
    """Returns the server to use where none is named: that of the variable ``VRAMSCOPE_TO``, the newest one of this user that
    runs on this machine, or the usual address."""
    to = environ.get("VRAMSCOPE_TO")
    if to and to not in ("1", "default"):
        return to
    return find(environ) or USUAL
