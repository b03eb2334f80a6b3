#!/usr/bin/env python3
"""Writes a memory snapshot of about a given size, for measuring; needs no torch and no GPU, and little memory.

  make_snapshot.py SIZE FILE     SIZE in bytes, or with MB or GB: 1MB, 10MB, 1GB

The file is a protocol 4 pickle as `torch.cuda.memory._dump_snapshot` writes it: stacks and frames are written once and
referred to by the memo. The workload is a training loop: some tensors stay, the others come in order and go in the
reverse. Trace and segments fit each other exactly.
"""
import random
import struct
import sys

MIB = 1 << 20
SLOTS_MIB = [2, 2, 2, 4, 4, 8, 24]  # sizes of blocks, each drawn as often as it stands here
PERSISTENT = 400  # tensors that stay
PER_STEP = 300  # tensors that come and go in each step
STACKS, FRAMES = 2_000, 600
BASE_ADDRESS, BASE_TIME_US = 0x7F20_0000_0000, 1_772_529_124_000_000


class Writer:
    """The pickle machine's input: opcodes, with a memo for strings, stacks and frames."""

    def __init__(self, file):
        self.file, self.slots, self.memo, self.written = file, 0, {}, 0
        self.put(b"\x80\x04")

    def put(self, data):
        self.file.write(data)
        self.written += len(data)

    def memoize(self):
        self.put(b"\x94")
        self.slots += 1
        return self.slots - 1

    def get(self, slot):
        return b"h" + bytes([slot]) if slot < 256 else b"j" + struct.pack("<I", slot)

    def text(self, text):
        if text not in self.memo:
            data = text.encode()
            self.put(b"\x8c" + bytes([len(data)]) + data)
            self.memo[text] = self.memoize()
        else:
            self.put(self.get(self.memo[text]))

    def value(self, value):
        if isinstance(value, str):
            self.text(value)
        elif isinstance(value, bool):
            self.put(b"\x88" if value else b"\x89")
        elif isinstance(value, int):
            self.put(integer(value))
        elif isinstance(value, float):
            self.put(b"G" + struct.pack(">d", value))
        elif isinstance(value, Stack):
            self.stack(value)
        elif isinstance(value, tuple):
            for part in value:
                self.value(part)
            self.put(b"\x86")
            self.memoize()
        elif isinstance(value, dict):
            self.put(b"}")
            self.memoize()
            self.put(b"(")
            for key, part in value.items():
                self.text(key)
                self.value(part)
            self.put(b"u")
        else:
            self.items(value, self.value)

    def items(self, values, write):
        """A list, in the portions in which Python's pickler hands them over."""
        self.put(b"]")
        self.memoize()
        for start in range(0, len(values), 1000):
            self.put(b"(")
            for value in values[start : start + 1000]:
                write(value)
            self.put(b"e")

    def stack(self, stack):
        if stack in self.memo:
            self.put(self.get(self.memo[stack]))
            return
        self.memo[stack] = self.slots

        def frame(frame):
            if frame in self.memo:
                self.put(self.get(self.memo[frame]))
                return
            self.memo[frame] = self.slots
            self.value({"name": frame[0], "filename": frame[1], "line": frame[2]})

        self.items(stack, frame)


class Stack(tuple):
    """A stack: a tuple of (function, file, line), innermost first."""


def integer(value):
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if 0 <= value < 65536:
        return b"M" + struct.pack("<H", value)
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def make_stacks(rng):
    files = [f"/srv/train/{name}.py" for name in ("train", "model", "attention", "mlp", "optim", "data", "loss")]
    frames = [(f"function_{i}", rng.choice(files), rng.randrange(1, 900)) for i in range(FRAMES)]
    return [Stack(rng.sample(frames, rng.randrange(8, 28))) for _ in range(STACKS)]


class Memory:
    """Slots of fixed sizes, each for one block; a block always fills its slot, as less than 1 MiB is left over."""

    def __init__(self, rng):
        self.rng, self.slots, self.free, self.live = rng, [], {}, {}

    def allocate(self):
        mib = self.rng.choice(SLOTS_MIB)
        spare = self.free.setdefault(mib, [])
        is_new = not spare
        slot = spare.pop() if spare else len(self.slots)
        if is_new:
            end = sum(self.slots[-1]) if self.slots else BASE_ADDRESS
            self.slots.append((end, max(mib, 20 if mib < 10 else mib) * MIB))
        requested = mib * MIB - self.rng.randrange(0, MIB // 2)
        self.live[slot] = (mib, requested)
        return slot, requested, is_new

    def release(self, slot):
        mib, requested, *_ = self.live.pop(slot)
        self.free[mib].append(slot)
        return requested


def main(size, path):
    rng = random.Random(7)
    stacks, memory = make_stacks(rng), Memory(rng)
    with open(path, "wb", buffering=1 << 20) as file:
        writer = Writer(file)
        # The trace comes first: what the segments hold is known at its end only.
        writer.put(b"}")
        writer.memoize()
        writer.put(b"(")
        writer.text("device_traces")
        writer.put(b"]")
        writer.memoize()
        writer.put(b"(]")
        writer.memoize()
        write_trace(writer, rng, stacks, memory, size)
        writer.put(b"e")
        writer.text("segments")
        writer.value([segment(memory, i, stacks) for i in range(len(memory.slots))])
        writer.text("allocator_settings")
        writer.value(
            {
                "PYTORCH_CUDA_ALLOC_CONF": "",
                "max_split_size": -1,
                "garbage_collection_threshold": 0.0,
                "expandable_segments": False,
            }
        )
        writer.text("external_annotations")
        writer.value([])
        writer.put(b"u.")


def write_trace(writer, rng, stacks, memory, size):
    time, entries = BASE_TIME_US, 0
    templates = {}

    def entry(action, address, bytes_, stack):
        nonlocal time, entries
        time += 3
        if entries % 1000 == 0:
            writer.put(b"e(" if entries else b"(")
        entries += 1
        if (action, stack) not in templates:
            # The first of its kind is written in full; what it wrote is in the memo for all later ones.
            fields = {"action": action, "addr": address, "size": bytes_, "stream": 0, "time_us": time}
            writer.value(fields | {"compile_context": "N/A", "user_metadata": "", "frames": stack})
            ref = {text: writer.get(writer.memo[text]) for text in [*fields, "compile_context", "user_metadata", "frames"]}
            templates[action, stack] = (
                b"}\x94(" + ref["action"] + writer.get(writer.memo[action]) + ref["addr"],
                ref["size"],
                ref["stream"] + b"K\x00" + ref["time_us"],
                ref["compile_context"] + writer.get(writer.memo["N/A"]) + ref["user_metadata"]
                + writer.get(writer.memo[""]) + ref["frames"] + writer.get(writer.memo[stack]) + b"u",
            )
            return
        before_address, before_size, before_time, rest = templates[action, stack]
        data = b"".join((before_address, integer(address), before_size, integer(bytes_), before_time, integer(time), rest))
        writer.slots += 1
        writer.put(data)

    def allocate():
        stack = rng.choice(stacks)
        slot, requested, is_new = memory.allocate()
        address, segment_size = memory.slots[slot]
        if is_new:
            entry("segment_alloc", address, segment_size, stack)
        entry("alloc", address, requested, stack)
        memory.live[slot] += (stack,)
        return slot, stack

    for _ in range(PERSISTENT):
        allocate()
    while writer.written < size:
        step = [allocate() for _ in range(PER_STEP)]
        time += 20_000
        while step and writer.written < size:
            slot, stack = step.pop()
            requested = memory.release(slot)
            entry("free_requested", memory.slots[slot][0], requested, stack)
            entry("free_completed", memory.slots[slot][0], requested, stack)
        time += 20_000
    writer.put(b"e")


def segment(memory, slot, stacks):
    address, size = memory.slots[slot]
    blocks, at = [], address
    if slot in memory.live:
        mib, requested, stack = memory.live[slot]
        used = mib * MIB
        block = {"address": address, "size": used, "requested_size": requested, "state": "active_allocated"}
        blocks.append(block | {"frames": stack})
        at += used
    if at < address + size:
        rest = {"address": at, "size": address + size - at, "requested_size": 0, "state": "inactive", "frames": []}
        blocks.append(rest)
    active = sum(b["size"] for b in blocks if b["state"] != "inactive")
    return {
        "device": 0,
        "address": address,
        "total_size": size,
        "allocated_size": active,
        "active_size": active,
        "requested_size": sum(b["requested_size"] for b in blocks),
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": stacks[0],
        "blocks": blocks,
    }


if __name__ == "__main__":
    text, path = sys.argv[1:]
    unit = {"KB": 10**3, "MB": 10**6, "GB": 10**9}.get(text[-2:].upper())
    main(int(text[:-2]) * unit if unit else int(text), path)
