"""Finds the server of this user that runs on this machine.

A server that needs no token writes a file while it runs: ``servers/PID.json`` in the folder ``vramscope`` of the user's state
folder (``XDG_STATE_HOME``, or ``~/.local/state``). The program's module `announcement` documents it.
"""

from __future__ import annotations

import json
import os
import pathlib
import socket
from urllib.parse import urlsplit

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


def find(environ=os.environ):
    """Returns the address of the newest server on this machine that answers, or None."""
    found = []
    try:
        paths = sorted(folder(environ).glob("*.json"))[:MOST]
    except OSError:
        return None
    for path in paths:
        try:
            of = json.loads(path.read_text(encoding="utf-8"))
            found.append((int(of["started_us"]), str(of["address"]), str(of["host"])))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # Of another version, or written at this moment.
    own = socket.gethostname()
    for _, address, host in sorted(found, reverse=True):
        if host == own and answers(address):
            return address
    return None


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
