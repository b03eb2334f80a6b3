"""Runs the jobs of `job.py` with a Python that has torch, and reads their recordings.

VRAMSCOPE_TORCH_PYTHON names that Python; it may be a command of several words. VRAMSCOPE_TO_PICKLE is the program
`recording_to_pickle`.
"""

import contextlib
import functools
import json
import os
import pathlib
import pickle
import shlex
import signal
import subprocess
import unittest

# A script's background commands ignore Ctrl-C, and what they start inherits that. The jobs here are interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent


def python():
    return shlex.split(os.environ.get("VRAMSCOPE_TORCH_PYTHON", ""))


def converter():
    given = os.environ.get("VRAMSCOPE_TO_PICKLE")
    places = [pathlib.Path(given)] if given else []
    places += [ROOT / "target" / profile / "examples" / "recording_to_pickle" for profile in ("debug", "release")]
    return next((place for place in places if place.is_file()), None)


def server():
    """Returns the path of the program `vramscope`."""
    places = [ROOT / "target" / profile / "vramscope" for profile in ("debug", "release")]
    return next((place for place in places if place.is_file()), None)


@contextlib.contextmanager
def running_server(folder):
    """Runs a server that announces itself in `folder`. Yields its address and the number of its process."""
    environ = {**os.environ, "XDG_STATE_HOME": str(pathlib.Path(folder) / "state"), "VRAMSCOPE_LOG": "error"}
    command = [str(server()), "serve", "--listen", "127.0.0.1:0", "--data", str(pathlib.Path(folder) / "data")]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().split("Vramscope is at ")[1].split("/ ")[0]
        yield address, process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


needs_torch = unittest.skipUnless(
    python() and converter(), "set VRAMSCOPE_TORCH_PYTHON to a Python with torch, and build recording_to_pickle"
)


def environment(**more):
    found = {name: value for name, value in os.environ.items() if name not in ("VRAMSCOPE_TO", "VRAMSCOPE_OUT")}
    found["PYTHONPATH"] = str(HERE.parent)
    found.setdefault("FAKECUDA_DEVICES", "2")
    found.setdefault("VRAMSCOPE_QUIET", "1")
    found.update(more)
    return found


@functools.cache
def gpus():
    """Returns how many GPUs the Python with torch sees."""
    return int(start(["-c", "import torch; print(torch.cuda.device_count())"]).stdout)


def start(arguments, **more):
    """Runs Python and waits for its end."""
    return subprocess.run(
        python() + arguments, env=environment(**more), capture_output=True, text=True, timeout=300, check=False
    )


def variables(to):
    """Returns variables that make Python record to a server, as if the package were installed."""
    return {"PYTHONPATH": os.pathsep.join([str(HERE.parent / "vramscope" / "_site"), str(HERE.parent)]), "VRAMSCOPE_TO": to}


def run(name, folder, XDG_STATE_HOME=None, **options):
    """Runs a job and returns the JSON that it printed."""
    more = {} if XDG_STATE_HOME is None else {"XDG_STATE_HOME": XDG_STATE_HOME}
    done = start([str(HERE / "job.py"), name, str(folder), json.dumps(options)], **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def read(recording):
    """Returns a recording's content in PyTorch's format, and what that format cannot hold."""
    to = pathlib.Path(str(recording) + ".pickle")
    done = subprocess.run([str(converter()), str(recording), str(to)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with open(to, "rb") as file:
        return pickle.load(file), json.loads(done.stdout)


def entry(of):
    """Returns the compared fields of an entry."""
    address = of.get("addr", of.get("device_free"))
    return of["action"], address, of["size"], of["stream"]


def frames(of):
    return [(frame["name"], frame["filename"], frame["line"]) for frame in of.get("frames", ())]


def rewind(snapshot, device=0):
    """Undoes all events from the blocks at the end, and returns the blocks at the start. Raises an error if an event is
    missing or recorded twice."""
    live = {}
    for segment in snapshot["segments"]:
        if segment["device"] == device:
            for block in segment["blocks"]:
                if block["state"] != "inactive":
                    live[block["address"]] = block["state"]
    for at, event in reversed(list(enumerate(snapshot["device_traces"][device]))):
        address = event.get("addr")
        if event["action"] == "alloc":
            assert address in live, (at, event)
            del live[address]
        elif event["action"] == "free_completed":
            assert address not in live, (at, event)
            live[address] = "active_pending_free"
        elif event["action"] == "free_requested":
            assert live.get(address) == "active_pending_free", (at, event)
            live[address] = "active_allocated"
    return live


def launched(folder):
    """Returns variables that make Python read the package's .pth file, as if the package were installed."""
    site = pathlib.Path(folder) / "site"
    site.mkdir(exist_ok=True)
    (site / "vramscope.pth").write_bytes((HERE.parent / "vramscope.pth").read_bytes())
    (site / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(site)!r})\n")
    # The tests check its messages.
    return {"PYTHONPATH": f"{site}:{HERE.parent}", "VRAMSCOPE_QUIET": "", "GLOO_SOCKET_IFNAME": "lo"}


def messages(done):
    """Returns the agent's lines on standard error."""
    return sorted(line for line in done.stderr.splitlines() if line.startswith("vramscope: "))


def check_events(test, recording, trace, device, has_stacks=False):
    """Checks that a recording has exactly the entries of a device that PyTorch kept, in order. Returns the rest of it."""
    recorded, about = read(recording)
    with open(trace, "rb") as file:
        kept = pickle.load(file)["device_traces"][device]
    # Each snapshot adds an entry. Those of the agent's and of the job's own snapshots differ.
    theirs = [of for of in kept if of["action"] != "snapshot"]
    ours = [of for of in recorded["device_traces"][device] if of["action"] != "snapshot"]
    test.assertEqual(about["findings"], [])
    (of_device,) = (of for of in about["devices"] if of["device"] == device)
    test.assertEqual(of_device["losses"], [])
    test.assertGreater(len(theirs), 200)
    test.assertEqual([entry(of) for of in ours], [entry(of) for of in theirs])
    if has_stacks:
        for began in check_stacks(test, ours, theirs):
            call = next(file for name, file, _ in began if not name.endswith(" [backward]"))
            test.assertEqual(pathlib.Path(call).parent.name, "autograd", began)
    test.assertEqual(rewind(recorded, device), {})
    return about


def check_stacks(test, ours, theirs):
    """Checks that stacks are PyTorch's. Where it gathered an empty one, which is in autograd's threads, they may be those that
    began the backward pass: returns these."""
    began = []
    for mine, of in zip(ours, theirs):
        if frames(of) or "frames" not in of:
            test.assertEqual(frames(mine), frames(of))
        elif frames(mine):
            began.append(frames(mine))
    return began
