"""The comparison of two runs. The program is a stand-in that prints its arguments; the real one is tested with the command."""

import os
import pathlib
import stat
import sys
import tempfile
import unittest

import vramscope
from vramscope import _diff

STAND_IN = """#!{python}
import json, pathlib, sys
arguments = sys.argv[1:]
files = arguments[arguments.index("--") + 1:]
if files[0].endswith("missing"):
    sys.exit("error: missing: There is no such file.")
print(json.dumps({{
    "sentence": "B's peak is higher.",
    "arguments": arguments[: arguments.index("--")],
    "files": files,
    "sizes": [pathlib.Path(file).stat().st_size for file in files if pathlib.Path(file).exists()],
    "gate": [{{"rule": rule, "tripped": rule == "peak+2%"}} for rule in arguments if "+" in rule],
}}))
sys.exit(1 if "peak+2%" in arguments else 0)
"""


class DiffTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = pathlib.Path(folder.name) / "vramscope"
        self.program.write_text(STAND_IN.format(python=sys.executable))
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def test_files_and_choices_are_passed_on(self):
        found = vramscope.diff("-a.pickle", "b.pickle", at="end", device=1, map={"/old": "/new"}, fail_if="line+1GiB", program=self.program)
        want = ["diff", "--json", "--at", "end", "--device", "1", "--map", "/old=/new", "--fail-if", "line+1GiB"]
        self.assertEqual(found["arguments"], want)
        self.assertEqual(found["files"], [os.path.abspath("-a.pickle"), os.path.abspath("b.pickle")])
        self.assertEqual((str(found), found.is_tripped), ("B's peak is higher.", False))

    def test_a_broken_rule_is_no_error(self):
        found = vramscope.diff("a", "b", fail_if=["peak+2%", "line+1GiB"], program=self.program)
        self.assertTrue(found.is_tripped)

    def test_a_run_alone_has_two_moments(self):
        found = vramscope.diff("a.pickle", at=("step:3", "step:40"), program=self.program)
        self.assertEqual(found["arguments"], ["diff", "--json", "--at", "step:3", "--at", "step:40"])
        self.assertEqual(found["files"], [os.path.abspath("a.pickle")])

    def test_snapshots_are_written_for_the_program_alone(self):
        found = vramscope.diff({"segments": []}, "b", program=self.program)
        self.assertGreater(found["sizes"][0], 0)
        self.assertFalse(os.path.exists(found["files"][0]))

    def test_what_goes_wrong_is_the_error(self):
        with self.assertRaisesRegex(_diff.DiffError, "There is no such file"):
            vramscope.diff("missing", "b", program=self.program)
        with self.assertRaisesRegex(vramscope.DiffError, "was not found"):
            vramscope.diff("a", "b", program=self.program.with_name("none"))


if __name__ == "__main__":
    unittest.main()
