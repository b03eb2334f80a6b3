#!/usr/bin/env python3
"""Makes the environment in which an official PyTorch release runs without a GPU.

    environment.py RELEASE [SCRIPT [ARGUMENT...]]

RELEASE is any that PyPI has, as 2.9 or 2.9.1. Without a SCRIPT it makes the environment and
says where it is; with one it runs the script in it. An environment is `target/differential/RELEASE`: a virtual
environment with the official CUDA wheel (1.5 to 2.5 GB unpacked, downloaded once), without NVIDIA's libraries, and the
libraries that take their place. What is there is used again.
"""

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "collector/python"))

from vramscope._predict import standins  # noqa: E402 - It is found there.

# NVIDIA's libraries, whose place the fake ones take, and the compiler of kernels, none of which run.
NOT_INSTALLED = re.compile(r"(nvidia-|cuda-|triton|pytorch-triton)")
CHECK = """
import torch
x = torch.empty(5 << 20, device="cuda")
print(torch.__version__, torch.cuda.get_device_name(), torch.cuda.memory_reserved())
"""


class Failure(SystemExit):
    """Ends the program with one line."""


def version(release):
    """The version that PyPI has a release under: the first of a minor release."""
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?", release):
        raise Failure(f"{release!r} is not a PyTorch release; give one as 2.11")
    return release if release.count(".") == 2 else release + ".0"


def run(command, what, **options):
    """Runs a command; if it fails, ends the program with what could not be done and the command's own reason."""
    try:
        return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout
    except FileNotFoundError:
        raise Failure(f"Cannot {what}: {command[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        raise Failure(f"Cannot {what}: {reason(error)}") from None


def reason(error):
    """The line of a failed command's output that says most: the last one with an error in it, or the last one."""
    lines = [line.strip() for line in (error.stderr or error.stdout or "").splitlines() if line.strip()]
    if any("connection broken" in line for line in lines):
        return "the package index cannot be reached"
    errors = [line for line in lines if re.match(r"(error|ERROR|OSError|ImportError|RuntimeError)", line)]
    return (errors or lines or [f"it ended with exit code {error.returncode}"])[-1]


class Environment:
    """The environment of a release. `make` must have been called before the rest is used."""

    def __init__(self, release):
        self.release, self.version = release, version(release)
        self.folder = ROOT / "target/differential" / release
        self.python = self.folder / "venv/bin/python"
        self.libraries = None

    def make(self):
        """Makes what is missing of the environment and returns it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.packages():
            self.install()
        self.build()
        return self

    def packages(self):
        """Where the environment's Python has its packages; `None` as long as the release is not installed whole."""
        found = list((self.folder / "venv").glob(f"lib/python3*/site-packages/torch-{self.version}*.dist-info"))
        return found[0].parent if found and (self.folder / "installed").exists() else None

    def install(self):
        say(f"Installing PyTorch {self.version} in {self.folder.relative_to(ROOT)} (downloads 0.5 to 0.9 GB)")
        shutil.rmtree(self.folder / "venv", ignore_errors=True)
        run([sys.executable, "-m", "venv", self.folder / "venv"], "make a virtual environment (Debian: apt-get install python3-venv)")
        # The cache would keep a second copy of the wheel.
        pip = [self.python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet", "--no-cache-dir"]
        run([*pip, "--no-deps", f"torch=={self.version}"], f"download PyTorch {self.version}")
        names = "import importlib.metadata as m, json; print(json.dumps(m.requires('torch') or []))"
        required = json.loads(run([self.python, "-c", names], "read what PyTorch needs"))
        wanted = [r for r in required if not NOT_INSTALLED.match(r) and "extra ==" not in r]
        run([*pip, *wanted], "download the packages that PyTorch needs")
        (self.folder / "installed").write_text(self.version + "\n")

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
            cuda = self.cuda()
            if cuda < 13000:
                raise Failure(f"Headers are known for CUDA 13 and later; PyTorch {self.version} was made for CUDA {cuda / 1000:.1f}")
            wanted = [f"nvidia-cuda-{part}=={cuda // 1000}.{cuda % 1000 // 10}.*" for part in ("runtime", "crt")]
            pip = [self.python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-cache-dir", "--no-deps"]
            run([*pip, "--target", folder, *wanted], "download the headers of CUDA")
            (folder / "downloaded").touch()
        return [self.packages() / "torch/include", *folder.glob("nvidia/cu*/include")]

    def cuda(self):
        """The CUDA version that the wheel was made for, as CUDA counts it: 13000 for 13.0."""
        text = (self.packages() / "torch/version.py").read_text()
        major, minor = re.search(r"^cuda\b.*'(\d+)\.(\d+)", text, re.MULTILINE).groups()
        return 1000 * int(major) + 10 * int(minor)

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
