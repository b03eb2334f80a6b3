"""Small jobs that use a GPU: `job.py NAME FOLDER [options as JSON]`. Each prints JSON as its last line."""

import json
import os
import pickle
import sys
import threading
import time

OPTIONS = {}
FOLDER = ""


def out():
    return os.path.join(FOLDER, "out.vramscope")


def agent_options():
    return {name: OPTIONS[name] for name in ("mode", "stacks", "context", "budget", "history") if name in OPTIONS}


def model(torch, device):
    layers = [torch.nn.Linear(256, 256) for _ in range(4)]
    return torch.nn.Sequential(*layers).to(device)


def train(torch, device, steps):
    """Trains a model, with several threads (autograd has its own), several streams, and frees that wait for a stream."""
    net = model(torch, device)
    optimizer = torch.optim.Adam(net.parameters())
    side = torch.cuda.Stream(device)
    for step in range(steps):
        x = torch.randn(64 + step % 5, 256, device=device)
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        with torch.cuda.stream(side):
            y = torch.empty(3 << 20, device=device)
        y.record_stream(torch.cuda.current_stream(device))
        del y
        if step % 7 == 6:
            torch.cuda.empty_cache()
    return net


def dump(torch):
    snapshot = torch.cuda.memory._snapshot()
    with open(os.path.join(FOLDER, "torch.pickle"), "wb") as file:
        pickle.dump(snapshot, file)


def backward():
    """Runs backward passes in two functions, one of them with a recomputed segment."""
    import torch
    from torch.utils.checkpoint import checkpoint

    import vramscope

    agent = vramscope.attach(out=out(), **agent_options())
    torch.cuda.init()
    # Weights of 4 MiB, so that gradients are of that size.
    nets = [torch.nn.Linear(1024, 1024, bias=False).cuda() for _ in range(2)]

    def layer(x):
        return nets[0](x)

    def once(x):
        nets[1](layer(x)).sum().backward()

    def checkpointed(x):
        nets[1](checkpoint(nets[0], x, use_reentrant=True)).sum().backward()

    for run in (once, checkpointed):
        run(torch.randn(64, 1024, device="cuda", requires_grad=True))
        for net in nets:
            net.zero_grad(set_to_none=True)
    agent.detach()
    # What the agent wrapped is as it was.
    assert torch.autograd._engine_run_backward is torch.autograd.graph._engine_run_backward
    return {"mode": agent.mode}


def watched():
    """Trains while PyTorch records its own history, for comparison."""
    import torch

    import vramscope

    agent = vramscope.attach(out=out(), **agent_options())
    torch.cuda.init()
    assert agent.state == "running", agent.reason
    if OPTIONS.get("history_of_torch", True):
        stacks, context = OPTIONS.get("stacks"), OPTIONS.get("context", "alloc")
        torch.cuda.memory._record_memory_history(
            max_entries=1_000_000, stacks=stacks or "python", context=context if stacks else None
        )
    kept = []
    for device in range(torch.cuda.device_count()):
        vramscope.step()
        with vramscope.span("training"):
            kept.append(train(torch, f"cuda:{device}", OPTIONS.get("steps", 20)))
    try:
        torch.empty(1 << 42, device="cuda")
    except torch.cuda.OutOfMemoryError:
        pass
    dump(torch)
    result = agent.detach()
    return {"mode": agent.mode, "reason": agent.reason, "devices": torch.cuda.device_count(), **result}


def late():
    """Attaches late, while other threads allocate: earlier allocations are the recording's state at the start."""
    import torch

    import vramscope

    before = train(torch, "cuda", 5)
    stop = threading.Event()

    def churn():
        kept = []
        while not stop.is_set():
            kept.append(torch.empty(1 << 18, device="cuda"))
            if len(kept) > 20:
                kept.clear()

    threads = [threading.Thread(target=churn) for _ in range(3)]
    for thread in threads:
        thread.start()
    with vramscope.attach(out=out(), **agent_options()) as agent:
        time.sleep(OPTIONS.get("seconds", 0.3))
        stop.set()
        for thread in threads:
            thread.join()
    del before
    return {"mode": agent.mode, **agent.result}


def oom():
    """Runs out of memory without catching the error."""
    import torch

    import vramscope

    vramscope.attach(out=out(), **agent_options())
    kept = [torch.empty(1 << 20, device="cuda") for _ in range(10)]
    try:
        torch.empty(1 << 42, device="cuda")
    except torch.cuda.OutOfMemoryError as error:
        # Copies the file as it is now, because the rest of the job may never be written.
        with open(out(), "rb") as file, open(os.path.join(FOLDER, "at_oom.vramscope"), "wb") as copy:
            copy.write(file.read())
        return {"error": type(error).__name__, "kept": len(kept)}
    return {}


def forks():
    """Forks, and uses workers of a DataLoader, which must neither record nor hang."""
    import torch

    import vramscope

    agent = vramscope.attach(out=out(), **agent_options())
    torch.empty(1 << 20, device="cuda")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        vramscope.mark("in the child")
        os.write(write, repr(vramscope.detach()).encode())
        os._exit(0)
    data = torch.utils.data.DataLoader(list(range(40)), batch_size=4, num_workers=2, multiprocessing_context="fork")
    items = sum(len(batch) for batch in data)
    os.waitpid(child, 0)
    torch.empty(1 << 20, device="cuda")
    said = os.read(read, 100).decode()
    return {"items": items, "child": said, **agent.detach()}


def away():
    """Publishes to a server that does not exist."""
    import torch

    import vramscope

    started = time.monotonic()
    agent = vramscope.attach(to="http://127.0.0.1:9", out=out(), end_seconds=1.0, **agent_options())
    train(torch, "cuda", 10)
    trained = time.monotonic() - started
    result = agent.detach()
    return {"trained": trained, "seconds": time.monotonic() - started, "reason": agent.reason, **result}


def refused():
    """Publishes to a server that requires a token."""
    import torch

    import vramscope

    agent = vramscope.attach(to=OPTIONS["to"], out=out() if OPTIONS["has_file"] else None, **agent_options())
    torch.cuda.init()
    until = time.monotonic() + 20
    while agent.reason is None and time.monotonic() < until:
        torch.empty(1 << 20, device="cuda")
        time.sleep(0.01)
    # The thread that learns of the refusal ends the recording.
    time.sleep(0.2)
    state, reason = agent.state, agent.reason
    result = agent.detach()
    if state == "failed":
        # The process can be recorded again.
        vramscope.attach(out=out()).detach()
    return {"state": state, "reason": reason, "events": result["events"], "undelivered": result["undelivered"]}


def again():
    """Attaches twice, which returns the first agent, and again after detaching, which makes another one."""
    import torch

    import vramscope

    first = vramscope.attach(out=out(), **agent_options())
    torch.empty(1 << 20, device="cuda")
    same = vramscope.attach(out=os.path.join(FOLDER, "elsewhere.vramscope")) is first
    one = first.detach()
    torch.empty(1 << 20, device="cuda")
    second = vramscope.attach(out=os.path.join(FOLDER, "second.vramscope"), **agent_options())
    kept = torch.empty(1 << 25, device="cuda")
    two = second.detach()
    return {"same": same, "first": one, "second": two, "kept": kept.numel(), "twice": first.detach() == one}


def attaches():
    """Attaches in a program that may be recorded already."""
    import torch

    import vramscope
    from vramscope import _agent

    before = _agent.current()
    agent = vramscope.attach(OPTIONS.get("to"))
    early = agent.url
    torch.empty(1 << 20, device="cuda")
    return {"same": agent is before, "early": early, "url": agent.url, "to": agent.config.to, "session": agent.session}


def server_goes():
    """Allocates, stops its server, and allocates again."""
    import signal

    import torch

    import vramscope

    agent = vramscope.attach(OPTIONS["to"])
    kept = [torch.empty(1 << 20, device="cuda") for _ in range(10)]
    until = time.monotonic() + 10
    while not agent.flush() and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(OPTIONS["server"], signal.SIGKILL)
    time.sleep(0.5)
    kept += [torch.empty(1 << 20, device="cuda") for _ in range(10)]
    return {"kept": len(kept)}


def plain():
    """Allocates without using the package."""
    import torch

    kept = [torch.empty(1 << 20, device="cuda") for _ in range(10)]
    vramscope = sys.modules.get("vramscope._agent")
    return {"agent": repr(vramscope and vramscope.current()), "kept": len(kept)}


def unused():
    """Imports torch only."""
    import torch

    return {"is_initialized": torch.cuda.is_initialized()}


def interrupted():
    """Is interrupted with Ctrl-C."""
    import signal

    import torch

    import vramscope

    vramscope.attach(out=out(), **agent_options())
    torch.empty(1 << 20, device="cuda")
    print(json.dumps({"will": "be interrupted"}), flush=True)
    signal.raise_signal(signal.SIGINT)


def main():
    global FOLDER
    FOLDER = sys.argv[2]
    OPTIONS.update(json.loads(sys.argv[3]) if len(sys.argv) > 3 else {})
    print(json.dumps(globals()[sys.argv[1]]()), flush=True)


if __name__ == "__main__":
    main()
