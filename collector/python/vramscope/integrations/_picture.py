"""A static picture of a recording: allocated and reserved memory over its events, as SVG."""

from __future__ import annotations

import csv
import io
import json

from .. import _monitor, _program

WIDTH, HEIGHT = 800, 200
POINTS = 400


def picture(path):
    """Returns the picture of a file's device with the most events, or an empty text if there is none."""
    said, _ = _program.run("report", "--json", "--", path)
    devices = json.loads(said)["files"][0].get("devices", []) if said else []
    counts = {of["device"]: sum(of["events"].values()) for of in devices}
    device = max(counts, key=counts.get, default=None)
    if not counts.get(device):
        return ""
    every = max(1, counts[device] // POINTS)
    arguments = ["--device", str(device), "--every", str(every), *(["--extremes"] if every > 1 else [])]
    said, _ = _program.run("curves", *arguments, "--", path)
    rows = csv.DictReader(io.StringIO(said or ""))
    return draw([(int(of["event"]), int(of["allocated"]), int(of["reserved"])) for of in rows])


def draw(rows):
    """Draws rows of (event, allocated, reserved), in their order."""
    if len(rows) < 2:
        return ""
    most, last = max(max(of[1:]) for of in rows) or 1, max(rows[-1][0], 1)

    def points(column):
        """Steps, because memory does not change between two events."""
        found, before = [], None
        for of in rows:
            x, y = of[0] * WIDTH / last, HEIGHT * (1 - of[column] / most)
            if before is not None:
                found.append(f"{x:.1f},{before:.1f}")
            found.append(f"{x:.1f},{y:.1f}")
            before = y
        return " ".join(found)

    peak = max(rows, key=lambda of: of[1])
    reserved = _monitor._bytes(max(of[2] for of in rows))
    title = f"{_monitor._bytes(peak[1])} allocated at the peak, after event {peak[0]:,}; at most {reserved} reserved"
    return (
        f'<svg viewBox="0 -1 {WIDTH} {HEIGHT + 25}" width="100%" style="max-width:{WIDTH}px" role="img" aria-label="{title}">'
        f'<polygon points="0,{HEIGHT} {points(1)} {WIDTH},{HEIGHT}" fill="#3b7dd8" fill-opacity="0.6"/>'
        f'<polyline points="{points(2)}" fill="none" stroke="currentColor" stroke-opacity="0.6"/>'
        f'<text x="0" y="{HEIGHT + 17}" font-size="13" fill="currentColor">{title}</text></svg>'
    )
