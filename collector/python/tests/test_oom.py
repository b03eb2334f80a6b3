"""What happens when memory runs out, and recordings into files: without torch and with it."""

import contextlib
import io
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch_jobs
import vramscope
from vramscope import _oom

GIB = 1 << 30


class Gone(RuntimeError):
    """Stands for torch.OutOfMemoryError."""


def fake_torch():
    cuda = types.SimpleNamespace(is_initialized=lambda: False, OutOfMemoryError=Gone)
    return types.SimpleNamespace(OutOfMemoryError=Gone, cuda=cuda)


def run(test, name, **variables):
    """Runs a job. Returns its folder, its JSON, and what it printed."""
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    done = torch_jobs.start(
        [str(HERE / "oom_job.py"), name, folder.name],
        **{"FAKECUDA_DEVICES": "1", "FAKECUDA_CAPACITY": str(2 * GIB), "VRAMSCOPE_QUIET": "", **variables},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads(done.stdout.strip().splitlines()[-1]), done.stderr


class RetryTest(unittest.TestCase):
    def setUp(self):
        self.enterContext(unittest.mock.patch.dict(sys.modules, {"torch": fake_torch()}))
        self.enterContext(unittest.mock.patch.dict(os.environ, {"VRAMSCOPE_PROGRAM": "/nowhere"}))
        self.said = self.enterContext(contextlib.redirect_stderr(io.StringIO()))

    if sys.version_info < (3, 11):

        def enterContext(self, context):
            self.addCleanup(context.__exit__, None, None, None)
            return context.__enter__()

    def calls(self, error, fits, **options):
        """Returns the sizes of the calls of a function that fails until its size is at most `fits`, and what it returned."""
        seen = []

        @vramscope.retry_on_oom(**{"sizes": "size", "history": 0, "out": None, **options})
        def call(size=100):
            seen.append(size)
            if size > fits:
                raise error
            return "done"

        try:
            return seen, call()
        except type(error) as raised:
            self.assertIs(raised, error)
            return seen, "raised"

    def test_sizes_shrink_a_stated_number_of_times(self):
        cases = [
            (Gone("x"), 100, {}, [100], "done"),
            (Gone("x"), 25, {}, [100, 50, 25], "done"),
            (Gone("x"), 1, {}, [100, 50, 25, 12], "raised"),
            (Gone("x"), 0, {"times": 20, "factor": 0.1}, [100, 10, 1], "raised"),
            (Gone("x"), 98, {"factor": 0.999}, [100, 99, 98], "done"),
            (RuntimeError("CUDA out of memory. Tried"), 50, {}, [100, 50], "done"),
            (RuntimeError("CUDA error: out of memory"), 50, {}, [100, 50], "done"),
            (RuntimeError("CUDA error: an illegal memory access"), 50, {}, [100], "raised"),
            (ValueError("CUDA out of memory"), 50, {}, [100], "raised"),
            (MemoryError(), 50, {}, [100], "raised"),
        ]
        for error, fits, options, seen, end in cases:
            with self.subTest(error=error, options=options):
                self.assertEqual(self.calls(error, fits, **options), (seen, end))

    def test_it_says_what_it_does_and_what_is_missing(self):
        self.calls(Gone("CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has"), 50)
        lines = self.said.getvalue().splitlines()
        where = "RetryTest.calls.<locals>.call"
        text = "CUDA out of memory. Tried to allocate 1.50 GiB."
        self.assertEqual(lines[0], f"vramscope: Out of memory in {where}(size=100): {text}")
        self.assertIn("No verdict: The program vramscope was not found", lines[1])
        self.assertEqual(lines[2], f"vramscope: CUDA is not in use. Calling {where} again with size=50; 2 more after that.")

    def test_a_failed_call_holds_nothing(self):
        class Big:
            pass

        import weakref

        held = []

        @vramscope.retry_on_oom(sizes="size", history=0, out=None)
        def call(size=4):
            self.assertEqual([of() for of in held], [None] * len(held))
            inner(size)
            return size

        def inner(size):
            big = Big()
            held.append(weakref.ref(big))
            try:
                raise KeyError("first")
            except KeyError:
                if size > 1:
                    raise Gone("x")

        try:
            raise ValueError("outer")
        except ValueError as outer:
            self.assertEqual(call(), 1)
            self.assertIsNotNone(outer.__traceback__)
        self.assertEqual(len(held), 3)

    def test_the_next_call_begins_with_its_own_size(self):
        seen = []

        @vramscope.retry_on_oom(sizes="size", history=0, out=None)
        def call(size):
            seen.append(size)
            if size > 4:
                raise Gone("x")

        call(8)
        call(size=8)
        self.assertEqual((seen, call.sizes), ([8, 4, 8, 4], {"size": 4}))

    def test_wrong_arguments_are_refused(self):
        def plain(size):
            return size

        def generator(size):
            yield size

        async def coroutine(size):
            return size

        wrong = [{"factor": 1}, {"factor": 0}, {"times": 0}, {"times": True}, {"history": -1}, {"sizes": ()}, {"sizes": "other"}]
        for options in wrong:
            with self.subTest(options=options), self.assertRaises(ValueError):
                vramscope.retry_on_oom(**{"sizes": "size", **options})(plain)
        for function in (generator, coroutine):
            decorators = (vramscope.retry_on_oom("size"), vramscope.oom_guard(), vramscope.record("x.vramscope", on_oom=1))
            for decorator in decorators:
                with self.assertRaisesRegex(TypeError, "generator or a coroutine"):
                    decorator(function)
        for value in ("8", None, True, [8]):
            with self.assertRaisesRegex(TypeError, "must be a number"):
                vramscope.retry_on_oom("size", history=0)(plain)(value)
        with self.assertRaisesRegex(TypeError, "no recording to set mode for"):
            vramscope.record("x.vramscope", on_oom=True, mode="events")
        with self.assertRaises(ValueError):
            vramscope.record("x.vramscope", mode="all")

    def test_other_ranks_are_not_left_waiting(self):
        many = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 2)
        with unittest.mock.patch.dict(sys.modules, {"torch.distributed": many}):
            self.assertEqual(self.calls(Gone("x"), 50), ([100], "raised"))
            self.assertEqual(self.calls(Gone("x"), 50, in_many_ranks=True), ([100, 50], "done"))
        self.assertIn("the other ranks would wait", self.said.getvalue())

    def test_a_guard_drops_an_error_only_if_it_is_told_to(self):
        cases = [(Gone("x"), True, None), (Gone("x"), 1, Gone), (Gone("x"), None, Gone), (KeyError("x"), True, KeyError)]
        for error, answer, raised in cases:
            with self.subTest(error=error, answer=answer):
                with contextlib.ExitStack() as stack:
                    if raised is not None:
                        stack.enter_context(self.assertRaises(raised))
                    with vramscope.oom_guard(lambda failure, answer=answer: answer, history=0, out=None):
                        raise error

    def test_the_package_stays_light(self):
        code = "import sys, vramscope; print([n for n in sys.modules if n.startswith('vramscope.') or n == 'torch'])"
        done = subprocess.run([sys.executable, "-c", code], env=torch_jobs.environment(), capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.strip(), "[]")


@torch_jobs.needs_torch
class OutOfMemoryTest(unittest.TestCase):
    def load(self, folder, name):
        with open(os.path.join(folder.name, name), "rb") as file:
            return pickle.load(file)

    def test_a_function_is_called_again_without_what_failed(self):
        folder, found, said = run(self, "retried")
        self.assertEqual((found["result"], found["seen"], found["sizes"]), ([32, "x"], [128, 64, 32], {"batch": 32}))
        self.assertEqual(found["held"], [0, 0, 0])
        self.assertEqual(
            found["failures"],
            [[{"batch": 128}, {"batch": 64}, "oom-1.pickle", True], [{"batch": 64}, {"batch": 32}, "oom-2.pickle", True]],
        )
        self.assertTrue(found["is_recording"])
        self.assertIn("1.00 GiB were given back to the driver; 0 B remain in use. Calling", said)
        written = self.load(folder, "oom-2.pickle")
        self.assertEqual([of["action"] for of in written["device_traces"][0]].count("oom"), 2)
        marks = [(of["name"], of["stage"]) for of in written["external_annotations"]]
        again = "out of memory with batch=128, again with batch=64"
        self.assertEqual(marks, [("step 128", "INSTANT"), (again, "INSTANT"), ("step 64", "INSTANT")])
        live = [b for s in written["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]
        self.assertEqual((len(live), live[0]["frames"][-1]["name"]), (8, "<module>"))

    def test_the_last_error_is_raised_untouched(self):
        _, found, said = run(self, "exhausted")
        self.assertEqual([of["batch"] for of in found["seen"]], [64, 6, 1])
        self.assertEqual([round(of["length"], 6) for of in found["seen"]], [2.5, 0.25, 0.025])
        self.assertEqual((found["local"], found["context"], found["files"]), (1 << 42, "None", []))
        self.assertEqual(said.count("asked of the driver"), 3, said)

    def test_a_guard_skips_what_it_is_told_to(self):
        _, found, _ = run(self, "guarded")
        errors = ["IndexError", "OutOfMemoryError", "RuntimeError"]
        self.assertEqual(found, {"left": [0, 0], "errors": errors, "files": ["1.pickle"]})

    def test_a_recording_is_used_where_there_is_one(self):
        folder, found, said = run(self, "beside")
        self.assertEqual(found, {"paths": ["run.vramscope", "events.pickle", "budget.pickle"], "is_again": True})
        self.assertEqual(said.count("Full: 16.0 TiB asked"), 3, said)
        # The agent's own ring has one entry in one mode, and is emptied when memory runs out in the other.
        for name, most in (("events", 500), ("budget", 300)):
            kept = self.load(folder, f"{name}.pickle")["device_traces"][0]
            self.assertTrue(100 < len(kept) <= most, len(kept))
            self.assertIn("oom", [of["action"] for of in kept[-3:]])

    def test_an_agent_keeps_its_stacks_whoever_holds_the_ring(self):
        folder, found, _ = run(self, "handed_over")
        small, large = [True, False], [True, True]
        self.assertEqual(found, [large, small, large, small, large, large, False])
        recorded, _ = torch_jobs.read(os.path.join(folder.name, "run.vramscope"))
        made = [of for of in recorded["device_traces"][0] if of["action"] == "alloc"]
        self.assertEqual((len(made), [of["size"] for of in made if not of.get("frames")]), (7, []))

    def test_a_ring_is_written_only_when_memory_runs_out(self):
        folder, found, _ = run(self, "ring")
        self.assertEqual(found["paths"], [None, "oom.vramscope"])
        self.assertEqual(found["is_recording"], [True, False])
        self.assertEqual(found["files"], ["inner.vramscope", "oom.vramscope"])
        written = self.load(folder, "oom.vramscope")
        self.assertEqual(len(written["device_traces"][0]), 300)
        self.assertEqual(written["external_annotations"][-1]["name"], "step 399")
        program = os.environ.get("VRAMSCOPE_PROGRAM") or torch_jobs.server()
        done = subprocess.run([program, "doctor", folder.name + "/oom.vramscope"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, "16.0 TiB asked" in done.stdout), (1, True), done)

    def test_blocks_and_calls_are_recorded_into_files(self):
        folder, found, said = run(self, "files")
        self.assertEqual(found["errors"], ["KeyError('mine')"])
        self.assertEqual((found["paths"], found["after"]), (["first.vramscope", None], "None"))
        self.assertEqual(found["files"], ["call1.vramscope", "call3.vramscope", "first.vramscope"])
        self.assertEqual(said.count("is not written: this process is already recorded to"), 2)
        recorded, about = torch_jobs.read(os.path.join(folder.name, "first.vramscope"))
        self.assertEqual((len(recorded["device_traces"][0]), about["findings"]), (found["events"], []))

    def test_nothing_happens_without_the_gpu(self):
        _, found, said = run(self, "unused")
        self.assertEqual(found, {"is_initialized": False, "files": []})
        self.assertRegex(said, r"vramscope: \S+/a.vramscope is not written: the GPU was not used.")


if __name__ == "__main__":
    unittest.main()
