"""Calls a function in the program's main thread."""

from __future__ import annotations

import ctypes
import threading

from ._log import log

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_waiting = {}


def soon(call):
    """Calls `call` in the main thread, before its next bytecode. Returns an event that is set afterwards. Errors are
    printed. While that thread is in a function of C, the call waits."""
    done = threading.Event()

    def run(_):
        try:
            call()
        except Exception as error:  # It must not reach the job.
            log(f"{type(error).__name__}: {error}")
        finally:
            _waiting.pop(id(done), None)
            done.set()
        return 0

    # Python keeps only its address.
    callback = _waiting[id(done)] = _Callback(run)
    # If 32 calls wait already, this one is not made.
    if ctypes.pythonapi.Py_AddPendingCall(callback, None) != 0:
        del _waiting[id(done)]
    return done
