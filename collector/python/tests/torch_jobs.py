"""Runs the jobs of `job.py` with a Python that has torch, and reads what they recorded.

VRAMSCOPE_TORCH_PYTHON names that Python; it may be a command of several words. VRAMSCOPE_TO_PICKLE is the program
`recording_to_pickle`.
"""

import json
import os
import pathlib
import pickle
import shlex
import subprocess
import unittest

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
    """The program `vramscope`."""
    places = [ROOT / "target" / profile / "vramscope" for profile in ("debug", "release")]
    return next((place for place in places if place.is_file()), None)


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


def start(arguments, **more):
    """Runs Python to its end."""
    return subprocess.run(
        python() + arguments, env=environment(**more), capture_output=True, text=True, timeout=300, check=False
    )


def run(name, folder, **options):
    """Runs a job to its end; what it printed as JSON."""
    done = start([str(HERE / "job.py"), name, str(folder), json.dumps(options)])
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def read(recording):
    """(what a recording holds in PyTorch's form, what has no place in that)."""
    to = pathlib.Path(str(recording) + ".pickle")
    done = subprocess.run([str(converter()), str(recording), str(to)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with open(to, "rb") as file:
        return pickle.load(file), json.loads(done.stdout)


def entry(of):
    """What of an entry is compared."""
    address = of.get("addr", of.get("device_free"))
    return of["action"], address, of["size"], of["stream"]


def frames(of):
    return [(frame["name"], frame["filename"], frame["line"]) for frame in of.get("frames", ())]


def rewind(snapshot, device=0):
    """Goes back from the end's blocks to the start; what is held there. Raises where an event doesn't fit: one that is
    missing, or there twice."""
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
    """Variables with which Python reads the package's .pth file, as it does where the package is installed."""
    site = pathlib.Path(folder) / "site"
    site.mkdir(exist_ok=True)
    (site / "vramscope.pth").write_bytes((HERE.parent / "vramscope.pth").read_bytes())
    (site / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(site)!r})\n")
    # What it says is looked at.
    return {"PYTHONPATH": f"{site}:{HERE.parent}", "VRAMSCOPE_QUIET": "", "GLOO_SOCKET_IFNAME": "lo"}


def said(done):
    """The agent's lines on standard error."""
    return sorted(line for line in done.stderr.splitlines() if line.startswith("vramscope: "))


def check_events(test, recording, trace, device, has_stacks=False):
    """A recording has every entry of a device that PyTorch kept, and no other, in order; what else is in it."""
    recorded, about = read(recording)
    with open(trace, "rb") as file:
        kept = pickle.load(file)["device_traces"][device]
    # Each snapshot leaves an entry, of which the agent's and the job's own differ.
    theirs = [of for of in kept if of["action"] != "snapshot"]
    ours = [of for of in recorded["device_traces"][device] if of["action"] != "snapshot"]
    test.assertEqual(about["findings"], [])
    test.assertEqual(about["devices"][device]["losses"], [])
    test.assertGreater(len(theirs), 200)
    test.assertEqual([entry(of) for of in ours], [entry(of) for of in theirs])
    if has_stacks:
        test.assertEqual([frames(of) for of in ours], [frames(of) for of in theirs])
    test.assertEqual(rewind(recorded, device), {})
    return about
