"""What a tracker is compiled against: the headers of each release of PyTorch, kept as one small archive a release.

The releases are those of PyPI with CUDA. pip downloads each wheel once; kept are the headers of C++, the version, and the
names that the libraries export.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

RELEASES = (
    *("2.4.0", "2.4.1", "2.5.0", "2.5.1", "2.6.0", "2.7.0", "2.7.1", "2.8.0", "2.9.0", "2.9.1", "2.10.0", "2.11.0"),
    *("2.12.0", "2.12.1", "2.13.0", "2.14.0", "2.14.1", "2.15.0"),
)
"""The releases of torch that have prebuilt trackers."""
FIRST_ON_ARM = (2, 11)
"""The first release whose wheels for aarch64 have CUDA."""
CUDA = ("nvidia-cuda-runtime==13.0.96", "nvidia-cuda-crt==13.0.88")
"""The packages with CUDA's headers. A tracker is the same, bit by bit, with those of 12.1, of 12.8 and of 13.0."""
PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux1")

_HEADERS = ("torch/include/c10/", "torch/include/torch/", "torch/include/ATen/", "torch/include/caffe2/")
_LIBRARIES = ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so")


def minor(release):
    """Returns (2, 15) of "2.15.0"."""
    major, minor = release.split(".")[:2]
    return int(major), int(minor)


def _download(requirement, machine, folder):
    """Downloads a wheel. Returns its path."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-deps", "--dest", str(folder)]
    command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.12", requirement]
    for platform in PLATFORMS:
        command += ["--platform", f"{platform}_{machine}"]
    subprocess.run(command, check=True)
    (path,) = pathlib.Path(folder).glob("*.whl")
    return path


def _exports(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[-1].partition("@")[0] for line in lines.splitlines()})


def _condense(wheel, to):
    """Writes what is kept of a release's wheel."""
    with zipfile.ZipFile(wheel) as whole, tempfile.TemporaryDirectory() as folder:
        exports = []
        for library in _LIBRARIES:
            exports += _exports(whole.extract(f"torch/lib/{library}", folder))
        version = whole.read("torch/version.py").decode()
        facts = {
            name: re.search(rf"^{name}(?:: [^=]*)? = '([^']*)'", version, re.MULTILINE)[1]
            for name in ("__version__", "git_version")
        }
        # Its message is a string, in the old or the new form.
        facts["abi"] = int("_ZN3c105ErrorC1ENS_14SourceLocationESs" not in exports)
        facts["exports"] = exports
        with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as kept:
            for name in whole.namelist():
                if name.startswith(_HEADERS):
                    kept.writestr(name, whole.read(name))
            kept.writestr("facts.json", json.dumps(facts))


def headers(release, machine, cache):
    """Returns the archive of a release, with ``facts.json`` in it. The first time it downloads up to 900 MB."""
    kept = cache / f"torch-{release}-{machine}.zip"
    if not kept.is_file():
        print(f"downloading torch {release} for {machine}: its headers are kept", flush=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            part = pathlib.Path(folder) / "part"
            _condense(_download(f"torch=={release}", machine, folder), part)
            part.rename(kept)
    return kept


def cuda(cache):
    """Returns the folders of CUDA's headers."""
    folder = cache / "cuda"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=cache) as part:
            for package in CUDA:
                with tempfile.TemporaryDirectory(dir=cache) as download:
                    with zipfile.ZipFile(_download(package, "x86_64", download)) as wheel:
                        wheel.extractall(part)
            shutil.copytree(part, folder)
    return [folder / "nvidia" / "cu13" / "include"]
