#!/usr/bin/env python3
"""Plays a Python that has PyTorch: it answers what `vramscope predict` asks, and a job in it is one of Vramscope's workloads,
on the device that the variables describe."""

import json
import os
import subprocess
import sys
import time

words = sys.argv[1:]
if words[0] == "-c":
    answer = {"torch": "2.11.0+cu130", "variables": {"FAKECUDA_VERSION": "13000"}}
    print("vramscope:started" if "prepare" not in words[1] else "vramscope:" + json.dumps(answer))
    sys.exit()

print("the job's own line")
kind, batch = words[1], words[words.index("--batch-size") + 1] if "--batch-size" in words else "2"
if kind == "cpu":
    sys.exit()
if kind == "broken":
    sys.exit("Traceback: no such module")
if kind == "endless":
    time.sleep(600)
folder, variable = os.environ["VRAMSCOPE_PREDICT"], os.environ.get
room = int(variable("FAKECUDA_CAPACITY")) - int(variable("FAKECUDA_CONTEXT_BYTES")) - int(variable("FAKECUDA_OTHER_BYTES"))
found = {"pid": os.getpid(), "rank": None, "world": None, "ended": "same peak", "error": None, "steps": 3, "devices": []}
if variable("RANK"):
    found["rank"], found["world"] = int(variable("RANK")), int(variable("WORLD_SIZE"))
if kind == "recovers":
    found["ended"] = "exit"
found["convolutions"] = True
found["readbacks"] = [{"file": "train.py", "line": 62, "op": "item", "count": 2, "made_up": True}]
if kind == "stages":  # The second half of the ranks needs more.
    batch = "4" if found["rank"] >= found["world"] // 2 else "2"
if kind == "waits":
    found["ended"] = "loop"
if kind in ("raises", "shows"):
    error = "ValueError: no such layer" if kind == "raises" else variable("VRAMSCOPE_PREDICT_VALUES")
    found["ended"], found["error"] = "error", error
else:
    out = variable("VRAMSCOPE_OUT").replace("{rank}", str(found["rank"] or 0)).replace("{pid}", str(os.getpid()))
    run = ["run", "transformer", "layers=2", f"batch={batch}", "--steps", "3", "--capacity", f"{room}", "--out", out, "--json"]
    printed = json.loads(subprocess.run([os.environ["PROGRAM"], *run], stdout=subprocess.PIPE, check=False).stdout)
    failed = printed["error"] is not None
    found["devices"] = [
        {
            "device": 0,
            "allocated": printed["allocated"]["peak"],
            "reserved": printed["reserved"]["peak"],
            "out_of_memory": int(failed),
        }
    ]
    if kind == "late":
        found["ended"], found["error"] = "error", "KeyError: no such key"
    if failed and kind != "recovers":
        found["ended"], found["error"] = "out of memory", "CUDA out of memory."
with open(os.path.join(folder, f"rank-{os.getpid()}.json"), "w", encoding="utf-8") as file:
    json.dump(found, file)
sys.exit(found["error"] is not None)
