"""The file that a recording goes to. Processes of one job may be told the same one; each writes its own."""

from __future__ import annotations

import fcntl
import os
import pathlib


class Claim:
    """This process's claim to a file, from the moment it is made to `release`.

    ``path`` is what was asked for, or where another process claims that already, a name with this process's number. A
    lock says so: it ends with the process, however that ends.
    """

    def __init__(self, path):
        self._descriptor = None
        self.path = path if self._take(path) else of_process(path, os.getpid())
        if self.path != path:
            self._take(self.path)

    def _take(self, path):
        if os.path.exists(path) and not os.path.isfile(path):
            return True  # A pipe or a device: opening it may wait, and whose it is, is not for us to say.
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return True  # Who writes it says why it can't be written.
        try:
            # Of the process, not of the open file: the library has a lock of its own on it, and the two don't meet.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            os.close(descriptor)
            return False
        except OSError:
            pass  # Some file systems have no locks: then it goes without.
        self._descriptor = descriptor
        return True

    def release(self):
        """Another process may have it now."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def of_process(path, pid):
    """`run.vramscope` of the process 77: `run.pid77.vramscope`."""
    of = pathlib.PurePath(path)
    return str(of.with_name(f"{of.stem}.pid{pid}{of.suffix}"))
