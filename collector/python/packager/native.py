"""The libraries and the program: built by cargo, for this machine or, with zig, for another."""

import os
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile

from . import project

GLIBC = "2.28"
"""The oldest glibc that the Linux wheels run on: RHEL 8, Debian 10, Ubuntu 20.04."""


class Target:
    """A machine that a wheel is for. `triple` is Rust's name for it; None is this machine, without zig."""

    def __init__(self, triple, platform):
        self.triple, self.platform = triple, platform
        self.tag = f"py3-none-{platform}"
        self.library, self.driver = "libvramscope_pluggable.so", "libfakecuda.so"
        self.program = "vramscope.exe" if platform.startswith("win") else "vramscope"
        self.is_linux = "linux" in platform


TARGETS = {
    target.triple: target
    for target in (
        Target("x86_64-unknown-linux-gnu", f"manylinux_{GLIBC.replace('.', '_')}_x86_64"),
        Target("aarch64-unknown-linux-gnu", f"manylinux_{GLIBC.replace('.', '_')}_aarch64"),
        Target("aarch64-apple-darwin", "macosx_11_0_arm64"),
        Target("x86_64-pc-windows-gnu", "win_amd64"),
    )
}
"""The machines that wheels are made for."""


def host():
    """Returns this machine. Its tag makes no promise about other machines."""
    return Target(None, sysconfig.get_platform().replace("-", "_").replace(".", "_"))


def build_library(target):
    """Builds the library that PyTorch loads. Returns its path; None where PyTorch has no CUDA for it to watch."""
    return _cargo(target, "wheel-library", ["--package", "pluggable"], target.library) if target.is_linux else None


def build_driver(target):
    """Builds the driver that needs no GPU. Returns its path; None where PyTorch has no CUDA."""
    return _cargo(target, "wheel-library", ["--package", "fakecuda"], target.driver) if target.is_linux else None


def build_program(target):
    """Builds the program with its page. Returns its path."""
    # Apart from the library: in one call, cargo would give the library the program's features.
    # For this machine, the page of a build of the project will do.
    page = ["--features", "published-page"] if target.triple else []
    return _cargo(target, "wheel", ["--package", "vramscope", *page, "--bin", "vramscope"], target.program)


def _cargo(target, profile, package, file):
    cargo = shutil.which("cargo")
    if cargo is None:
        raise RuntimeError("cargo is missing. The native part is written in Rust: install it from https://rustup.rs")
    # For this machine, what a build of the project has made already is used.
    profile = profile if target.triple else "release"
    command = [cargo, "zigbuild" if target.triple else "build", "--profile", profile, *package]
    if target.triple:
        command += ["--target", target.triple + (f".{GLIBC}" if target.is_linux else "")]
    subprocess.run(command, cwd=project.ROOT, check=True)
    folder = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or project.ROOT / "target") / (target.triple or "")
    return folder / profile / file


def stripped(path):
    """Returns a file's bytes, without debugging symbols if there are any and `strip` is installed and knows its format."""
    strip = shutil.which("strip")
    if strip is None:
        return path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / path.name
        done = subprocess.run([strip, "--strip-unneeded", "-o", str(made), str(path)], capture_output=True, check=False)
        return made.read_bytes() if done.returncode == 0 else path.read_bytes()
