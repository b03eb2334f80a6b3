"""PyTorch's recording of history, which the agent shares with the job.

Entries have stacks only while history is recorded. The job may start and end that at any time with
`torch.cuda.memory._record_memory_history`, whose settings then apply to the agent too.
"""

from __future__ import annotations

import os
import threading

from . import _exit, _main_thread, _torch
from ._log import log


MAIN_SECONDS = 0.2
"""How long the end of a recording waits for the main thread, to end the history there."""


class History:
    """Keeps history on, from `open` to `close`, while the job does not record it itself. ``is_ours`` says who does.

    `begin` starts the agent's own recording, whose entries have stacks if `has_stacks`. ``changes`` counts how often a
    recording began or ended.
    """

    def __init__(self, torch, begin, has_stacks):
        self._torch, self._begin, self._has_stacks = torch, begin, has_stacks
        self._is_open = self.is_ours = False
        self._pid = os.getpid()
        self.changes = 0
        self._is_paused = False
        self._thread = None

    def open(self):
        """Starts the agent's recording of history, unless the job records it."""
        self._is_open = True
        _torch.watch_history(self._torch, self._changed)
        self.check()

    def check(self):
        """Starts the agent's recording again if history was ended in a way that is not noticed at once."""
        if self._is_open and not self._is_paused and not _torch.is_recording(self._torch):
            self.changes += 1
            self.is_ours = True
            self._thread = threading.current_thread()
            self._begin()

    def pause(self):
        """Ends the agent's own recording until `resume`, in the thread that began it: see `_end`."""
        self._is_paused = True
        if self._is_begun_by_main():
            _main_thread.soon(self._end_if_paused)
        else:
            self._end()

    def resume(self):
        """Starts the agent's recording again, unless the job records."""
        self._is_paused = False
        if self._is_begun_by_main():
            _main_thread.soon(self.check)
        else:
            self.check()

    def _is_begun_by_main(self):
        main = threading.main_thread()
        return self._thread is main and threading.current_thread() is not main and main.is_alive()

    def _end_if_paused(self):
        if self._is_paused:
            self._end()

    def _end(self):
        """Ends the agent's own recording. PyTorch prints a warning if another thread than the one that began it does."""
        is_ours, self.is_ours = self.is_ours, False
        # A process that ends needs no such end.
        if is_ours and not _exit.is_exiting() and _torch.is_recording(self._torch):
            _torch.end_history(self._torch)

    def _changed(self, is_recording, context):
        # Called in the job's thread: an error must not reach it.
        try:
            if not self._is_open or self._pid != os.getpid():
                return
            self.changes += 1
            if is_recording:
                self.is_ours = False
                if context not in ("alloc", "all") and self._has_stacks:
                    log("The job records PyTorch's history without stacks. Until it ends that, events have no stacks.")
            else:
                self.check()
        except Exception as error:
            log(f"Events have no stacks from now on: {type(error).__name__}: {error}")

    def close(self):
        """Ends the agent's own recording of history. The job's goes on."""
        if not self._is_open:
            return
        self._is_open = False
        _torch.watch_history(self._torch, None)
        if self._is_begun_by_main():
            # Afterwards, there is nothing left to end here.
            _main_thread.soon(self._end).wait(MAIN_SECONDS)
        self._end()
