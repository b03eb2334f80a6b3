"""The file of a recording. Processes of one job may be given the same name; each writes its own file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib


class Claim:
    """Reserves a file for this process until `release`.

    ``path`` is the requested path or, if another process has reserved that, a name with this process's number. The
    reservation is a lock, which ends with the process, however that ends.
    """

    def __init__(self, path):
        self._descriptor, self._is_new = None, False
        self.path = path if self._lock(path) else of_process(path, os.getpid())
        if self.path != path:
            self._lock(self.path)

    def _lock(self, path):
        if os.path.exists(path) and not os.path.isfile(path):
            return True  # A pipe or a device: opening it may block, and several processes may share it.
        is_new = not os.path.exists(path)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return True  # The library reports why it cannot be written.
        try:
            # A lock of the process, which does not conflict with the library's lock of the open file.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            os.close(descriptor)
            return False
        except OSError:
            pass  # Some file systems do not support locks.
        self._descriptor, self._is_new = descriptor, is_new
        return True

    def release(self):
        """Releases the file for other processes. One that was made here, and into which nothing was written, is removed."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if self._is_new and os.fstat(descriptor).st_size == 0:
            with contextlib.suppress(OSError):
                os.unlink(self.path)
        os.close(descriptor)


def of_process(path, pid):
    """Inserts a process number: `run.vramscope` becomes `run.pid77.vramscope`."""
    of = pathlib.PurePath(path)
    return str(of.with_name(f"{of.stem}.pid{pid}{of.suffix}"))
