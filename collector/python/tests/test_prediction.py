"""Predictions from Python and in pytest. The program is a stand-in that prints its arguments; the real one is tested with the
command."""

import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

import vramscope
from vramscope import _prediction
from vramscope._predict import call

STAND_IN = """#!{python}
import json, os, sys
words = sys.argv[1:]
if "missing.py" in words:
    sys.exit("error: There is no script missing.py.")
card = words[words.index("--card") + 1] if "--card" in words else None
fits = None if card is None else card != "T4"
print(json.dumps({{"sentence": f"{{card}}: sentence", "words": words, "fits": fits, "is_over": "--fail-if-over" in words,
                   "path": os.environ.get("PYTHONPATH")}}))
sys.exit(fits is False)
"""


def at_the_top():
    """Is called by name."""
    print("called")


class PredictTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "vramscope"
        self.program.write_text(STAND_IN.format(python=sys.executable))
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def predict(self, *arguments, **options):
        return vramscope.predict(*arguments, program=self.program, **options)

    def test_a_script_and_its_options_are_passed_on(self):
        found = self.predict("train.py", "--batch", 8, card="A100-40GB", world_size=64, rank=[0, 63], whole=True, steps=None)
        want = ["--card", "A100-40GB", "--world-size", "64", "--rank", "0,63", "--whole", "--python", sys.executable]
        self.assertEqual(found["words"], ["predict", "--json", *want, "train.py", "--batch", "8"])
        self.assertEqual((str(found), found.fits), ("A100-40GB: sentence", True))

    def test_what_does_not_fit_is_no_error(self):
        self.assertIs(self.predict("train.py", card="T4").fits, False)
        self.assertIs(self.predict("train.py", card="A100", fail_if_over=0.5).fits, False)
        self.assertIsNone(self.predict("train.py").fits)

    def test_a_function_is_called_by_its_name(self):
        found = self.predict(at_the_top)
        self.assertEqual(found["words"][-5:], ["-m", "vramscope._predict.call", __name__, at_the_top.__code__.co_filename, "at_the_top"])
        self.assertIn(os.path.dirname(vramscope.__path__[0]), found["path"].split(os.pathsep))

    def test_what_goes_wrong_is_the_error(self):
        with self.assertRaisesRegex(vramscope.PredictError, "There is no script missing.py"):
            self.predict("missing.py")
        for function in (lambda: None, len, self.predict):
            with self.assertRaisesRegex(_prediction.PredictError, "at the top of a module"):
                self.predict(function)
        with self.assertRaisesRegex(_prediction.PredictError, "without arguments"):
            self.predict(at_the_top, 1)

    def test_a_function_of_a_program_runs_without_the_program(self):
        script = self.folder / "small_job.py"
        script.write_text("import beside\ndef train():\n    print('trained', beside.N)\nif __name__ == '__main__':\n    exit('no')\n")
        (self.folder / "beside.py").write_text("N = 3\n")
        for module in ("__main__", "small_job"):
            command = [sys.executable, "-m", call.__name__, module, str(script), "train"]
            path = os.pathsep.join([os.path.dirname(vramscope.__path__[0]), *([str(self.folder)] if module == "small_job" else [])])
            done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
            self.assertEqual((done.stdout, done.stderr), ("trained 3\n", ""), module)

    def test_a_marked_test_runs_without_a_gpu(self):
        try:
            import pytest  # noqa: F401
        except ImportError:
            self.skipTest("pytest is not installed")
        (self.folder / "test_job.py").write_text(
            "import pytest\n"
            "@pytest.mark.vramscope_predict(card='A100')\ndef test_fits():\n    raise SystemExit('it runs elsewhere')\n"
            "@pytest.mark.vramscope_predict(card='T4')\ndef test_does_not():\n    raise SystemExit('it runs elsewhere')\n"
        )
        environ = {**os.environ, "VRAMSCOPE_PROGRAM": str(self.program), "PYTHONPATH": os.path.dirname(vramscope.__path__[0])}
        plugin = ["-p", "vramscope.integrations.pytest_plugin", "-p", "no:cacheprovider"]
        for inside, wanted in (("", "1 failed, 1 passed"), ("folder", "2 failed")):
            command = [sys.executable, "-m", "pytest", *plugin, "--strict-markers", str(self.folder)]
            done = subprocess.run(command, env={**environ, "VRAMSCOPE_PREDICT": inside}, capture_output=True, text=True, check=False)
            if not inside:
                self.assertIn("T4: sentence", done.stdout, done.stderr)
                self.assertIn(wanted, done.stdout)
            else:
                self.assertIn("it runs elsewhere", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
