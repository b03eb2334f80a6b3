"""Devices with too little memory: requests that are tried again, and failures that are caught."""

import random

import torch

from . import MIB, Job
from .mixed import empty, size
from .models import gpt_step
from .training import gpt


def kept_one(kept, size):
    """Returns whether there was memory for one more."""
    try:
        kept.append(empty(size))
    except torch.cuda.OutOfMemoryError:
        return False
    return True


def caught_failures(_):
    """Asks for buffers, halves what it can't have, and goes on."""
    r, kept = random.Random(41), []
    for _ in range(900):
        wanted = size(r)
        while not kept_one(kept, wanted):
            wanted //= 2
            if kept:
                kept.pop(0)
        while r.random() < 0.42 and kept:
            kept.pop(r.randrange(len(kept)))


def halved_batch(_):
    """Looks for the largest batch that fits, then trains with it."""
    training, batch, steps = gpt(layers=2), 64, 0
    while steps < 4:
        try:
            gpt_step(*training, batch=batch, length=512)
            steps += 1
        except torch.cuda.OutOfMemoryError:
            batch //= 2
            for parameter in training[0].parameters():
                parameter.grad = None


def tight(_):
    """Trains with variable lengths on a device that is nearly too small: requests are tried again."""
    training, r = gpt(), random.Random(43)
    for _ in range(16):
        gpt_step(*training, batch=6, length=r.randrange(48, 640))


def full(_):
    """Random sizes until nothing is left."""
    r, kept = random.Random(47), []
    for _ in range(3000):
        kept.append(empty(size(r)))
        while sum(tensor.numel() for tensor in kept) > 700 * MIB or r.random() < 0.42 and kept:
            kept.pop(r.randrange(len(kept)))


def tight_sizes(_):
    """Random sizes on a device that is nearly too small."""
    r, kept = random.Random(47), []
    for _ in range(3000):
        kept.append(empty(size(r)))
        while sum(tensor.numel() for tensor in kept) > 500 * MIB or r.random() < 0.42 and kept:
            kept.pop(r.randrange(len(kept)))


JOBS = {
    "caught_failures": Job(caught_failures, memory=1200 * MIB),
    "halved_batch": Job(halved_batch, memory=3000 * MIB),
    "tight": Job(tight, memory=2600 * MIB),
    "tight_sizes": Job(tight_sizes, memory=950 * MIB),
    "full": Job(full, memory=1100 * MIB),
}
