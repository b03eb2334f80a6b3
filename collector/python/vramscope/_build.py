"""The tracker, compiled: once for each torch, kept for all later jobs.

One source with its headers and one call of the compiler, with the folders and the ABI that torch was built with; neither
ninja, setuptools nor a CUDA toolkit is needed: the headers come with torch and with what it depends on.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import platform
import shutil
import subprocess
import tempfile
import time

from . import _torch

FOLDER = pathlib.Path(__file__).resolve().parent / "tracker"
SOURCE = FOLDER / "tracker.cpp"
SECONDS = 300
"""How long a compiler may take. Ten is usual."""
RETRY_SECONDS = 600
"""How long a failure is believed before it is tried again."""


class BuildError(RuntimeError):
    """There is no tracker, and why."""


def cache(environ=os.environ):
    """The folder in which compiled trackers are kept."""
    if environ.get("VRAMSCOPE_CACHE"):
        return pathlib.Path(environ["VRAMSCOPE_CACHE"])
    base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "vramscope"


def compiler(environ=os.environ):
    """The C++ compiler, or None."""
    for name in (environ.get("CXX"), "c++", "g++", "clang++"):
        found = name and shutil.which(name)
        if found:
            return found
    return None


def _cuda_headers(torch, environ=os.environ):
    """Folders with CUDA's headers: a toolkit's, or those of the packages that torch depends on."""
    site = pathlib.Path(torch.__file__).resolve().parent.parent
    places = [pathlib.Path(environ[name]) / "include" for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    places += sorted(site.glob("nvidia/cu[0-9]*/include"), reverse=True)
    places += [site / "nvidia" / "cuda_runtime" / "include", pathlib.Path("/usr/local/cuda/include")]
    found = [place for place in places if (place / "cuda_runtime_api.h").is_file()]
    # From CUDA 13 on the runtime's headers need some of a further package; triton, which torch brings along, has them.
    further = [site / "nvidia" / "cuda_crt" / "include", site / "triton" / "backends" / "nvidia" / "include"]
    return found, [place for place in further if place.is_dir()]


def command(torch, target, compiler_path, standard):
    """The compiler's command line."""
    root = pathlib.Path(torch.__file__).resolve().parent
    found, further = _cuda_headers(torch)
    if not found:
        raise BuildError("no headers of CUDA (cuda_runtime_api.h) were found; set CUDA_HOME to a toolkit's folder")
    major, minor = _torch.version(torch)
    line = [compiler_path, "-O2", "-fPIC", "-shared", "-std=" + standard, "-w"]
    line += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}", f"-DVRAMSCOPE_TORCH={major * 100 + minor}"]
    line += ["-isystem", str(root / "include")]
    for place in found[:1]:
        line += ["-isystem", str(place)]
    for place in further:
        line += ["-idirafter", str(place)]
    line += [str(SOURCE), "-L" + str(root / "lib"), "-lc10", "-lc10_cuda", "-ltorch_cpu", "-ldl", "-lpthread"]
    return line + ["-o", str(target)]


def _key(torch):
    """What makes one tracker differ from another."""
    parts = [torch.__version__, str(torch.version.git_version), str(torch._C._GLIBCXX_USE_CXX11_ABI)]
    parts += [platform.machine()]
    for path in sorted(FOLDER.iterdir()):
        parts += [path.name, path.read_text(encoding="utf-8")]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return f"tracker-{torch.__version__}-{digest}".replace("+", "_")


def _compile(torch, target):
    path = compiler()
    if path is None:
        raise BuildError("no C++ compiler")
    # What torch itself is built with; an older compiler may have but the other one.
    standards = ["c++20", "c++17"] if _torch.version(torch) >= (2, 12) else ["c++17", "c++20"]
    errors = []
    for standard in standards:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as folder:
            made = pathlib.Path(folder) / "tracker.so"
            try:
                done = subprocess.run(
                    command(torch, made, path, standard),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=SECONDS,
                    check=False,
                    # Libraries that are loaded into the job are not for the compiler.
                    env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise BuildError(f"{path}: {error}") from None
            if done.returncode == 0:
                os.replace(made, target)
                return
            text = done.stderr.decode(errors="replace")
            errors.append(next((line for line in text.splitlines() if "error" in line), text[-300:]).strip())
    raise BuildError(f"{path} failed: {errors[0]}")


def build(torch):
    """The compiled tracker's path. Processes that want it at once wait for the one that compiles."""
    import fcntl

    folder = cache()
    key = _key(torch)
    target, failure = folder / (key + ".so"), folder / (key + ".failed")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.stat(folder).st_uid != os.getuid():
            raise BuildError(f"{folder} belongs to someone else; set VRAMSCOPE_CACHE to a folder of your own")
        if target.is_file():
            return target
        with open(folder / (key + ".lock"), "w", encoding="utf-8") as lock:
            until = time.monotonic() + 2 * SECONDS
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise BuildError(f"another process compiles for too long ({lock.name})") from None
                    time.sleep(0.1)
            if target.is_file():
                return target
            if failure.is_file() and time.time() - failure.stat().st_mtime < RETRY_SECONDS:
                raise BuildError(failure.read_text(encoding="utf-8"))
            try:
                _compile(torch, target)
            except BuildError as error:
                failure.write_text(str(error), encoding="utf-8")
                raise
            failure.unlink(missing_ok=True)
    except OSError as error:
        raise BuildError(f"{folder} can't be used: {error}") from None
    return target
