"""Converts a snapshot's segments and stacks for the library."""

from __future__ import annotations

from ._backward import OWN
from ._library import Segments

_STATES = {"active_allocated": 0, "active_pending_free": 1, "active_awaiting_free": 1}


def columns(segments, stack_of=None):
    """Converts one device's segments to columns. `stack_of` numbers a list of frames."""
    to = Segments()
    for segment in segments:
        pool = segment.get("segment_pool_id", (0, 0))
        to.address.append(segment["address"])
        to.size.append(segment["total_size"])
        to.stream.append(segment.get("stream", 0))
        to.flags.append((segment.get("segment_type") == "small") + 2 * bool(segment.get("is_expandable")))
        to.pool0.append(pool[0])
        to.pool1.append(pool[1])
        to.stack.append(stack_of(segment.get("frames")) if stack_of else 0)
        to.blocks_each.append(len(segment["blocks"]))
        address = segment["address"]
        for block in segment["blocks"]:
            to.block_address.append(block.get("address", address))
            to.block_size.append(block["size"])
            to.block_requested.append(block.get("requested_size", block["size"]))
            to.block_state.append(_STATES.get(block["state"], 2))
            to.block_stack.append(stack_of(block.get("frames")) if stack_of else 0)
            address += block["size"]
    return to


def by_device(segments, devices):
    """Returns the segments of each of `devices`."""
    found = {device: [] for device in devices}
    for segment in segments:
        if segment["device"] in found:
            found[segment["device"]].append(segment)
    return found


def no_stack(frames):
    """Returns the number of the empty stack."""
    return 0


class Names:
    """Numbers each distinct stack once."""

    MAX_CACHED = 1 << 18
    """The most cached frames, and the most cached stacks; beyond it the cache is emptied."""

    def __init__(self, library):
        self._library = library
        self._frames, self._stacks = {}, {}
        # By the list's identity: in a snapshot, entries with the same stack share one list.
        self._lists = {}

    def next_snapshot(self):
        """Forgets the lists of the previous snapshot."""
        self._lists = {}

    def stack(self, frames):
        """Returns the number of a snapshot's list of frames."""
        if not frames:
            return 0
        known = self._lists.get(id(frames))
        if known is not None and known[0] is frames:
            return known[1]
        shown = (frame for frame in frames if not frame["filename"].startswith(OWN))
        numbers = tuple(number for number in map(self._frame, shown) if number >= 0)
        number = self._stacks.get(numbers)
        if number is None:
            if len(self._stacks) >= self.MAX_CACHED:
                self._stacks.clear()
            number = self._stacks[numbers] = self._library.stack(numbers)
        self._lists[id(frames)] = (frames, number)
        return number

    def _frame(self, frame):
        name, filename, line = frame["name"], frame["filename"], frame["line"]
        number = self._frames.get((name, filename, line))
        if number is None:
            if len(self._frames) >= self.MAX_CACHED:
                self._frames.clear()
            number = self._frames[name, filename, line] = self._library.frame(name, filename, line)
        return number
