"""The real PyTorch, kept warm: imports torch once and runs each script in a forked child.

Started by `oracle.py` under the harness's `run.sh`; not a command for a person.

    run.sh warm.py HARNESS_FOLDER          (ORACLE_VENV chooses the torch)

A line `IN TAB OUT TAB SEED` on stdin runs the script in file IN and writes the result to file OUT; the answer on
stdout is one line: `ok`, or `failed` and the exit status (negative: the signal). A SEED other than 0 shuffles the
heap first: what follows the addresses of torch's own objects then comes out differently. Importing torch costs
seconds, a fork milliseconds. torch reads its settings, and the fake driver its capacity, when CUDA is first initialised: that
happens in the child, after the environment of its script has been set, so a child equals a fresh process. `farm.py
--verify` shows that it does, on every case of a corpus.
"""

import ctypes
import os
import random
import resource
import signal
import sys

# A script that makes no progress is ended: the slowest good one seen takes a few seconds.
SECONDS_PER_SCRIPT = 300


def shuffle_heap(seed):
    """Leaves holes in the heap, in an order that `seed` gives, for torch's objects to fall into."""
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


def child(replay, source, target, seed):
    """Runs one script and leaves; never returns."""
    status = 3
    try:
        signal.alarm(SECONDS_PER_SCRIPT)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        script = replay.load(source)
        wanted = replay.under_fake(script)
        for name in [n for n in os.environ if n.startswith(("FAKECUDA_", "PYTORCH_")) and n not in wanted]:
            del os.environ[name]
        for name, value in wanted.items():
            if name.startswith(("FAKECUDA_", "PYTORCH_")):
                os.environ[name] = value
        if not script.get("driver", True):
            os.environ["FAKECUDA_LOG"] = "0"
        if seed:
            shuffle_heap(seed)
        replay.store(target, replay.run(script))
        status = 0
    except BaseException as error:
        # The one line that says why: torch refuses some settings while it initialises.
        try:
            replay.store(target, {"refused": type(error).__name__ + ": " + str(error).split("\n")[0]})
            status = 0
        except BaseException:
            status = 4
    finally:
        # No teardown: the state is written, and torch's may hang in a forked child.
        os._exit(status)


def main():
    sys.path.insert(0, sys.argv[1])
    import replay
    import torch  # noqa: F401  (the point of this process)

    # Lazy parts of torch that every script needs, none of which touches CUDA.
    import torch.cuda.memory  # noqa: F401

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answers.write("ready " + torch.__version__ + "\n")
    answers.flush()
    for line in sys.stdin:
        source, target, seed = line.rstrip("\n").split("\t")
        pid = os.fork()
        if pid == 0:
            child(replay, source, target, int(seed))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        answers.write("ok\n" if status == 0 else f"failed {status}\n")
        answers.flush()


if __name__ == "__main__":
    main()
