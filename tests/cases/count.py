#!/usr/bin/env python3
"""Counts a snapshot in the plainest way, and compares that with what `vramscope report --json` printed.

  count.py FILE REPORT    exit 1 with a line on each difference; exit 3 when Python itself can't read FILE

Nothing is shared with the program: Python's own unpickler, whole lists in memory, one pass for each question.

The peak is compared only where plain sums lead to it: not where entries are missing between trace and segments. There
the program replays, and this doesn't.
"""
import gzip
import json
import pickle
import sys


class DataOnly(pickle.Unpickler):
    """Refuses everything that could run code."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"the file asks for {module}.{name}")


def load(path):
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else open(path, "rb") as file:
        first = file.read(1)
        file.seek(0)
        return json.load(file) if first in b"{[" else DataOnly(file).load()


def by_device(snapshot):
    """(segments, trace) of every device that has either."""
    if isinstance(snapshot, list):
        snapshot = {"segments": snapshot}
    segments = snapshot.get("segments", [])
    traces = snapshot.get("device_traces", [])
    numbers = {s.get("device", 0) for s in segments} | {i for i, trace in enumerate(traces) if trace}
    return {
        n: ([s for s in segments if s.get("device", 0) == n], traces[n] if n < len(traces) else []) for n in numbers
    }


def count(segments, trace):
    blocks = [b for s in segments for b in s["blocks"]]
    active = [b for b in blocks if b["state"] != "inactive"]
    end = {
        "allocated_bytes": sum(b["size"] for b in active if b["state"] == "active_allocated"),
        "active_bytes": sum(b["size"] for b in active),
        "reserved_bytes": sum(s["total_size"] for s in segments),
        "requested_bytes": sum(b.get("requested_size", b["size"]) for b in active),
        "segments": len(segments),
        "blocks": len(blocks),
    }

    def total_of(plus, minus):
        return sum(e["size"] * ((e["action"] in plus) - (e["action"] in minus)) for e in trace)

    # What was there before the first event is what is left over when all events are taken back.
    level = end["requested_bytes"] - total_of(["alloc"], ["free_completed"])
    reserved = end["reserved_bytes"] - total_of(["segment_alloc", "segment_map"], ["segment_free", "segment_unmap"])
    levels = [level]
    for event in trace:
        level += event["size"] * ((event["action"] == "alloc") - (event["action"] == "free_completed"))
        levels.append(level)
    actions = [event["action"] for event in trace]
    return {
        "events": {action: actions.count(action) for action in set(actions)},
        "end": end,
        "start": {"reserved_bytes": reserved},
        "peak": max(levels),
        "peak_position": levels.index(max(levels)),
    }


def compare(want, got, sums_lead_to_the_peak):
    for action in want["events"].keys() | got["events"].keys():
        yield f"events {action}", want["events"].get(action, 0), got["events"].get(action, 0)
    for part in ("end", "start"):
        for name, value in want[part].items():
            yield f"{part}.{name}", value, got[part][name]
    held = sum(stack["bytes"] for stack in got["peak_stacks"]) + got["other_bytes"]
    yield "the peak's stacks together", got["peak"]["requested_bytes"], held
    if sums_lead_to_the_peak:
        event = got["peak"]["event"]
        yield "peak.event", want["peak_position"], event or 0
        yield "peak.requested_bytes", want["peak"], got["peak"]["requested_bytes"]


def main(path, report):
    try:
        devices = by_device(load(path))
    except Exception as error:
        print(f"Python can't read it: {error}")
        sys.exit(3)
    with open(report) as file:
        (found,) = json.load(file)["files"]
    reported = {device["device"]: device for device in found["devices"]}
    differences = [f"devices {sorted(reported)}, counted {sorted(devices)}"] if reported.keys() != devices.keys() else []
    is_whole = all(finding["code"] != "inconsistent" for finding in found["findings"])
    for number in devices.keys() & reported.keys():
        segments, trace = devices[number]
        for what, want, got in compare(count(segments, trace), reported[number], is_whole):
            if want != got:
                differences.append(f"device {number}: {what} is {got}, counted {want}")
    print("\n".join(differences))
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
