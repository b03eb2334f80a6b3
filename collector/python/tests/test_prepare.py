"""What a Python answers that is asked whether it can run a program without a GPU."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from vramscope._predict import prepare, standins

VERSION = "__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = {cuda}\n"


class Answers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.packages = pathlib.Path(folder.name, "site-packages")
        self.packages.mkdir()
        self.driver = pathlib.Path(folder.name, standins.DRIVER)
        self.driver.write_bytes(b"")
        variables = {"VRAMSCOPE_DRIVER": str(self.driver), "VRAMSCOPE_CACHE": folder.name}
        for patch in (
            mock.patch.dict(os.environ, variables),
            mock.patch.object(sys, "path", [str(self.packages)]),
            mock.patch.object(standins, "made", self.made),
            mock.patch.object(standins, "variables", lambda folder: {"LD_PRELOAD": "libcuda.so.1"}),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        self.folders = None

    def made(self, folders, driver, cache, machine):
        self.folders, self.asked = folders, (driver, machine)
        return cache

    def install(self, version, cuda, wanted=()):
        torch = self.packages / "torch"
        torch.mkdir()
        (torch / "__init__.py").write_text("raise ImportError('it must not be imported')")
        (torch / "version.py").write_text(VERSION.format(version=version, cuda=cuda))
        about = self.packages / f"torch-{version.partition('+')[0]}.dist-info"
        about.mkdir()
        lines = ["Metadata-Version: 2.1", "Name: torch", f"Version: {version}", *(f"Requires-Dist: {one}" for one in wanted)]
        (about / "METADATA").write_text("\n".join(lines) + "\n")

    def answer(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            prepare.main()
        line = out.getvalue().splitlines()[-1]
        self.assertTrue(line.startswith(prepare.MARK))
        return json.loads(line[len(prepare.MARK) :])

    def test_with_the_variables_of_its_torch(self):
        self.install("2.11.0+cu130", "'13.0'", ['nvidia-cudnn-cu13==9.19.0.56; platform_system == "Linux"'])
        answer = self.answer()
        self.assertEqual(answer["torch"], "2.11.0+cu130")
        wanted = {
            "LD_PRELOAD": "libcuda.so.1",
            "FAKECUDA_VERSION": "13000",
            "FAKECUDA_CUDNN": "91900",
            "FAKECUDA_LARGEST_WRITE": "65536",
        }
        self.assertEqual(answer["variables"], wanted)
        self.assertEqual((self.folders, self.asked[0]), ([self.packages], self.driver))

    def test_with_what_is_missing(self):
        for name, install, wanted in (
            ("nothing", None, "has no PyTorch. Install it with:"),
            ("for the CPU", ("2.11.0+cpu", "None"), "PyTorch 2.11.0+cpu here is not built for CUDA"),
            ("too old", ("2.3.1+cu121", "'12.1'"), "predictions are known to be right for 2.4 to 2.15"),
            ("too new", ("3.0.0+cu140", "'14.0'"), "PyTorch 3.0.0+cu140 is installed"),
        ):
            with self.subTest(name):
                if install is not None:
                    self.install(*install)
                self.assertIn(wanted, self.answer()["error"])
                for path in sorted(self.packages.rglob("*"), reverse=True):
                    path.rmdir() if path.is_dir() else path.unlink()

    def test_where_there_is_no_driver(self):
        self.install("2.11.0+cu130", "'13.0'")
        self.driver.unlink()
        self.assertIn("cargo build --release -p fakecuda", self.answer()["error"])

    def test_on_other_systems(self):
        for system, machine in (("darwin", "arm64"), ("win32", "AMD64"), ("linux", "riscv64")):
            with mock.patch.object(sys, "platform", system), mock.patch.object(prepare.platform, "machine", lambda: machine):
                self.assertIn(f"this is {system} on {machine}", self.answer()["error"])

    def test_where_the_cache_is_full(self):
        self.install("2.11.0+cu130", "'13.0'")
        with mock.patch.object(standins, "made", side_effect=OSError(28, "No space left on device")):
            self.assertIn("can't be made: [Errno 28] No space left", self.answer()["error"])


if __name__ == "__main__":
    unittest.main()
