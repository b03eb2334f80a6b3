"""Compares Vramscope's allocator with PyTorch's own in real jobs. Requires a Python with torch and a GPU,
``VRAMSCOPE_LIBRARY`` (the native library) and, for tests that read files, ``VRAMSCOPE_PROGRAM`` (the program)."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import torch

    READY = torch.cuda.is_available()
    VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split("a")[0].split(".")[:2])
except ImportError:
    READY, VERSION = False, (0, 0)

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get("VRAMSCOPE_PROGRAM")
# The releases with which the allocator's decisions are compared number by number.
EXACT = ((2, 6), (2, 11), (2, 15))


def is_fake() -> bool:
    """Returns whether the GPU is a simulated one, whose addresses are the same in every run."""
    try:
        return hasattr(ctypes.CDLL("libcuda.so.1"), "fakecuda_hold")
    except OSError:
        return False


def own(text: str) -> str:
    """Returns an out-of-memory error's first line without what is not this job's: NVML's part about processes, and on a GPU,
    which others may use, how much is free."""
    line = re.sub(r"(Process \d+ has .*? memory in use\. )*Including non-PyTorch .*? in use\. ", "", text.split("\n")[0])
    return line if is_fake() else re.sub(r" of which \S+ \S+ is free", "", line)


@unittest.skipUnless(READY, "no torch, or no GPU that it sees")
class AllocatorTest(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_program(self, name, whose="ours", *options):
        result = os.path.join(self.folder, f"{name}-{whose}.json")
        script = os.path.join(HERE, "allocator_programs.py")
        command = [sys.executable, script, name, whose, result, *options]
        environment = {k: v for k, v in os.environ.items() if not k.endswith("_ALLOC_CONF")}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        messages = [line for line in done.stderr.splitlines() if "vramscope:" in line]
        # Only the recording's destination is printed.
        self.assertEqual([line for line in messages if not line.startswith("vramscope: Recording to ")], [])
        with open(result) as file:
            return json.load(file)

    def test_a_training_loop_is_the_same(self):
        ours, stock = self.run_program("train"), self.run_program("train", "stock")
        self.assertEqual(ours["losses"], stock["losses"])
        for name in ("nested", "numbers", "segment_keys", "block_keys"):
            if name != "numbers" or VERSION in EXACT:
                self.assertEqual(ours[name], stock[name], name)
        self.assertEqual(set(ours["stats"]), set(stock["stats"]))
        self.assertEqual(ours["summary"].count("\n"), stock["summary"].count("\n"))
        if VERSION not in EXACT:
            self.skipTest(f"torch {VERSION} is decided as an earlier release: only forms are compared")
        for name in ("stats", "after", "segments", "settings"):
            self.assertEqual(ours[name], stock[name], name)
        steps = slice(0, 3) if is_fake() else slice(0, 3, 2)
        self.assertEqual([entry[steps] for entry in ours["trace"]], [entry[steps] for entry in stock["trace"]])
        # A free by a thread without Python frames has its allocation's stack. In PyTorch it is empty.
        for mine, theirs in zip(ours["trace"], stock["trace"]):
            if theirs[3] or not mine[0].startswith("free"):
                self.assertEqual(mine[3], theirs[3], mine)
        self.assertGreater(sum(bool(entry[3]) for entry in ours["trace"]), 100)

    def test_snapshots_are_files_that_tools_read(self):
        path, recording = (os.path.join(self.folder, name) for name in ("s.pickle", "r.vramscope"))
        found = self.run_program("dump", "ours", path, recording)
        self.assertGreater(found["segments"], 0)
        self.assertGreater(min(found["plot"], found["trace"]), 1000)
        if PROGRAM is None:
            self.skipTest("VRAMSCOPE_PROGRAM names no program to read the files with")
        for file in (path, recording):
            report = subprocess.run([PROGRAM, "report", file], capture_output=True, text=True)
            self.assertEqual(report.returncode, 0, report.stderr)
            self.assertIn("train_steps", report.stdout)

    def test_out_of_memory_raises_and_the_job_continues(self):
        found = self.run_program("out_of_memory")
        for text in found["texts"][:2] + found["thread"] + [found["backward"]]:
            self.assertRegex(text, r"^CUDA out of memory\. Tried to allocate \d.* GPU 0 has a total capacity of")
        self.assertIn("more than 1EB", found["texts"][2])
        self.assertRegex(found["texts"][3], r"GiB allowed; Of the allocated memory|[MG]iB allowed; ")
        self.assertTrue(found["fits"])
        self.assertEqual((found["steps"], found["ooms"], found["leaked"]), (3, 5, 0))
        if VERSION in EXACT:
            stock = self.run_program("out_of_memory", "stock")
            for name in ("texts", "thread"):
                self.assertEqual(list(map(own, found[name])), list(map(own, stock[name])))
            self.assertEqual(own(found["backward"]), own(stock["backward"]))

    def test_memory_that_another_stream_uses_is_not_reused(self):
        ours, stock = self.run_program("record_stream"), self.run_program("record_stream", "stock")
        self.assertEqual(ours, stock)
        self.assertFalse(ours["reused, recorded True"])
        self.assertTrue(ours["reused, recorded False"])

    def test_threads_and_devices(self):
        found = self.run_program("threads")
        self.assertEqual(found["failed"], [])
        self.assertEqual(set(found["left"]), {0})
        self.assertGreater(min(found["allocations"]), 100)

    def test_graphs(self):
        ours, stock = self.run_program("graphs"), self.run_program("graphs", "stock")
        pools = [[tuple(segment[0][6]) for segment in state] for state in ours["states"]]
        self.assertEqual([any(pool != (0, 0) for pool in state) for state in pools], [True, True, False])
        if VERSION in EXACT:
            self.assertEqual(ours, stock)

    def test_after_cuda_was_used_it_is_too_late(self):
        self.assertIn("CUDA is already in use", self.run_program("too_late")["error"])

    def test_invalid_arguments_are_refused(self):
        found = self.run_program("arguments")
        parts = ("ValueError: context", "ValueError: history", "no_such", "LibraryError: Vramscope's library was not found at", "once")
        self.assertEqual(len(found["errors"]), len(parts))
        for part, error in zip(parts, found["errors"]):
            self.assertIn(part, error)
        self.assertEqual(found["max_split_size"], 64 << 20)
        self.assertEqual(found["settings"], "max_split_size_mb:128")
        self.assertTrue(found["exact"])


if __name__ == "__main__":
    unittest.main()
