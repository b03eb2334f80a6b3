"""Where a program reads values from the GPU: each is a place at which what it does may depend on a value that was made up.

``VRAMSCOPE_PREDICT_VALUES`` has values that are given for such lines: a list of objects with `file`, the end of a path, `line` and
`value`.
"""

import json
import os
import sys
import threading

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


LOOP = 100_000
"""How often one line reads a made-up value before the program is taken for one that waits for it to change."""


class Readbacks:
    """Counts readbacks by the line of the program that asked for them."""

    on_loop = None
    """Is called with a line that reads a made-up value again and again."""

    def __init__(self, packages=()):
        """`packages`: the folders whose code is not the program's."""
        self._inside = (_OWN, *(os.path.join(os.path.abspath(p), "") for p in packages))
        self._is_inside = {}
        self._counts = {}
        self._given = _given(os.environ.get("VRAMSCOPE_PREDICT_VALUES"))
        self._lock = threading.Lock()

    def count(self, op, made_up):
        """Counts one readback by the calling thread."""
        file, line = self._line(sys._getframe(1))
        key = (file, line, op, bool(made_up))
        with self._lock:
            count = self._counts[key] = self._counts.get(key, 0) + 1
        if made_up and count == LOOP and self.on_loop is not None:
            self.on_loop()

    def given(self):
        """Returns the value that is given for what the calling thread reads where nothing computed it, or None."""
        if not self._given:
            return None
        file, line = self._line(sys._getframe(1))
        path = os.path.abspath(file).replace(os.sep, "/") if file else ""
        return next((value for end, number, value in self._given if number == line and ("/" + path).endswith("/" + end)), None)

    def _line(self, frame):
        while frame is not None:
            code = frame.f_code
            is_inside = self._is_inside.get(code)
            if is_inside is None:
                name = code.co_filename
                is_inside = name.startswith("<") or os.path.abspath(name).startswith(self._inside)
                self._is_inside[code] = is_inside
            if not is_inside:
                return code.co_filename, frame.f_lineno
            frame = frame.f_back
        return None, None

    def rows(self):
        """Returns dicts with `file`, `line`, `op`, `count` and `made_up`: made-up ones first, then the most frequent."""
        with self._lock:
            counts = list(self._counts.items())
        counts.sort(key=lambda one: (not one[0][3], -one[1], one[0][0] or "", one[0][1] or 0, one[0][2]))
        return [
            {"file": file, "line": line, "op": op, "count": count, "made_up": made_up}
            for (file, line, op, made_up), count in counts
        ]


def _given(text):
    """Returns the end of a path, the line and the value of each value that is given."""
    try:
        given = json.loads(text or "[]")
        return [(one["file"].replace(os.sep, "/").removeprefix("./"), one["line"], one["value"]) for one in given]
    except (ValueError, TypeError, KeyError):
        return []
