"""Random sizes, without a model."""

import random

import torch

from . import MIB, Job
from .models import DEVICE


def size(r):
    """A size in bytes: small, medium and large ones are equally frequent."""
    return int(2 ** r.choice((r.uniform(4, 20), r.uniform(20, 24), r.uniform(24, 28))))


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device=DEVICE)


def mixed_sizes(_):
    r, kept = random.Random(13), []
    for _ in range(4000):
        kept.append(empty(size(r)))
        while sum(tensor.numel() for tensor in kept) > 3000 * MIB or r.random() < 0.4 and kept:
            kept.pop(r.randrange(len(kept)))


def emptied_cache(_):
    """It drops something large and releases the cache every now and then."""
    r, kept = random.Random(17), []
    for step in range(2000):
        kept.append(empty(size(r)))
        while sum(tensor.numel() for tensor in kept) > 1500 * MIB or r.random() < 0.45 and kept:
            kept.pop(r.randrange(len(kept)))
        if step % 97 == 0:
            empty(600 * MIB)
            torch.cuda.empty_cache()


def needless_empty_cache(_):
    """Some of its calls of `empty_cache` release nothing, and leave no trace."""
    r, kept = random.Random(17), []
    for step in range(2000):
        kept.append(empty(size(r)))
        while sum(tensor.numel() for tensor in kept) > 1500 * MIB or r.random() < 0.45 and kept:
            kept.pop(r.randrange(len(kept)))
        if step % 97 == 0:
            torch.cuda.empty_cache()


JOBS = {
    "mixed_sizes": Job(mixed_sizes),
    "emptied_cache": Job(emptied_cache),
    "needless_empty_cache": Job(needless_empty_cache),
}
