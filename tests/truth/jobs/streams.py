"""Several streams: blocks that other streams still use when they are freed."""

import random

import torch

from . import MIB, Job
from .mixed import empty


def side_stream_copies(recording):
    """Batches are loaded on a stream of their own, which runs ahead or behind."""
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    r = random.Random(19)
    for step in range(120):
        if step % 5 == 0:
            recording.device.hold(main)
        with torch.cuda.stream(side):
            batch = empty(r.randrange(1, 48) * MIB // 2)
        main.wait_stream(side)
        results = [empty(r.randrange(1, 24) * MIB) for _ in range(3)]
        batch.record_stream(main)
        del batch, results
        if step % 5 == 3:
            recording.device.release(main)


def many_streams(recording):
    """Four streams hand tensors to each other, and lag behind in turn."""
    streams, r, kept = [torch.cuda.Stream() for _ in range(4)], random.Random(23), []
    for step in range(1500):
        number = r.randrange(4)
        with torch.cuda.stream(streams[number]):
            kept.append(empty(int(2 ** r.uniform(10, 26))))
        if r.random() < 0.3:
            kept[-1].record_stream(r.choice(streams))
        while len(kept) > 40 or r.random() < 0.3 and kept:
            kept.pop(r.randrange(len(kept)))
        if step % 40 == 0:
            for stream in streams:
                recording.device.release(stream)
            recording.device.hold(streams[step // 40 % 4])
    torch.cuda.synchronize()


def lagging(recording):
    """A stream lags on a device that is nearly too small: requests wait for it."""
    side, r, kept = torch.cuda.Stream(), random.Random(53), []
    for step in range(1200):
        kept.append(empty(int(2 ** r.uniform(12, 26.5))))
        if r.random() < 0.5:
            kept[-1].record_stream(side)
        while sum(tensor.numel() for tensor in kept) > 600 * MIB or r.random() < 0.35 and kept:
            kept.pop(r.randrange(len(kept)))
        if step % 50 == 0:
            recording.device.release(side)
            recording.device.hold(side)


JOBS = {
    "side_stream_copies": Job(side_stream_copies),
    "many_streams": Job(many_streams),
    "lagging": Job(lagging, memory=900 * MIB),
}
