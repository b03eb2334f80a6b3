"""Segments of a snapshot, as the library takes them."""

from __future__ import annotations

from ._library import Segments

_STATES = {"active_allocated": 0, "active_pending_free": 1, "active_awaiting_free": 1}


def columns(segments, stack_of=None):
    """`segments` of one device as columns; `stack_of` numbers a list of frames."""
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
    """{device: its segments}, for each of `devices`."""
    found = {device: [] for device in devices}
    for segment in segments:
        if segment["device"] in found:
            found[segment["device"]].append(segment)
    return found
