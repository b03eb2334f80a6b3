"""Jobs of several processes: `ranks_job.py NAME FOLDER [options as JSON]`, started by a launcher or starting others.

Each process that allocates writes PyTorch's own history to `torch.rankN.pickle`.
"""

import json
import multiprocessing
import os
import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import job

KEPT = []
"""Keeps tensors until the interpreter ends, after the recording's end."""


def work(torch, rank, folder, steps=12):
    """Trains on the rank's GPU, and writes PyTorch's own history."""
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, context=None)
    KEPT.append(job.train(torch, f"cuda:{rank}", steps))
    with open(os.path.join(folder, f"torch.rank{rank}.pickle"), "wb") as file:
        pickle.dump(torch.cuda.memory._snapshot(), file)


def rank(folder, options):
    """Runs as one of a launcher's processes."""
    import torch
    import torch.distributed

    torch.distributed.init_process_group("gloo")
    number = torch.distributed.get_rank()
    torch.cuda.set_device(number)
    # All ranks start using the GPU at once.
    torch.distributed.barrier()
    if options.get("attach"):
        import vramscope

        vramscope.attach(out=os.path.join(folder, "run.vramscope"), stacks=None)
    torch.cuda.init()
    work(torch, number, folder)
    total = torch.tensor([number + 1])
    torch.distributed.all_reduce(total)
    torch.distributed.destroy_process_group()
    # In one write, because the other rank prints too.
    os.write(1, (json.dumps({"rank": number, "sum": int(total)}) + "\n").encode())


def process(number, folder):
    """Runs as a process without a rank, which a program started itself."""
    import torch

    torch.cuda.init()
    work(torch, number, folder)


def started(folder, options):
    """Starts two processes that use the GPU, without using it itself."""
    import torch

    assert not torch.cuda.is_initialized()
    context = multiprocessing.get_context(options["method"])
    processes = [context.Process(target=process, args=(number, folder)) for number in range(2)]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
    print(json.dumps({"codes": [one.exitcode for one in processes]}), flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2], json.loads(sys.argv[3]) if len(sys.argv) > 3 else {})
