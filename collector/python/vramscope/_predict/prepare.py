"""Tells how a program runs without a GPU in this Python: asked by `vramscope predict` before it starts the program.

    python -c "from vramscope._predict import prepare; prepare.main()"

Prints one line that begins with `MARK`, and then JSON: ``torch`` and ``variables``, or ``error``, a sentence. Does not import
torch.
"""

import importlib.metadata
import importlib.util
import json
import pathlib
import platform
import re
import sys

from .. import _build, _library
from . import standins

MARK = "vramscope:"
"""What precedes the answer: a program that starts Python may print something as well."""

RELEASES = ((2, 4), (2, 15))
"""The oldest and the newest release of PyTorch that this is known to work with."""
MACHINES = ("x86_64", "aarch64")
LARGEST_WRITE = 64 << 10
"""As many bytes as `storages` keeps of a tensor."""


class Impossible(Exception):
    """Nothing can be predicted in this Python. Its text is a sentence that says what to do."""


def main():
    """Prints the answer."""
    try:
        answer = prepared()
    except Impossible as error:
        answer = {"error": str(error)}
    except (OSError, ValueError) as error:
        answer = {"error": f"The libraries in place of NVIDIA's can't be made: {error}."}
    print(f"\n{MARK}{json.dumps(answer)}")


def prepared():
    """Returns the version of torch, and the variables with which a process runs without a GPU."""
    if not sys.platform.startswith("linux") or platform.machine() not in MACHINES:
        raise Impossible(
            f"PyTorch with CUDA exists for Linux on {' and '.join(MACHINES)}; this is {sys.platform} on {platform.machine()}. "
            "Run the command in a container or on another machine; neither needs a GPU."
        )
    packages = _packages()
    version, cuda = _torch(packages)
    folders = sorted({str(packages), *(p for p in sys.path if p.endswith(("site-packages", "dist-packages")))})
    folders = [folder for folder in map(pathlib.Path, folders) if folder.is_dir()]
    made = standins.made(folders, _driver(), _build.cache(), platform.machine())
    return {
        "torch": version,
        "variables": {
            **standins.variables(made),
            "FAKECUDA_VERSION": str(cuda),
            "FAKECUDA_CUDNN": str(_cudnn()),
            "FAKECUDA_LARGEST_WRITE": str(LARGEST_WRITE),
        },
    }


def _packages():
    """Returns the folder that has torch."""
    found = importlib.util.find_spec("torch")
    if found is None or not found.origin:
        raise Impossible(
            f"{sys.executable} has no PyTorch. Install it with: {sys.executable} -m pip install torch; or name a release, such as "
            "--torch 2.11, which is downloaded once into a folder of its own."
        )
    return pathlib.Path(found.origin).resolve().parent.parent


def _torch(packages):
    """Returns the version of torch, and of the CUDA that it was built for as CUDA counts it: 13000 for 13.0."""
    text = (packages / "torch/version.py").read_text(encoding="utf-8")
    version = re.search(r"^__version__\b.*?'([^'\n]+)'", text, re.MULTILINE)
    version = version.group(1) if version else "of an unknown release"
    cuda = cuda_of(packages)
    if cuda is None:
        raise Impossible(
            f"PyTorch {version} here is not built for CUDA, so it can't run what a GPU would. Install one that is, with: "
            f"{sys.executable} -m pip install --force-reinstall torch"
        )
    release = re.match(r"(\d+)\.(\d+)", version)
    release = release and (int(release.group(1)), int(release.group(2)))
    least, most = RELEASES
    if release is None or not least <= release <= most:
        known = " to ".join(".".join(map(str, one)) for one in RELEASES)
        raise Impossible(f"PyTorch {version} is installed; predictions are known to be right for {known}. Install one of these.")
    return version, 1000 * cuda[0] + 10 * cuda[1]


def cuda_of(packages):
    """Returns the two numbers of the CUDA that the torch among packages was built for; None if it is for the CPU alone."""
    text = (packages / "torch/version.py").read_text(encoding="utf-8")
    found = re.search(r"^cuda\b.*'(\d+)\.(\d+)", text, re.MULTILINE)
    return found and (int(found.group(1)), int(found.group(2)))


def _driver():
    places = _library.candidates(name=standins.DRIVER, variable="VRAMSCOPE_DRIVER")
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        looked = ", ".join(map(str, places))
        raise Impossible(
            f"The driver that needs no GPU was not found at {looked}. Install the package's wheel, or in a checkout run "
            "`cargo build --release -p fakecuda`."
        )
    return found


def _cudnn():
    """Returns the version of cuDNN that torch was built with, as cuDNN counts it: 91900 for 9.19.0."""
    wanted = importlib.metadata.requires("torch") or []
    found = next((re.match(r"nvidia-cudnn-cu\d+\s*\(?==\s*(\d+)\.(\d+)\.(\d+)", one) for one in wanted if "cudnn" in one), None)
    if found is None:
        return 90100
    major, minor, patch = map(int, found.groups())
    return (10000 if major >= 9 else 1000) * major + 100 * minor + patch
