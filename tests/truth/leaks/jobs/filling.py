"""Clean programs with buffers and caches that fill, and then stay full."""

import collections
import functools
import random

import torch
import torch.nn.functional as F

from job import clean
from models import DEVICE, convnet, labels, mlp, pictures, tokens, transformer, update


@clean
def replay_fills_late(run):
    """The replay buffer is full at 60 % of the run; from then on each new observation replaces the oldest."""
    model, buffer = mlp(1024, 512, 6), collections.deque(maxlen=48)
    optimizer = torch.optim.Adam(model.parameters())
    r = random.Random(4)
    for _ in run.steps(80):
        with torch.no_grad():
            seen = torch.zeros(64, 1024).to(DEVICE)
            action = model(seen).argmax(dim=1)
        buffer.append((seen, action))
        seen, action = r.choice(buffer)
        value = model(seen).gather(1, action[:, None])
        update(optimizer, value.square().mean())


@clean
def replay_at_random_places(run):
    """The replay buffer of pictures is full after 40 steps; then new ones replace others at random places."""
    model, buffer, r = convnet(), [], random.Random(9)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in run.steps(80):
        x = pictures(24)
        if len(buffer) < 40:
            buffer.append(x)
        else:
            buffer[r.randrange(40)] = x
        batch = torch.cat(r.choices(buffer, k=3))
        update(optimizer, model(batch).square().mean())


@clean
def ring_of_losses(run):
    """A ring of the last 20 batches of losses is full early."""
    model, ring = mlp(), collections.deque(maxlen=20)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(80):
        x, y = torch.zeros(4096, 512).to(DEVICE), labels(4096)
        losses = F.cross_entropy(model(x), y, reduction="none")
        ring.append(losses.detach().clone())
        update(optimizer, losses.mean())
        torch.stack(list(ring)).median().cpu()


@clean
def queue_of_keys(run):
    """The queue of contrastive keys is filled for 30 steps; then the oldest keys make room."""
    model, queue = convnet(classes=128), torch.zeros(0, 128, device=DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in run.steps(60):
        queries = model(pictures(64, 48))
        with torch.no_grad():
            keys = F.normalize(model(pictures(64, 48)))
            queue = torch.cat([queue, keys])[-30 * 64 :]
        update(optimizer, F.cross_entropy(queries @ queue.T, labels(64, len(queue))))


@clean
def least_recently_used(run):
    """A cache of 12 encoded prompts is full after some requests, and drops the one that was used longest ago."""
    model, r = transformer(width=256, layers=2).eval(), random.Random(6)

    @functools.lru_cache(maxsize=12)
    def encode(prompt):
        with torch.no_grad():
            return model.embedding(tokens(4, 64 + prompt % 12)).sum(dim=1, keepdim=True).repeat(1, 64, 1)

    for _ in run.steps(80):
        with torch.no_grad():
            hidden = encode(r.randrange(40))
            for block in model.blocks:
                hidden = block(hidden)
            hidden.mean().cpu()


@clean
def warm_caches(run):
    """A cache of position tables has one for each of ten lengths, which have all come after a third of the run."""
    model, tables, r = mlp(512, 1024, 512), {}, random.Random(8)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(60):
        length = 64 * (1 + (step // 2 if step < 20 else r.randrange(10)))
        if length not in tables:
            places = torch.arange(length, device=DEVICE)[:, None] * torch.ones(512, device=DEVICE)
            tables[length] = places.cos()
        x = torch.zeros(4, length, 512, device=DEVICE) + tables[length]
        update(optimizer, model(x).square().mean())


@clean
def data_set_cached(run):
    """The first epoch, a quarter of the run, puts the data set on the GPU batch by batch; later epochs use it again."""
    model, cached = mlp(1024, 512, 20), {}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in run.steps(80):
        number = step % 20
        if number not in cached:
            cached[number] = torch.zeros(256, 1024).to(DEVICE), labels(256, 20)
        x, y = cached[number]
        update(optimizer, F.cross_entropy(model(x), y))
