"""The libraries that stand in for NVIDIA's are found and answer as they should."""

import ctypes
import pathlib
import platform
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from vramscope._predict import elf, standins

MACHINE = platform.machine()


@unittest.skipUnless(sys.platform == "linux" and MACHINE in elf.MACHINES, "libraries are written for Linux")
class Standins(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.packages, self.cache = self.folder / "site packages", self.folder / "cache a"
        (self.packages / "torch/lib").mkdir(parents=True)
        self.driver = self.folder / standins.DRIVER
        elf.write(self.driver, MACHINE, standins.DRIVER, (), [("cuInit", 3), ("cudaMalloc", 4)])

    def library(self, name, needed, functions=()):
        """Writes a library of a package."""
        path = self.packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        elf.write(path, MACHINE, path.name, needed, [(f, 1) for f in functions])
        return path

    def test_functions_return_their_numbers(self):
        one, two = self.folder / "libone.so", self.folder / "libtwo.so"
        many = [(f"function_{i}", i * 7 % 65_536) for i in range(2_000)]
        elf.write(one, MACHINE, "libone.so", ["libtwo.so"], [("zero", 0), ("most", 65_535)])
        elf.write(two, MACHINE, "libtwo.so", (), many)
        ask = "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); print(l.zero(), l.most(), *(getattr(l, f'function_{i}')() for i in range(2000)))"
        said = subprocess.run([sys.executable, "-c", ask, one], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(list(map(int, said)), [0, 65_535, *(number for _, number in many)])

    def test_what_is_no_library_is_refused(self):
        path = self.folder / "liba.so"
        for data in (b"", b"\x7fELF", b"/* GNU ld script */"):
            path.write_bytes(data)
            with self.assertRaises(ValueError):
                elf.read(path)

    def test_a_process_loads_them_in_place_of_the_real_ones(self):
        # The real library lies where PyTorch's own path finds it, beside the library that asks for it.
        self.library("torch/lib/libtorch_cuda.so", ["libcudart.so.13", "libcublas.so.13"])
        self.library("torch/lib/libcudart.so.13", (), ["is_real"])
        self.library("nvidia/cublas/libcublas.so.13", (), ["is_real"])
        (self.packages / "torch/lib/libtorch_python.so").write_bytes(b"not a library")
        made = standins.made([self.packages], self.driver, self.cache, MACHINE)
        self.assertEqual(made, standins.made([self.packages], self.driver, self.cache, MACHINE), "it is made once")
        names = {path.name for path in made.iterdir()}
        self.assertEqual(
            names,
            {"libcublas.so.13", "libcuda.so.1", "libcudart.so.13", "libnvidia-ml.so.1", standins.DRIVER, standins.FUNCTIONS},
        )
        ask = "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); print(l.cuInit(), l.cudaMalloc(), hasattr(ctypes.CDLL('libcudart.so.13'), 'is_real'))"
        library = self.packages / "torch/lib/libtorch_cuda.so"
        environment = standins.variables(made, {})
        done = subprocess.run([sys.executable, "-c", ask, library], capture_output=True, text=True, env=environment)
        self.assertEqual((done.stdout, done.returncode), ("3 4 False\n", 0), done.stderr)

    def test_what_is_asked_for_and_nobody_has_is_made(self):
        path = pathlib.Path
        (self.packages / "torch/lib/libc10_cuda.so").write_bytes(b"\0cuMemCreate\0nvmlInit_v2\0other\0")
        found = {
            self.driver: elf.Library([], set(), {"cudaMalloc"}),
            self.packages / "torch/lib/libc10_cuda.so": elf.Library(["libcudart.so.13"], {"cudaMalloc", "cudaNew", "malloc"}, {"cudaOwn"}),
            path("_C.so"): elf.Library(["libc.so.6"], {"cublasNew", "cudaOwn"}, set()),
            path("libother.so"): elf.Library(["libc.so.6"], {"cudaOfOthers"}, set()),
        }
        with mock.patch.object(elf, "read", found.__getitem__):
            functions, names = standins.wanted(list(found)[1:], self.driver)
        self.assertEqual(functions, ["cuMemCreate", "cublasNew", "cudaNew", "nvmlInit_v2"])
        self.assertEqual(names, ["libcuda.so.1", "libcudart.so.13", "libnvidia-ml.so.1"])
        results = {"cudaNew": 801, "cuMemCreate": 801, "__cudaNew": 801, "cublasNew": 0, "cuFileRead": 0, "ncclSend": 0}
        self.assertEqual({name: standins._result(name) for name in results}, results)

    def test_another_driver_or_package_makes_others(self):
        self.library("torch/lib/libtorch_cuda.so", ["libcudart.so.12"])
        before = standins.made([self.packages], self.driver, self.cache, MACHINE)
        self.library("torchvision/_C.so", ["libnvjpeg.1234.so.12"])
        after = standins.made([self.packages], self.driver, self.cache, MACHINE)
        self.assertNotEqual(before, after)
        self.assertTrue((after / "libnvjpeg.1234.so.12").is_file())
        elf.write(self.driver, MACHINE, standins.DRIVER, (), [("cuInit", 5)])
        self.assertNotEqual(after, standins.made([self.packages], self.driver, self.cache, MACHINE))

    def test_a_folder_that_the_linker_would_split_is_refused(self):
        with self.assertRaisesRegex(ValueError, "VRAMSCOPE_CACHE"):
            standins.made([self.packages], self.driver, self.folder / "a:b", MACHINE)

    def test_variables_keep_what_was_set(self):
        self.library("torch/lib/libtorch_cuda.so", [])
        made = standins.made([self.packages], self.driver, self.cache, MACHINE)
        found = standins.variables(made, {"LD_PRELOAD": "liba.so", "LD_LIBRARY_PATH": "/b"})
        self.assertEqual(found, {"LD_PRELOAD": "libcuda.so.1:libnvidia-ml.so.1:liba.so", "LD_LIBRARY_PATH": f"{made}:/b"})


if __name__ == "__main__":
    unittest.main()
