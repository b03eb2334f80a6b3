"""Jobs that end early or hard: `ends_job.py NAME SERVER [options as JSON]`. Each prints its session first."""

import json
import os
import signal
import sys
import time

OPTIONS = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}


def attached():
    import torch

    import vramscope

    agent = vramscope.attach(sys.argv[2], **OPTIONS)
    torch.cuda.init()
    print(json.dumps(agent.session), flush=True)
    return torch, agent


def os_exit():
    torch, _ = attached()
    kept = [torch.empty(1 << 20, device="cuda") for _ in range(50)]
    os._exit(7 if len(kept) == 50 else 1)


KEPT = []


def fork_exit():
    """Ends a child by os._exit, which must not end the recording of its parent."""
    torch, agent = attached()
    KEPT.extend(torch.empty(1 << 20, device="cuda") for _ in range(50))
    child = os.fork()
    if child == 0:
        os._exit(3)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    KEPT.append(torch.empty(1 << 20, device="cuda"))
    print(json.dumps({"child": status, "state": agent.state}), flush=True)


def flush():
    torch, agent = attached()
    kept = [torch.empty(1 << 20, device="cuda") for _ in range(50)]
    began = time.monotonic()
    is_sent = agent.flush()
    seconds = time.monotonic() - began
    print(json.dumps({"is_sent": is_sent, "seconds": seconds, "kept": len(kept)}), flush=True)
    # Nothing of what follows can be sent.
    os.kill(os.getpid(), signal.SIGKILL)


def oom():
    torch, _ = attached()
    try:
        torch.empty(1 << 45, device="cuda")
    except torch.cuda.OutOfMemoryError:
        os.kill(os.getpid(), signal.SIGKILL)


def killed():
    torch, _ = attached()
    kept = [torch.empty(1 << 20, device="cuda") for _ in range(50)]
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL if kept else 0)


def waiting():
    """Allocates a tensor on the GPU, then waits for a line on standard input."""
    torch, agent = attached()
    kept = torch.empty(1 << 20, device="cuda")
    agent.flush()
    print(json.dumps(kept.numel()), flush=True)
    input()


def second_device():
    """Uses the second device only, then the first one too."""
    torch, agent = attached()
    torch.cuda.set_device(1)
    kept = [torch.empty(1 << 20, device="cuda") for _ in range(5)]
    import vramscope

    vramscope.mark("a mark")
    agent.flush()
    print(json.dumps(len(kept)), flush=True)
    input()
    kept.append(torch.empty(1 << 20, device="cuda:0"))
    agent.flush()
    print(json.dumps("used"), flush=True)
    input()


globals()[sys.argv[1]]()
