#!/usr/bin/env python3
"""Checks that a snapshot is consistent in itself; for traces that hold the whole run.

  consistent.py FILE    exit 1 and a line on what does not fit

Its trace is replayed from nothing: every event must be possible where it stands, and the end must be the segments
that the file holds, block by block.
"""
import pickle
import sys


class DataOnly(pickle.Unpickler):
    """Refuses everything that could run code."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"the file asks for {module}.{name}")


def check(condition, message):
    if not condition:
        sys.exit(message)


def replay(trace):
    """The segments (address to size) and the active blocks (address to requested size, pending) at the end."""
    segments, active = {}, {}
    time = 0
    for i, event in enumerate(trace):
        where = f"event {i} ({event['action']})"
        check(event["time_us"] >= time, f"{where} is before the one before it")
        time = event["time_us"]
        check(len(event["frames"]) >= 4, f"{where} has a short stack")
        action, size = event["action"], event["size"]
        if action == "oom":
            check(event["device_free"] < size, f"{where} though the device had room")
            continue
        address = event["addr"]
        if action == "segment_alloc":
            check(all(address + size <= a or a + s <= address for a, s in segments.items()), f"{where} overlaps")
            segments[address] = size
        elif action == "segment_free":
            check(segments.pop(address, None) == size, f"{where} of no segment")
            check(not any(address <= a < address + size for a in active), f"{where} while in use")
        elif action == "alloc":
            check(address not in active, f"{where} of a block in use")
            check(any(a <= address and address + size <= a + s for a, s in segments.items()), f"{where} outside")
            active[address] = (size, False)
        elif action == "free_requested":
            check(active.get(address) == (size, False), f"{where} of no allocation")
            active[address] = (size, True)
        elif action == "free_completed":
            check(active.pop(address, None) == (size, True), f"{where} without a request")
        else:
            sys.exit(f"{where} is of no known kind")
    return segments, active


def main(path):
    with open(path, "rb") as file:
        snapshot = DataOnly(file).load()
    (trace,) = snapshot["device_traces"]
    segments, active = replay(trace)

    check(segments == {s["address"]: s["total_size"] for s in snapshot["segments"]}, "the segments differ")
    found = {}
    for segment in snapshot["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            check(block["address"] == at, f"a gap or an overlap at {at:#x}")
            # A cached block still says what was last requested of a block that is part of it now.
            fits = block["state"] == "inactive" or block["requested_size"] <= block["size"]
            check(block["size"] % 512 == 0 and fits, f"sizes at {at:#x}")
            at += block["size"]
            if block["state"] != "inactive":
                found[block["address"]] = (block["requested_size"], block["state"] == "active_pending_free")
        check(at == segment["address"] + segment["total_size"], f"blocks do not fill the segment at {at:#x}")
        for key, states in [("allocated_size", ["active_allocated"]), ("active_size", ["active_allocated", "active_pending_free"])]:
            total = sum(b["size"] for b in segment["blocks"] if b["state"] in states)
            check(segment[key] == total, f"{key} of the segment at {segment['address']:#x}")
    check(found == active, "the active blocks differ")
    check({e["stage"] for e in snapshot["external_annotations"]} == {"START", "END"}, "annotations")
    # The same stack is one object, as PyTorch writes it: else the file would be many times as large.
    distinct = {id(event["frames"]) for event in trace}
    check(len(distinct) < 200, f"{len(distinct)} lists of frames")


if __name__ == "__main__":
    main(sys.argv[1])
