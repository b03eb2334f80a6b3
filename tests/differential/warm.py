"""Keeps PyTorch loaded: imports it once and runs each script in a forked child. `oracle.py` starts it.

Reads lines `SCRIPT TAB RESULT TAB SEED` from standard input, runs the script in the file SCRIPT and writes the result to
the file RESULT. Answers each with one line: `ok`, or `failed` and the exit status (negative for a signal). A SEED other
than 0 shuffles the heap first: what follows the addresses of PyTorch's own objects then comes in another order.

Importing PyTorch takes seconds, a fork milliseconds. PyTorch reads its settings, and the fake device its capacity, when
CUDA is first used. That happens in the child, after the environment variables of its script are set, so a child gives
what a fresh process gives. `farm.py --verify` shows it for every case of a folder.
"""

import ctypes
import gc
import os
import random
import resource
import signal
import sys

import execute

# A script that makes no progress is ended. The slowest one that ended by itself took a few seconds.
SECONDS_PER_SCRIPT = 300


def shuffle_heap(seed):
    """Leaves holes in the heap, in an order that `seed` decides, for PyTorch's objects to fall into."""
    r = random.Random(seed)
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    chunks = [libc.malloc(r.randrange(16, 512)) for _ in range(20000)]
    # Every second one stays, or the holes would join.
    holes = chunks[::2]
    r.shuffle(holes)
    for hole in holes:
        libc.free(hole)


def child(torch_version, source, target, seed):
    """Runs one script and exits; never returns."""
    status = 3
    try:
        signal.alarm(SECONDS_PER_SCRIPT)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        script = execute.load(source)
        os.environ.update(execute.variables(script, torch_version))
        if seed:
            shuffle_heap(seed)
        execute.store(target, execute.Execution(script).run())
        status = 0
    except BaseException as error:
        # PyTorch refuses some settings while it starts.
        try:
            execute.store(target, {"refused": f"{type(error).__name__}: {execute.first_line(error)}"})
            status = 0
        except BaseException:
            status = 4
    finally:
        # No teardown: the result is written, and PyTorch's may hang in a forked child.
        os._exit(status)


def main():
    import torch

    # A part of PyTorch that every script needs and that is loaded late. It does not start CUDA.
    import torch.cuda.memory  # noqa: F401

    # Before 2.9 a capture begins with a collection of garbage, which would go through all of PyTorch's own objects.
    gc.collect()
    gc.freeze()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answers.write("ready " + torch.__version__ + "\n")
    answers.flush()
    for line in sys.stdin:
        source, target, seed = line.rstrip("\n").split("\t")
        pid = os.fork()
        if pid == 0:
            child(torch.__version__, source, target, int(seed))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        answers.write("ok\n" if status == 0 else f"failed {status}\n")
        answers.flush()


if __name__ == "__main__":
    main()
