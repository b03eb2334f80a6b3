"""Jobs that use PyTorch's history, annotations and marks themselves: `history_job.py NAME FOLDER [options as JSON]`. Each
prints JSON as its last line.
"""

import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import job
from job import OPTIONS, agent_options, dump, out


def own_history():
    """Starts and ends its own history while it is recorded."""
    import torch

    import vramscope
    import vramscope._torch

    agent = vramscope.attach(out=out(), **agent_options())

    def allocate():
        return [torch.empty(1000, device="cuda") for _ in range(10)]

    kept = [allocate()]
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    kept.append(allocate())
    torch.cuda.memory._record_memory_history(enabled=None)
    kept.append(allocate())
    # Ended in a way that the agent is not told of: it notices at its next turn.
    vramscope._torch.end_history(torch)
    time.sleep(1.5)
    kept.append(allocate())
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    result = agent.detach()
    still_on = torch._C._cuda_isHistoryEnabled()
    torch.cuda.memory._record_memory_history(enabled=None)
    second = vramscope.attach(out=os.path.join(job.FOLDER, "second.vramscope"), **agent_options())
    kept.append(allocate())
    second.detach()
    return {"still_on": still_on, "on_after": torch._C._cuda_isHistoryEnabled(), **result}


def annotated():
    """Annotates its history, and attaches texts to events, where PyTorch has both."""
    import torch
    from torch.profiler import record_function

    import vramscope

    torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python", global_record_annotations=True)
    attach = getattr(torch._C, "_cuda_setMemoryMetadata", lambda text: None)
    kept = []
    with record_function("closed"):
        kept.append(torch.empty(1000, device="cuda"))
    with record_function("open"):
        agent = vramscope.attach(out=out(), **agent_options())
        for name in ("one", "two"):
            with record_function(name):
                attach(name)
                kept.append(torch.empty(1000, device="cuda"))
            attach("")
            kept.append(torch.empty(1000, device="cuda"))
    dump(torch)
    result = agent.detach()
    return {"has_texts": hasattr(torch._C, "_cuda_setMemoryMetadata"), "still_on": torch._C._cuda_isHistoryEnabled(), **result}


def early():
    """Marks moments before CUDA is initialised."""
    import torch

    import vramscope

    vramscope.attach(out=out(), **agent_options())
    vramscope.mark("loading")
    time.sleep(0.2)
    with vramscope.span("setup"):
        torch.empty(10, device="cuda")
    vramscope.mark("after")
    return vramscope.detach()


def modules():
    """Prints how many modules the recording imports, from its start to its end."""
    import torch

    import vramscope
    import vramscope._agent
    import vramscope._build
    import vramscope._polling
    import vramscope._tracker

    torch.cuda.init()
    torch.empty(1 << 20, device="cuda")
    if OPTIONS.get("records_history"):
        torch.cuda.memory._record_memory_history(max_entries=1000, stacks="python")
    before = set(sys.modules)
    agent = vramscope.attach(out=out(), **agent_options())
    kept = [torch.empty(1000, device="cuda") for _ in range(100)]
    time.sleep(0.5)
    agent.flush()
    agent.detach()
    return {"kept": len(kept), "modules": sorted(name for name in set(sys.modules) - before if name.startswith("torch"))}


def interrupted():
    """Waits for Ctrl-C."""
    import torch

    import vramscope

    vramscope.attach(out=out(), **agent_options())
    kept = [torch.empty(1000, device="cuda") for _ in range(100)]
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(20)
    return len(kept)


def main():
    job.FOLDER = sys.argv[2]
    OPTIONS.update(json.loads(sys.argv[3]) if len(sys.argv) > 3 else {})
    print(json.dumps(globals()[sys.argv[1]]()), flush=True)


if __name__ == "__main__":
    main()
