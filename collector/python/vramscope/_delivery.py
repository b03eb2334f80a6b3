"""Reports on standard error whether a recording reaches its server, and whether a disk is full: each change once."""

from __future__ import annotations

import os
import threading
import time

GREETING_SECONDS = 2.0
"""How long the first connection may take before the server is reported as unreachable."""
SOON_SECONDS, LATER_SECONDS = 0.05, 1.0
"""The time between two checks, before and after the first connection."""


def one_line(text):
    """Returns a text from outside as one printable line."""
    return "".join(c for c in " ".join(str(text).split()) if c.isprintable())


def _refusal(stats):
    """Returns why the server has refused for good, with what to do about it."""
    why = one_line(stats["refused"])
    if stats.get("cause") == "token":
        why = f"{why.rstrip('.')}. Set VRAMSCOPE_TOKEN, or pass token= to attach()."
    return why


def _is_local(address):
    """Returns whether an address is one of this machine."""
    return any(f"//{name}" in address for name in ("127.0.0.1", "localhost", "[::1]"))


class Delivery:
    """Checks the library's statistics of its server and disks, in its own thread, from `start` to `end`.

    `to` is the server's address, `page` that of the recording there, and `out` the file beside it or None. That thread calls
    `refused(why)` when the server has refused for good. `log` prints a line.
    """

    def __init__(self, library, to, out, log, refused=None, page=None):
        self._library, self._to, self._out, self._log, self._refused = library, to, out, log, refused
        self._page = page or to
        self._what, self._reason = "", None
        self._since = None
        self._trouble = None
        self._is_greeted = self._is_away = self._is_refused = self._is_full = False
        self._stop = threading.Event()

    def start(self, what, reason=None):
        """Starts checking. `what` is the mode, and `reason` why it is not a better one."""
        self._what, self._reason = what, reason
        if self._to is None:
            self._greet()
        threading.Thread(target=self._run, name="vramscope-delivery", daemon=True).start()

    def was_connected(self, stats):
        """Returns whether the server has answered, now or before, given the library's statistics. True without a server."""
        if self._to is None or self._is_greeted:
            return True
        # The connection may have opened and closed between two checks.
        return bool(stats) and (stats.get("is_connected") or stats.get("sent_events", 0) > stats.get("undelivered", 0))

    def _run(self):
        while True:
            try:
                self.look(time.monotonic())
            except Exception as error:  # The recording is sent without these checks.
                self._log(f"No longer checking the recording: {type(error).__name__}: {error}")
                return
            if self._is_refused or self._stop.wait(self._interval(time.monotonic())):
                return

    def _interval(self, now):
        is_starting = self._since is not None and now - self._since < 2 * GREETING_SECONDS
        return SOON_SECONDS if is_starting and not self._is_greeted else LATER_SECONDS if self._is_greeted else 0.25

    def _greet(self, verb="Recording"):
        self._is_greeted = True
        # `vramscope watch` says it for the whole job.
        if os.environ.get("VRAMSCOPE_WATCHED"):
            return
        place = " and ".join(place for place in (self._page, self._out) if place is not None)
        self._log(f"{verb} to {place}: {self._what}" + (f" ({self._reason})" if self._reason else ""))

    def look(self, now):
        """Reports what is new at the time `now`, in seconds."""
        stats = self._library.stats()
        if not stats or self._stop.is_set():
            return
        if self._since is None:
            self._since = now
        self._look_at_disk(stats.get("full_disk"))
        if self._to is None:
            return
        if stats.get("refused"):
            self._is_refused = True
            why = f"{self._to}: {_refusal(stats)}"
            self._log(f"{'Recording' if self._out is None else 'Sending'} stopped: {why}")
            if self._refused is not None:
                self._refused(why)
        elif stats.get("is_connected"):
            if not self._is_greeted:
                self._greet()
        elif not self._is_greeted and not self._is_away:
            # An error is reported at its second check: the publisher may be about to try another way.
            before, trouble = self._trouble, stats.get("trouble")
            self._trouble = trouble
            if trouble and trouble == before:
                self._report_away(trouble, stats.get("cause"))
            elif not trouble and now - self._since >= GREETING_SECONDS:
                self._report_away(f"{self._to}: no answer yet")

    def _look_at_disk(self, why):
        if bool(why) != self._is_full:
            self._is_full = bool(why)
            self._log(f"{one_line(why)}. Make room: events that have none are left out and counted." if why else "The disk has room again.")

    def _report_away(self, trouble, cause=None):
        self._is_away = True
        beside = "" if self._out is None else f" and written to {self._out}"
        trouble = one_line(trouble).rstrip(".")
        if cause in ("refusal", "token"):
            what = f"The server refused the session: {trouble}"
        else:
            what = f"Cannot {'trust' if cause == 'certificate' else 'reach'} the server ({trouble})"
        start = " Start one with `vramscope serve`." if cause == "connection" and _is_local(self._to) else ""
        self._log(f"{what}.{start} Events are kept for it{beside}.")
        if self._reason:
            self._log(f"{self._what} ({self._reason})")

    def end(self, result):
        """Reports what was not delivered, given the result of the library's `finish`. Returns that line, or None if
        nothing is missing."""
        self._stop.set()
        if result is None:
            line = "The recording's end may be missing: time ran out before it was written and sent."
            self._log(line)
            return line
        missing = result.get("undelivered", 0)
        if self._to is None or not missing:
            if not self._is_greeted and not self._is_refused:
                self._greet("Recorded")
            return None
        why = _refusal(result) if result.get("refused") else result.get("trouble")
        delivered = result.get("sent_events", missing) - missing
        events = f"{delivered:,} {'event' if delivered == 1 else 'events'}"
        was = "was" if missing == 1 else "were"
        line = f"{self._to} received {events}; {missing:,} {was} not delivered"
        line += f" ({one_line(why).rstrip('.')})." if why else "."
        self._log(line)
        return line
