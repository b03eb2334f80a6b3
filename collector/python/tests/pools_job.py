"""A job with CUDA graphs and pools of memory: `pools_job.py FOLDER [options as JSON]`. Its last line is JSON."""

import json
import os
import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

KEPT = []


def graphs(torch):
    """Captures graphs with their own and with a shared pool, replays them, and allocates beside a capture."""
    static = torch.zeros(1 << 18, device="cuda")
    pool = torch.cuda.graph_pool_handle()
    for size in range(6):
        graph = torch.cuda.CUDAGraph()
        # An allocation during the capture needs a segment of the pool. Memory that is freed during it is reused.
        with torch.cuda.graph(graph, pool=pool if size % 2 else None):
            parts = [static + at for at in range(4 + size)]
            wide = torch.empty(3 << 20, device="cuda")
            del wide
            again = torch.empty(2 << 20, device="cuda")
            total = sum(parts)
        del parts, again
        for _ in range(3):
            graph.replay()
        KEPT.append((graph, total))
        torch.empty(5 << 20, device="cuda")
    # The pool is freed with its graph.
    KEPT.pop()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    layer = torch.nn.Linear(64, 64).cuda()
    KEPT.append(torch.cuda.make_graphed_callables(layer, (torch.zeros(8, 64, device="cuda"),)))
    for _ in range(4):
        KEPT[-1](torch.zeros(8, 64, device="cuda")).sum().backward()


def pools(torch):
    """Uses two `MemPool`s and frees one of them. Returns whether this release supports them."""
    if not hasattr(torch.cuda, "use_mem_pool"):
        return False
    first, second = torch.cuda.MemPool(), torch.cuda.MemPool()
    for pool in (first, second, first):
        with torch.cuda.use_mem_pool(pool):
            kept = [torch.empty(1 << at, device="cuda") for at in range(8, 24)]
        del kept[::2]
        KEPT.append(kept)
    KEPT.pop(-2)
    del kept, pool, second
    torch.cuda.empty_cache()
    KEPT.append(first)
    return True


def main(folder, options):
    import torch

    import job
    import vramscope

    stacks = options["stacks"]
    agent = vramscope.attach(out=os.path.join(folder, "run.vramscope"), stacks=stacks, mode=options["mode"], context="all")
    torch.cuda.init()
    assert agent.state == "running", agent.reason
    if options["mode"] == "events":
        torch.cuda.memory._record_memory_history(
            max_entries=1_000_000, stacks=stacks or "python", context="all" if stacks else None
        )
    graphs(torch)
    has_pools = pools(torch)
    KEPT.append(job.train(torch, "cuda", 6))
    with open(os.path.join(folder, "torch.pickle"), "wb") as file:
        pickle.dump(torch.cuda.memory._snapshot(), file)
    result = agent.detach()
    print(json.dumps({"has_pools": has_pools, "mode": agent.mode, "reason": agent.reason, "lost": result["lost"]}))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
