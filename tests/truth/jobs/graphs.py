"""CUDA graphs and private pools, those that stay and those that end."""

import random

import torch

from . import MIB, Job
from .mixed import empty
from .models import DEVICE


def warm_up(model, x):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            model(x).sum().backward()
    torch.cuda.current_stream().wait_stream(side)


def layers(width, wide):
    return torch.nn.Sequential(torch.nn.Linear(width, wide), torch.nn.ReLU(), torch.nn.Linear(wide, width)).to(DEVICE)


def captured_graphs(_):
    """Graphs for several batch sizes share a pool, as an inference server has them; work without a graph goes on between."""
    model, graphs, pool = layers(2048, 8192), [], None
    warm_up(model, torch.randn(64, 2048, device=DEVICE))
    for batch in (512, 256, 128, 64, 32):
        x = torch.randn(batch, 2048, device=DEVICE)
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph, pool=pool):
            y = model(model(x))
        pool = graph.pool()
        graphs.append((graph, x, y))
        with torch.no_grad():
            model(torch.randn(1000, 2048, device=DEVICE))
    for graph, _, _ in graphs:
        graph.replay()
    r = random.Random(29)
    for _ in range(30):
        with torch.no_grad():
            model(torch.randn(r.randrange(10, 3000), 2048, device=DEVICE))


def memory_pools(_):
    """Two pools are filled in turn and stay."""
    pools, r, kept = [torch.cuda.MemPool() for _ in range(2)], random.Random(31), []
    for step in range(600):
        def one():
            return empty(int(2 ** r.uniform(8, 26)))

        if step % 3 == 0:
            kept.append(one())
        else:
            with torch.cuda.use_mem_pool(pools[step % 3 - 1]):
                kept.append(one())
        while len(kept) > 30 or r.random() < 0.4 and kept:
            kept.pop(r.randrange(len(kept)))


def pools_that_end(_):
    """Each round captures a graph and fills a pool, and gives both up."""
    model, r = layers(1024, 4096), random.Random(37)
    warm_up(model, torch.randn(64, 1024, device=DEVICE))
    for turn in range(8):
        x = torch.randn(512 + 64 * turn, 1024, device=DEVICE)
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            y = model(x)
        graph.replay()
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            inside = [empty(r.randrange(1, 60) * MIB // 4) for _ in range(12)]
            del inside[::3]
        outside = [empty(r.randrange(1, 60) * MIB // 4) for _ in range(6)]
        del x, y, graph, inside
        del pool
        del outside
        if turn % 3 == 2:
            torch.cuda.empty_cache()


JOBS = {
    "captured_graphs": Job(captured_graphs),
    "memory_pools": Job(memory_pools),
    "pools_that_end": Job(pools_that_end),
}
