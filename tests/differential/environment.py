#!/usr/bin/env python3
"""Makes the environment in which an official PyTorch release runs without a GPU.

    environment.py RELEASE [SCRIPT [ARGUMENT...]]

RELEASE is any that PyPI has, as 2.9 or 2.9.1. Without a SCRIPT it makes the environment and
says where it is; with one it runs the script in it. An environment is `target/differential/RELEASE`: a virtual
environment with the official CUDA wheel (1.5 to 2.5 GB unpacked, downloaded once), without NVIDIA's libraries, and the
libraries that take their place. What is there is used again.
"""

import os
import pathlib
import platform
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "collector/python"))

from vramscope._predict import install, prepare, standins  # noqa: E402 - It is found there.
from vramscope._predict.install import Failure, run, version  # noqa: E402

CHECK = """
import torch
x = torch.empty(5 << 20, device="cuda")
print(torch.__version__, torch.cuda.get_device_name(), torch.cuda.memory_reserved())
"""


class Environment:
    """The environment of a release. `make` must have been called before the rest is used."""

    def __init__(self, release):
        self.release, self.version = release, version(release)
        self.folder = ROOT / "target/differential" / release
        self.python = install.python_of(self.folder)
        self.libraries = None

    def make(self):
        """Makes what is missing of the environment and returns it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.packages():
            install.install(self.folder, self.release, say)
        self.build()
        return self

    def packages(self):
        """Where the environment's Python has its packages; `None` as long as the release is not installed whole."""
        return install.packages(self.folder, self.release)

    def build(self):
        """Builds the simulated driver and the libraries that stand in for NVIDIA's, unless those that are there are current."""
        target = ROOT / "target"
        cargo = ["cargo", "build", "--quiet", "--release", "--package", "fakecuda", "--target-dir", target]
        run(cargo, "build collector/fakecuda", cwd=ROOT)
        before = set(self.folder.glob("standins-*"))
        try:
            self.libraries = standins.made([self.packages()], target / "release" / standins.DRIVER, self.folder, platform.machine())
        except (OSError, ValueError, KeyError) as error:
            raise Failure(f"Cannot make the libraries that PyTorch loads: {error}") from None
        if self.libraries not in before:
            said = run([self.python, "-c", CHECK], f"start PyTorch {self.version} without a GPU", env=self.variables())
            say("Ready: PyTorch " + said.strip())
        for old in before - {self.libraries}:
            shutil.rmtree(old, ignore_errors=True)

    def headers(self):
        """Returns the folders of the C headers that PyTorch's own headers need, and downloads NVIDIA's if they are missing."""
        folder = self.folder / "headers"
        if not (folder / "downloaded").exists():
            wanted = install.headers(self.folder, self.release)
            pip = [self.python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-cache-dir", "--no-deps"]
            run([*pip, "--target", folder, *wanted], "download the headers of CUDA")
            (folder / "downloaded").touch()
        return [self.packages() / "torch/include", *folder.glob("nvidia/cu*/include")]

    def cuda(self):
        """The CUDA version that the wheel was made for, as CUDA counts it: 13000 for 13.0."""
        major, minor = prepare.cuda_of(self.packages())
        return 1000 * major + 10 * minor

    def variables(self):
        """The environment variables of a process in the environment: one device, nothing of PyTorch's from outside."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTORCH_", "TORCH_", "FAKECUDA_", "CUDA_", "LD_"))}
        return {**kept, **standins.variables(self.libraries, {}), "FAKECUDA_VERSION": str(self.cuda()), "PYTHONNOUSERSITE": "1"}

    def command(self, script, *arguments):
        """The command that runs a Python script in the environment, with `variables`."""
        return [str(self.python), str(script), *map(str, arguments)]


def say(line):
    print(line, flush=True)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    environment = Environment(sys.argv[1]).make()
    if len(sys.argv) == 2:
        say(str(environment.folder))
        return
    os.execve(environment.python, environment.command(*sys.argv[2:]), environment.variables())


if __name__ == "__main__":
    main()
