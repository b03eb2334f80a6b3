"""What an environment of a release is made of. Downloading one is left to predictions themselves."""

import pathlib
import subprocess
import tempfile
import unittest

from vramscope._predict import install


class EnvironmentTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def put(self, version, cuda):
        site = self.folder / "venv/lib/python3.11/site-packages"
        (site / f"torch-{version}.dist-info").mkdir(parents=True)
        (site / "torch").mkdir()
        (site / "torch/version.py").write_text(f"__version__ = '{version}+cu'\ncuda: Optional[str] = '{cuda}'\n")
        return site

    def test_a_release_has_a_version(self):
        self.assertEqual([install.version(release) for release in ("2.11", "2.9.1")], ["2.11.0", "2.9.1"])
        for release in ("2", "2.x", "", "2.11.0.1", "../2.11"):
            with self.assertRaisesRegex(install.Failure, "is not a release of PyTorch"):
                install.version(release)

    def test_it_is_there_only_as_a_whole(self):
        site = self.put("2.11.0", "13.0")
        self.assertIsNone(install.packages(self.folder, "2.11"))
        (self.folder / "installed").write_text("2.11.0\n")
        self.assertEqual(install.packages(self.folder, "2.11"), site)
        self.assertIsNone(install.packages(self.folder, "2.10"))

    def test_headers_are_of_its_cuda(self):
        self.put("2.5.0", "12.4")
        wanted = ["nvidia-cuda-runtime-cu12==12.4.*", "nvidia-cuda-nvcc-cu12==12.4.*"]
        self.assertEqual(install.headers(self.folder, "2.5"), wanted)

    def test_a_failure_is_told_by_its_last_error(self):
        for text, wanted in (
            ("Collecting torch\nERROR: No matching distribution\nnotice: a new pip\n", "ERROR: No matching distribution"),
            ("WARNING: connection broken by X\nERROR: No matching distribution\n", "the package index cannot be reached"),
            ("", "it ended with exit code 3"),
        ):
            self.assertEqual(install.reason(subprocess.CalledProcessError(3, "pip", "", text)), wanted)


if __name__ == "__main__":
    unittest.main()
