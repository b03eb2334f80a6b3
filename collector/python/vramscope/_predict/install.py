"""Makes an environment with an official PyTorch release for predictions, for machines that have none.

    python -m vramscope._predict.install RELEASE

It is a virtual environment in Vramscope's cache with the CUDA wheel (1.5 to 2.5 GB unpacked, downloaded once), without NVIDIA's
libraries, whose place others take, and without the compiler of kernels. Beside its own packages it has those of the Python that
made it. Prints where its Python is, after `MARK`.
"""

import importlib.metadata
import json
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

from .. import _build, _prebuilt
from .prepare import MARK, cuda_of

NOT_INSTALLED = re.compile(r"(nvidia-|cuda-|triton|pytorch-triton)")
"""NVIDIA's libraries and the compiler of kernels, of which none run."""
SIZE = "downloads 0.5 to 0.9 GB, takes 1.5 to 2.5 GB"


class Failure(SystemExit):
    """Ends the program with one line: the environment can't be made."""


def version(release):
    """Returns the version that PyPI has a release under: the first of a minor release."""
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?", release):
        raise Failure(f"{release!r} is not a release of PyTorch; give one as 2.11")
    return release if release.count(".") == 2 else release + ".0"


def packages(folder, release, is_whole=True):
    """Returns the folder of packages of the environment in `folder`; None as long as the release is not installed, with `is_whole`
    as a whole."""
    found = list((folder / "venv").glob(f"lib/python3*/site-packages/torch-{version(release)}*.dist-info"))
    return found[0].parent if found and (not is_whole or (folder / "installed").exists()) else None


def install(folder, release, say, beside=()):
    """Makes the environment in `folder`. `say` is called with a line for people; `beside` are folders of packages that it has too."""
    wanted, python = version(release), python_of(folder)
    say(f"Installing PyTorch {wanted} in {folder} ({SIZE})")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "venv", ignore_errors=True)
    run([sys.executable, "-m", "venv", folder / "venv"], "make a virtual environment (Debian: apt-get install python3-venv)")
    # The cache would keep a second copy of the wheel.
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet", "--no-cache-dir"]
    run([*pip, "--no-deps", f"torch=={wanted}"], f"download PyTorch {wanted}")
    names = "import importlib.metadata as m, json; print(json.dumps(m.requires('torch') or []))"
    required = json.loads(run([python, "-c", names], "read what PyTorch needs"))
    required = [one for one in required if not NOT_INSTALLED.match(one) and "extra ==" not in one]
    run([*pip, *required], "download the packages that PyTorch needs")
    if beside and not _prebuilt.FOLDER.is_dir():
        # A tracker is compiled with them.
        run([*pip, "--no-deps", *headers(folder, release)], "download the headers of CUDA")
    if beside:
        # As a site, so that files that end in .pth are read there as well. What the environment has itself comes first.
        lines = "".join(f"import site; site.addsitedir({str(one)!r})\n" for one in beside)
        (next((folder / "venv").glob("lib/python3*/site-packages")) / "_vramscope_beside.pth").write_text(lines)
    (folder / "installed").write_text(wanted + "\n")


def headers(folder, release):
    """Returns the packages with the C headers that PyTorch's own need."""
    major, minor = cuda_of(packages(folder, release, False))
    if major < 13:
        return [f"nvidia-cuda-{part}-cu{major}=={major}.{minor}.*" for part in ("runtime", "nvcc")]
    return [f"nvidia-cuda-{part}=={major}.{minor}.*" for part in ("runtime", "crt")]


def python_of(folder):
    """Returns the Python of the environment in `folder`."""
    return folder / "venv/bin/python"


def run(command, what, **options):
    """Runs a command, and returns what it prints. Raises `Failure` with what could not be done and the command's own reason."""
    try:
        return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout
    except FileNotFoundError:
        raise Failure(f"Cannot {what}: {command[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        raise Failure(f"Cannot {what}: {reason(error)}") from None


def reason(error):
    """Returns the line of a failed command's output that says most: the last one with an error in it, or the last one."""
    lines = [line.strip() for line in (error.stderr or error.stdout or "").splitlines() if line.strip()]
    if any("connection broken" in line for line in lines):
        return "the package index cannot be reached"
    errors = [line for line in lines if re.match(r"(error|ERROR|OSError|ImportError|RuntimeError)", line)]
    return (errors or lines or [f"it ended with exit code {error.returncode}"])[-1]


def main():
    try:
        release = sys.argv[1]
        # Packages for one Python can't be used by another.
        folder = _build.cache() / f"torch-{version(release)}-{sys.implementation.cache_tag}"
        if packages(folder, release) is None:
            beside = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *_folders_of_this_package()}
            install(folder, release, lambda line: print(line, file=sys.stderr, flush=True), sorted(beside))
        answer = {"python": str(python_of(folder))}
    except (Failure, OSError) as error:
        answer = {"error": f"{error}."}
    print(f"\n{MARK}{json.dumps(answer)}")


def _folders_of_this_package():
    """Returns the folder that has this package, which is not among the installed ones in a checkout."""
    try:
        importlib.metadata.version("vramscope")
        return []
    except importlib.metadata.PackageNotFoundError:
        return [str(pathlib.Path(__file__).resolve().parents[2])]


if __name__ == "__main__":
    main()
