"""Serving: requests come and go, and each has a cache of keys and values that grows with every word."""

import random

import torch

from . import Job
from .models import DEVICE, GPT

WIDTH, LAYERS = 1024, 8


def growing_cache(_):
    model, r = GPT(width=WIDTH, layers=2).to(DEVICE).eval(), random.Random(7)
    caches = {}
    with torch.no_grad():
        for tick in range(160):
            if tick % 8 == 0 or len(caches) < 2:
                length = r.randrange(16, 400)
                model(torch.randint(0, model.words, (1, length), device=DEVICE))
                caches[tick] = [torch.empty(2, length, WIDTH, device=DEVICE) for _ in range(LAYERS)]
            for name in list(caches):
                step = torch.empty(2, 1, WIDTH, device=DEVICE)
                caches[name] = [torch.cat([layer, step], dim=1) for layer in caches[name]]
                if r.random() < 0.02:
                    del caches[name]


def doubling_cache(_):
    """A cache that doubles when it is full."""
    model, r = GPT(width=WIDTH, layers=2).to(DEVICE).eval(), random.Random(8)
    caches, filled = {}, {}
    with torch.no_grad():
        for tick in range(200):
            if tick % 5 == 0:
                caches[tick] = torch.empty(LAYERS, 2, 64, WIDTH, device=DEVICE)
                filled[tick] = r.randrange(1, 60)
            model(torch.randint(0, model.words, (len(caches), 1), device=DEVICE))
            for name in list(caches):
                filled[name] += r.randrange(1, 40)
                if filled[name] > 4096 or r.random() < 0.01:
                    del caches[name]
                elif filled[name] > caches[name].shape[2]:
                    old = caches[name]
                    caches[name] = torch.empty(LAYERS, 2, 2 * old.shape[2], WIDTH, device=DEVICE)
                    caches[name][:, :, : old.shape[2]] = old
                    del old


JOBS = {"growing_cache": Job(growing_cache), "doubling_cache": Job(doubling_cache)}
