"""The stacks that the library gathers, with any Python, without torch. Requires a driver library, ``libcuda.so.1``."""

from __future__ import annotations

import ctypes
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
LIBRARY = os.environ.get("VRAMSCOPE_LIBRARY")


def has_device():
    """Returns whether there is a device."""
    try:
        cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        return cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
    except OSError:
        return False


def program():
    """Allocates with and without the GIL, while an error is handled, in a generator, and in another thread."""
    from vramscope._native import AllocatorLibrary

    native = AllocatorLibrary(LIBRARY)
    native.start("2.11.0", "", "all", 10_000, None)
    types = {"restype": ctypes.c_void_p, "argtypes": [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]}
    held, released = ctypes.PyDLL(LIBRARY).vramscope_malloc, ctypes.CDLL(LIBRARY).vramscope_malloc
    for function in (held, released):
        function.restype, function.argtypes = types["restype"], types["argtypes"]

    def outer(function, depth):
        return outer(function, depth - 1) if depth else function(512, 0, None)

    def generator():
        yield held(1024, 0, None)

    outer(held, 0)
    for _ in range(3):
        outer(released, 2)
    next(generator())
    try:
        raise ValueError("is being handled")
    except ValueError as error:
        outer(held, 1)
        assert str(error) == "is being handled"
    thread = threading.Thread(target=outer, args=(released, 0), name="worker")
    thread.start()
    thread.join()
    before = sys.getrefcount(outer.__code__)
    for _ in range(1000):
        outer(held, 5)
    assert sys.getrefcount(outer.__code__) - before < 3, "references to code were not given back"
    trace = pickle.loads(native.snapshot())["device_traces"][0]
    stacks = [[frame["name"] for frame in entry.get("frames", [])] for entry in trace if entry["action"] == "alloc"]
    lines = {frame["line"] for entry in trace for frame in entry.get("frames", []) if frame["name"] == "outer"}
    assert stacks[0] == ["outer", "program", "<module>"], stacks[0]
    assert stacks[1:4] == [["outer", "outer", "outer", "program", "<module>"]] * 3, stacks[1:4]
    assert stacks[4] == ["generator", "program", "<module>"], stacks[4]
    assert stacks[5] == ["outer", "outer", "program", "<module>"], stacks[5]
    assert stacks[6][0] == "outer" and "run" in stacks[6] and "program" not in stacks[6], stacks[6]
    assert lines == {outer.__code__.co_firstlineno + 1}, lines
    assert all(frame["filename"].endswith(".py") for frame in trace[0]["frames"])


@unittest.skipUnless(LIBRARY and has_device(), "VRAMSCOPE_LIBRARY names no library, or there is no device")
class StacksTest(unittest.TestCase):
    def test_stacks_are_those_of_the_calling_thread(self):
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        done = subprocess.run([sys.executable, __file__, "program"], capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    if sys.argv[1:] == ["program"]:
        program()
    else:
        unittest.main()
