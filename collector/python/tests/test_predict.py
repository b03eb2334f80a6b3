"""What a prediction counts and when it ends; the values themselves are checked by `predict_values.py`, which needs PyTorch."""

import importlib
import itertools
import json
import linecache
import os
import pathlib
import sys
import tempfile
import traceback
import types
import unittest
from unittest import mock

from vramscope import _hook
from vramscope._predict import batches, start, tracebacks
from vramscope._predict.readbacks import Readbacks
from vramscope._predict.steps import PATIENCE, Steps


class CountsReadbacks(unittest.TestCase):
    def test_by_the_programs_line_made_up_ones_first(self):
        with tempfile.TemporaryDirectory() as folder:
            inside = pathlib.Path(folder, "torch")
            inside.mkdir()
            (inside / "library.py").write_text("def item(of, made_up):\n    of.count('item', made_up)\n")
            spec = importlib.util.spec_from_file_location("library", inside / "library.py")
            library = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(library)
            found = Readbacks([str(inside)])
            for made_up in (False, False, False, True):
                library.item(found, made_up)  # HERE
            found.count("nonzero", False)
        lines = pathlib.Path(__file__).read_text(encoding="utf-8").splitlines()
        here = next(n for n, line in enumerate(lines, 1) if line.endswith("  # HERE"))
        rows = found.rows()
        expected = [("item", 1, True), ("item", 3, False), ("nonzero", 1, False)]
        self.assertEqual([(r["op"], r["count"], r["made_up"]) for r in rows], expected)
        self.assertEqual((rows[0]["file"], rows[0]["line"]), (__file__, here))

    def test_values_are_given_by_the_end_of_a_path_and_a_line(self):
        cases = [
            ('[{"file": "train.py", "line": 3, "value": 2.5}]', 2.5),
            ('[{"file": "code/train.py", "line": 3, "value": 1.0}]', 1.0),
            ('[{"file": "./code/train.py", "line": 3, "value": 1.0}]', 1.0),
            ('[{"file": "rain.py", "line": 3, "value": 1.0}]', None),
            ('[{"file": "train.py", "line": 4, "value": 1.0}]', None),
            ("no JSON", None),
            ("", None),
        ]
        for text, expected in cases:
            with mock.patch.dict(os.environ, VRAMSCOPE_PREDICT_VALUES=text):
                found = Readbacks()
            with mock.patch.object(found, "_line", return_value=("/code/train.py", 3)):
                self.assertEqual(found.given(), expected, text)

    def test_without_a_line_of_the_program(self):
        found = Readbacks([os.path.dirname(os.path.abspath(__file__)), os.path.dirname(unittest.__file__), sys.prefix])
        with mock.patch.object(found, "_line", return_value=(None, None)):
            found.count("item", True)
        self.assertEqual(found.rows(), [{"file": None, "line": None, "op": "item", "count": 1, "made_up": True}])


class EndsAfterSteps(unittest.TestCase):
    def steps(self, states, *arguments):
        self.ends = []
        states = iter(states)
        return Steps(lambda: next(states), self.ends.append, *arguments)

    def test_when_two_have_the_same_peak_but_not_before_the_third(self):
        steps = self.steps([1, 1, 1])
        optimizer = object()
        for expected in ([], [], ["same peak"]):
            steps.stepped(optimizer, (), {})
            self.assertEqual(self.ends, expected)

    def test_not_while_the_peak_grows(self):
        steps = self.steps([1, 2, 3, 4, 4])
        optimizer = object()
        for _ in range(4):
            steps.stepped(optimizer)
        self.assertEqual(self.ends, [])
        steps.stepped(optimizer)
        self.assertEqual((self.ends, steps.count), (["same peak"], 5))

    def test_after_as_many_as_were_asked(self):
        steps = self.steps(range(9), 2)
        optimizer = object()
        steps.stepped(optimizer)
        steps.stepped(optimizer)
        self.assertEqual(self.ends, ["steps"])

    def test_not_early_if_the_whole_is_wanted(self):
        steps = self.steps([1] * 9, None, False)
        optimizer = object()
        for _ in range(9):
            steps.stepped(optimizer)
        self.assertEqual(self.ends, [])

    def test_a_step_is_one_of_the_same_optimizer(self):
        steps = self.steps([1, 1, 1, 1])
        ours, other = object(), object()
        for _ in range(3):
            steps.stepped(ours)
            for _ in range(5):
                steps.stepped(other)
        self.assertEqual((steps.count, self.ends), (3, ["same peak"]))

    def test_a_step_is_one_of_all_the_optimizers_of_single_parameters(self):
        steps = self.steps([1, 1, 1, 1])
        optimizers = [object() for _ in range(10 * PATIENCE)]
        for count in range(1, 4):
            for optimizer in optimizers:
                self.assertEqual(self.ends, [])
                steps.stepped(optimizer)
                if count == 3:
                    break
            self.assertEqual(steps.count, count)
        self.assertEqual(self.ends, ["same peak"])

    def test_an_optimizer_that_steps_no_more_is_given_up(self):
        steps = self.steps([1, 2, 3, 3])
        ours, other = object(), object()
        steps.stepped(ours)
        for _ in range(PATIENCE):
            steps.stepped(other)
        self.assertEqual(steps.count, 2)
        steps.stepped(other)
        self.assertEqual(steps.count, 3)


class OutOfMemoryError(RuntimeError):
    pass


def torch(is_initialized=True):
    """A PyTorch with one device."""
    all_ = {"peak": 20, "current": 10}
    stats = {"allocated_bytes": {"all": all_}, "reserved_bytes": {"all": {"peak": 40, "current": 40}}, "num_ooms": 1}
    cuda = types.SimpleNamespace(is_initialized=lambda: is_initialized, device_count=lambda: 1)
    native = types.SimpleNamespace(_cuda_memoryStats=lambda _: stats)
    return types.SimpleNamespace(cuda=cuda, _C=native, OutOfMemoryError=OutOfMemoryError, __version__="2.11.0")


class WritesItsResult(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "new")

    def result(self, *arguments):
        result = start.Result(torch(*arguments), self.folder, Readbacks())
        result.steps = types.SimpleNamespace(count=3)
        return result

    def written(self):
        [name] = os.listdir(self.folder)
        self.assertEqual(name, f"rank-{os.getpid()}.json")
        return json.loads(pathlib.Path(self.folder, name).read_text())

    def test_at_the_end(self):
        self.result().write()
        found = self.written()
        self.assertEqual((found["ended"], found["error"], found["steps"], found["torch"]), ("exit", None, 3, "2.11.0"))
        expected = {"device": 0, "allocated": 20, "reserved": 40, "allocated_now": 10, "out_of_memory": 1}
        self.assertEqual(found["devices"], [expected])

    def test_once(self):
        result = self.result()
        result.write()
        result.failed(ValueError("late"))
        result.write()
        self.assertEqual(self.written()["ended"], "exit")

    def test_with_what_failed(self):
        result = self.result()
        result.failed(ValueError("no such layer"))
        result.write()
        found = self.written()
        self.assertEqual((found["ended"], found["error"]), ("error", "ValueError: no such layer"))

    def test_memory_that_ran_out_is_found_behind_other_errors(self):
        result = self.result()
        try:
            try:
                raise OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB")
            except OutOfMemoryError as error:
                raise RuntimeError("the step failed") from error
        except RuntimeError as error:
            result.failed(error)
        result.write()
        found = self.written()
        self.assertEqual((found["ended"], found["error"]), ("out of memory", "CUDA out of memory. Tried to allocate 1 GiB"))

    def test_not_by_a_process_that_never_used_the_gpu(self):
        self.result(False).write()
        self.assertFalse(os.path.exists(self.folder))

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    def test_not_by_a_worker(self):
        result = self.result()
        child = os.fork()
        if not child:
            result.write()
            os._exit(0)
        os.waitpid(child, 0)
        self.assertFalse(os.path.exists(self.folder))


class ShortensTracebacks(unittest.TestCase):
    def handler(self, line):
        """Returns a function of the package that runs another one."""
        file = os.path.join(os.path.dirname(start.__file__), "of_a_test.py")
        lines = ["def handler(run, *args):\n", f"    {line}\n"]
        linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
        self.addCleanup(linecache.cache.pop, file, None)
        found = {}
        exec(compile("".join(lines), file, "exec"), found)
        return found["handler"]

    def add(self, _):
        raise ValueError("sizes differ")

    def failure(self, line):
        try:
            self.handler(line)(self.add, 1)
        except ValueError as first:
            try:
                self.handler(line)(self.add, 2)
            except ValueError as error:
                self.assertIs(error.__context__, first)
                return error

    def names(self, error):
        return [one.name for one in traceback.extract_tb(error.__traceback__)]

    def test_of_what_failed_and_of_what_led_to_it(self):
        error = self.failure("return run(*args)")
        whole = ["failure", "handler", "add"]
        with tracebacks.shortened(error):
            for one in (error, error.__context__):
                self.assertEqual(self.names(one), ["failure", "add"])
        for one in (error, error.__context__):
            self.assertEqual(self.names(one), whole)

    def test_not_of_the_packages_own_faults(self):
        error = self.failure("return [one(args) for one in (run,)][0]")
        with tracebacks.shortened(error):
            self.assertIn("handler", self.names(error))

    def test_where_python_prints_them(self):
        printed, failed = [], []
        hooks = {"excepthook": lambda kind, error, trace: printed.append(self.names(error))}
        with mock.patch.multiple(sys, **hooks), mock.patch.object(start.threading, "excepthook"):
            start._watch_exceptions(types.SimpleNamespace(failed=failed.append))
            error = self.failure("return run(*args)")
            sys.excepthook(type(error), error, error.__traceback__)
        self.assertEqual((printed, failed), ([["failure", "add"]], [error]))


class RepeatsBatches(unittest.TestCase):
    def test_the_first_of_each_pass_as_many_as_there_were(self):
        loaded = []

        class Loader:
            def __init__(self, length, knows=True):
                self.length, self.knows = length, knows

            def __len__(self):
                if not self.knows:
                    raise TypeError("it has no len()")
                return self.length

            def __iter__(self):
                for number in range(self.length):
                    loaded.append(number)
                    yield number

        batches.repeat(Loader, 2)
        for length, wanted in ((5, [0, 1, 0, 1, 0]), (2, [0, 1]), (1, [0]), (0, [])):
            del loaded[:]
            self.assertEqual(list(Loader(length)), wanted)
            self.assertEqual(loaded, list(range(min(length, 2))))
        endless = itertools.islice(Loader(9, knows=False), 7)
        self.assertEqual(list(endless), [0, 1, 0, 1, 0, 1, 0])


class WaitsForModules(unittest.TestCase):
    def test_until_a_module_is_imported_as_a_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder, "vramscope_waited_for")
            package.mkdir()
            (package / "__init__.py").write_text("from . import part\nis_whole = True\n")
            (package / "part.py").write_text("")
            seen = []
            _hook.when_imported(package.name, lambda module: seen.append(("package", hasattr(module, "is_whole"))))
            _hook.when_imported(package.name + ".part", lambda module: seen.append(("part", hasattr(module, "is_whole"))))
            with mock.patch.object(sys, "path", [folder, *sys.path]):
                module = importlib.import_module(package.name)
            self.assertEqual(seen, [("part", False), ("package", True)])
            _hook.when_imported(package.name, lambda module: seen.append("now"))
            self.assertEqual(seen[2:], ["now"])
            self.assertNotIn("vramscope", type(module.__spec__.loader).__module__)
            self.assertFalse(any("vramscope" in type(finder).__module__ for finder in sys.meta_path))


if __name__ == "__main__":
    unittest.main()
