"""The annotations that PyTorch keeps with its history: spans of `record_function`, if the job records them."""

from __future__ import annotations

_STAGES = {"START": 0, "END": 1}


class Annotations:
    """Finds the annotations that were not in the last snapshot. Of those in the first one, only the starts of spans that
    are still open are new."""

    def __init__(self, snapshot):
        self._last, self._at_last = 0, 0
        self._open = []
        for note in self._unread(snapshot):
            if note[2] == 0:
                self._open.append(note)
            elif note[2] == 1:
                same = (at for at in reversed(range(len(self._open))) if self._open[at][:2] == note[:2])
                at = next(same, None)
                if at is not None:
                    del self._open[at]

    def new(self, snapshot):
        """Returns the new ones: device, name, stage (0 start, 1 end, 2 instant), microseconds since the epoch."""
        found, self._open = self._open, []
        return found + self._unread(snapshot)

    def _unread(self, snapshot):
        found, skip = [], self._at_last
        for entry in snapshot.get("external_annotations", []):
            time_us = entry.get("time_us", 0)
            if time_us < self._last:
                continue
            if time_us == self._last and skip > 0:  # Several may have the same time.
                skip -= 1
                continue
            found.append((entry.get("device", 0), entry.get("name", ""), _STAGES.get(entry.get("stage"), 2), time_us))
        for note in found:
            self._at_last = self._at_last + 1 if note[3] == self._last else 1
            self._last = note[3]
        return found
