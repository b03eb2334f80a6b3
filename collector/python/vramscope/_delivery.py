"""Whether a recording gets to its server, told to the person at the terminal: what changes, each time once."""

from __future__ import annotations

import threading
import time

GREETING_SECONDS = 2.0
"""After so long without a word a server is said not to be there."""
SOON_SECONDS, LATER_SECONDS = 0.05, 1.0
"""Between two looks: while the beginning is awaited, and after."""


def one_line(text):
    """What came from outside, fit for a line of a terminal."""
    return "".join(c for c in " ".join(str(text).split()) if c.isprintable())


class Delivery:
    """Looks after what the library says of its server, in a thread of its own, from `start` to `end`.

    `to` is the server's address, `out` the file beside it or None. `refused(why)` is called, from that thread, when the
    server has refused for good. Everything goes to the terminal by `log`.
    """

    def __init__(self, library, to, out, log, refused=None):
        self._library, self._to, self._out, self._log, self._refused = library, to, out, log, refused
        self._what, self._reason = "", None
        self._since = None
        self._trouble = None
        self._is_greeted = self._is_away = self._is_refused = False
        self._stop = threading.Event()

    def start(self, what, reason=None):
        """Begins to look; `what` is recorded, in this mode for that `reason`."""
        self._what, self._reason = what, reason
        if self._to is None:
            self._greet()
            return
        threading.Thread(target=self._run, name="vramscope-delivery", daemon=True).start()

    def _run(self):
        while True:
            try:
                self.look(time.monotonic())
            except Exception as error:  # What is recorded is sent all the same.
                self._log(f"nobody looks after the server any more: {type(error).__name__}: {error}")
                return
            if self._is_refused or self._stop.wait(self._interval(time.monotonic())):
                return

    def _interval(self, now):
        is_begun = self._since is not None and now - self._since < 2 * GREETING_SECONDS
        return SOON_SECONDS if is_begun and not self._is_greeted else LATER_SECONDS if self._is_greeted else 0.25

    def _greet(self, verb="recording"):
        self._is_greeted = True
        place = " and ".join(place for place in (self._to, self._out) if place is not None)
        self._log(f"{verb} to {place}: {self._what}" + (f" ({self._reason})" if self._reason else ""))

    def look(self, now):
        """Says what is new at the time `now`, in seconds."""
        stats = self._library.stats()
        if not stats or self._stop.is_set():
            return
        if self._since is None:
            self._since = now
        if stats.get("refused"):
            self._is_refused = True
            why = f"{self._to}: {one_line(stats['refused'])}"
            self._log(f"nothing is {'recorded' if self._out is None else 'sent'} any more: {why}")
            if self._refused is not None:
                self._refused(why)
        elif stats.get("is_connected"):
            if not self._is_greeted:
                self._greet()
        elif not self._is_greeted and not self._is_away:
            # One that is tried in another way the next moment is not away.
            before, trouble = self._trouble, stats.get("trouble")
            self._trouble = trouble
            if trouble and trouble == before:
                self._say_away(trouble)
            elif not trouble and now - self._since >= GREETING_SECONDS:
                self._say_away(f"{self._to}: no answer yet")

    def _say_away(self, trouble):
        self._is_away = True
        beside = "" if self._out is None else f", and goes to {self._out}"
        self._log(f"The server is not there ({one_line(trouble)}); what is recorded waits for it{beside}.")
        if self._reason:
            self._log(f"{self._what} ({self._reason})")

    def end(self, result):
        """Says what did not arrive, of what the library's `finish` gave; that line, or None where nothing is missing."""
        self._stop.set()
        if result is None:
            line = "the end is not whole: there was no time left to write and send it"
            self._log(line)
            return line
        missing = result.get("undelivered", 0)
        if self._to is None or not missing:
            if not self._is_greeted and not self._is_refused:
                self._greet("recorded")
            return None
        why = result.get("refused") or result.get("trouble")
        line = f"{self._to} has {result.get('sent_events', missing) - missing:,} events; {missing:,} did not arrive"
        line += f" ({one_line(why).rstrip('.')})." if why else "."
        self._log(line)
        return line
