"""Buffers, queues and caches that have no end."""

import collections
import functools

import torch
import torch.nn.functional as F

from job import leaking
from models import DEVICE, convnet, labels, mlp, pictures, tokens, transformer, update


@leaking(share=0.0037)
def ring_without_end(run):
    """A buffer of the last 16 batches pops from its list of keys, and forgets to remove the batches themselves."""

    class Recent:
        def __init__(self, capacity):
            self.capacity, self.order, self.items = capacity, [], {}

        def add(self, key, value):
            self.items[key] = value[:2].clone()  # leaks
            self.order.append(key)
            if len(self.order) > self.capacity:
                self.order.pop(0)

    model, recent = mlp(), Recent(16)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(80):
        x = torch.zeros(256, 512).to(DEVICE)
        recent.add(step, x)
        update(optimizer, F.cross_entropy(model(x), labels(256)))


@leaking(share=0.016)
def queue_concatenated(run):
    """A queue of contrastive keys is concatenated with each batch, and never cut."""
    model, queue = convnet(classes=128), torch.zeros(1, 128, device=DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in run.steps(50):
        queries, keys = model(pictures(64)), model(pictures(64)).detach()
        loss = F.cross_entropy(queries @ queue.T, labels(64, len(queue)))
        update(optimizer, loss)
        queue = torch.cat([queue, F.normalize(keys)])  # leaks


@leaking(share=0.12)
def replay_without_end(run):
    """The replay buffer of an agent is a list without a limit, and keeps its observations on the GPU."""
    model, r = mlp(1024, 512, 6), torch.Generator().manual_seed(2)
    target = mlp(1024, 512, 6)
    optimizer = torch.optim.Adam(model.parameters())
    buffer = []
    for _ in run.steps(60):
        with torch.no_grad():
            seen = torch.zeros(32, 1024).to(DEVICE)  # leaks
            action = model(seen).argmax(dim=1).cpu()
        buffer.append((seen, action))
        places = torch.randint(len(buffer), (4,), generator=r).tolist()
        batch = torch.cat([buffer[place][0] for place in places])
        value = target(batch).detach().max(dim=1).values
        update(optimizer, F.mse_loss(model(batch).max(dim=1).values, value))


@leaking(share=0.18)
def prefetcher_keeps(run):
    """A prefetcher puts batches on the GPU ahead of time, and goes through its list by index without dropping any."""

    class Prefetcher:
        def __init__(self, ahead):
            self.batches, self.next = [], 0
            for _ in range(ahead):
                self.load()

        def load(self):
            self.batches.append(torch.zeros(64, 3, 32, 32).to(DEVICE, non_blocking=True))  # leaks

        def __call__(self):
            self.load()
            self.next += 1
            return self.batches[self.next - 1]

    model, batches = convnet((64, 128, 256)), Prefetcher(2)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(50):
        update(optimizer, F.cross_entropy(model(batches().repeat(8, 1, 1, 1)), labels(512, 100)))


@leaking(share=0.0088)
def masks_by_shape(run):
    """A cache of masks by shape, meant for a few shapes, gets a new one for nearly every batch."""
    model, masks = transformer(layers=2), {}
    optimizer = torch.optim.AdamW(model.parameters())

    def mask(length):
        if length not in masks:
            masks[length] = torch.ones(length, length, dtype=torch.bool, device=DEVICE).tril()  # leaks
        return masks[length]

    for step in run.steps(50):
        length = run.varied(64, 640) if step < 50 else 640 + step
        words = tokens(4, length)
        hidden = model.embedding(words) * mask(length).any(dim=1)[:, None]
        for block in model.blocks:
            hidden = block(hidden)
        update(optimizer, F.cross_entropy(model.head(hidden).flatten(0, 1), words.flatten()))


@leaking(share=0.0083)
def method_with_a_cache(run):
    """functools.lru_cache on a method takes tensors as keys, which are never equal, and keeps them with the results."""

    class Encoder:
        def __init__(self):
            self.model = mlp(256, 1024, 256)

        @functools.lru_cache(maxsize=4096)
        def encode(self, x):
            with torch.no_grad():
                return self.model(x)  # leaks

    encoder, student = Encoder(), mlp(256, 1024, 256)
    optimizer = torch.optim.AdamW(student.parameters())
    for _ in run.steps(50):
        x = torch.zeros(8, 256).to(DEVICE)  # leaks
        update(optimizer, F.mse_loss(student(x), encoder.encode(x)))


@leaking(share=0.077)
def two_callers_of_a_library(run):
    """Two lines call the same function of PyTorch and keep its results in a memory that has no limit."""
    model, memory = mlp(512, 1024, 64), collections.defaultdict(list)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(50):
        x = torch.zeros(192, 512).to(DEVICE)
        features = model(x)
        memory["features"].append(F.normalize(features.detach(), dim=1))  # leaks
        memory["inputs"].append(F.normalize(x[:48], dim=1))  # leaks most
        update(optimizer, features.square().mean())
