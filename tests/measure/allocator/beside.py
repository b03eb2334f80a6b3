#!/usr/bin/env python3
"""The cost of a malloc and free in this allocator and in PyTorch's, side by side in one process.

    cargo build --release -p callable
    beside.py [--library target/release/libcallable.so] [--rounds 9] SCRIPT.in.json[.gz]... live:N...

PyTorch is that of tests/differential/environment.py. The mallocs and frees of each script are called
from one loop of compiled code, through C functions. live:N is a script that holds N blocks of 0.5 to 64 KiB, and 300,000
times frees any of them and makes another. Each round measures both allocators, one right after the other:
noise of the machine hits them alike. Printed are the best of each, and the median of the rounds' ratios.
"""

import argparse
import ctypes
import gzip
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
STREAMS = 4
RELEASE = "2.11"

Malloc = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64)
Free = ctypes.CFUNCTYPE(None, ctypes.c_uint64)


def churn(live):
    chance, held, ops, sizes = random.Random(7), list(range(live)), [], (512, 64 << 10)
    ops += (["malloc", name, chance.randrange(*sizes), 0] for name in held)
    for name in range(live, live + 300_000):
        at = chance.randrange(live)
        ops += [["free", held[at]], ["malloc", name, chance.randrange(*sizes), 0]]
        held[at] = name
    return {"config": "", "capacity_bytes": 80 << 30, "ops": ops}


def load(path):
    if path.startswith("live:"):
        return churn(int(path[5:]))
    data = pathlib.Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def build(environment, folder):
    """Builds the loop, with PyTorch's allocator in it."""
    headers, lib = environment.headers(), environment.packages() / "torch/lib"
    out = folder / "libbeside.so"
    command = ["g++", "-O2", "-fPIC", "-shared", "-std=c++17", *(f"-I{path}" for path in headers), HERE / "beside.cpp"]
    command += [f"-L{lib}", "-lc10", "-lc10_cuda", f"-Wl,-rpath,{lib}", "-Wl,--allow-shlib-undefined", "-o", out]
    subprocess.run(command, check=True)
    return out


def measure(arguments):
    """Measures both allocators with one script. Runs in the environment."""
    import torch

    torch.cuda.init()
    script = load(arguments.scripts[0])
    rows, ids, count = [], 0, 0
    for name, *rest in script["ops"]:
        if name in ("malloc", "free"):
            rows += rest[:3] if name == "malloc" else [rest[0], -1, 0]
            ids, count = max(ids, rest[0] + 1), count + 1
    ops = (ctypes.c_int64 * len(rows))(*rows)

    loop, ours = ctypes.PyDLL(arguments.loop), ctypes.CDLL(arguments.library)
    loop.feed.restype = ctypes.c_uint64
    loop.feed.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    ours.callable_open.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p]
    ours.callable_close.restype = ctypes.c_uint64
    streams = [torch.cuda.Stream() for _ in range(STREAMS - 1)]
    handles = (ctypes.c_void_p * STREAMS)(0, *(stream.cuda_stream for stream in streams))
    loop.torch_streams(handles, ctypes.c_int64(STREAMS))

    def feed(malloc, free):
        failed = ctypes.c_uint64()
        pointer = lambda function: ctypes.cast(function, ctypes.c_void_p)
        nanoseconds = loop.feed(ops, count, ids, pointer(malloc), pointer(free), ctypes.byref(failed))
        return 2 * nanoseconds / count, failed.value

    def torch_pair():
        torch.cuda.empty_cache()
        return feed(loop.torch_malloc, loop.torch_free)

    def our_pair(recording):
        if ours.callable_open(script["config"].encode(), script["capacity_bytes"], recording):
            raise SystemExit("the allocator could not be opened")
        pair = feed(ours.callable_malloc, ours.callable_free)
        lost = ours.callable_close()
        if lost:
            raise SystemExit(f"the recording lost {lost} events: its time would be flattered")
        return pair

    with tempfile.TemporaryDirectory() as folder:
        recording = os.path.join(folder, "a.vramscope").encode()
        sides = {"torch": torch_pair, "off": lambda: our_pair(None), "recording": lambda: our_pair(recording)}
        rounds = {name: [] for name in sides}
        for _ in range(arguments.rounds):
            failed = set()
            for name, side in sides.items():
                nanoseconds, refused = side()
                rounds[name].append(nanoseconds)
                failed.add(refused)
            if len(failed) != 1:
                raise SystemExit(f"the allocators differ in how many requests fail: {failed}")
    ratios = {name: statistics.median(a / b for a, b in zip(rounds[name], rounds["torch"])) for name in ("off", "recording")}
    best = {name: min(values) for name, values in rounds.items()}
    print(json.dumps({"ops": count, "best": best, "ratios": ratios}))
    sys.stdout.flush()
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, default=HERE.parents[2] / "target/release/libcallable.so")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--loop", help=argparse.SUPPRESS)
    parser.add_argument("scripts", nargs="+")
    arguments = parser.parse_args()
    if arguments.loop:
        return measure(arguments)
    sys.path.insert(0, str(HERE.parents[1] / "differential"))
    from environment import Environment

    environment = Environment(RELEASE).make()
    print("| script | torch, ns a pair | off | ratio | recording | ratio |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        loop = build(environment, pathlib.Path(folder))
        for path in arguments.scripts:
            script = load(path)
            env = {**environment.variables(), "PYTORCH_ALLOC_CONF": script["config"]}
            env |= {"FAKECUDA_CAPACITY": str(script["capacity_bytes"])}
            command = [*environment.command(HERE / "beside.py"), "--loop", loop]
            command += ["--library", arguments.library.resolve(), "--rounds", str(arguments.rounds)]
            command.append(path if path.startswith("live:") else os.path.abspath(path))
            done = subprocess.run(command, env=env, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{path}: {done.stderr.strip()[-800:]}")
            told = json.loads(done.stdout.strip().splitlines()[-1])
            best, ratios = told["best"], told["ratios"]
            print(f"| {pathlib.Path(path).name.split('.')[0]} | {best['torch']:.0f} | {best['off']:.0f} | {ratios['off']:.2f}"
                  f" | {best['recording']:.0f} | {ratios['recording']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
