"""Returns the tracker: the one that the wheel has for the installed torch, or one that is compiled, once for each torch.

One call of the compiler builds one source file with its headers, for torch's ABI. It needs no ninja, setuptools or CUDA
toolkit: the headers come with torch and its dependencies.
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

from . import _log, _prebuilt, _torch

FOLDER = pathlib.Path(__file__).resolve().parent / "tracker"
SOURCE = FOLDER / "tracker.cpp"
SECONDS = 300
"""The most seconds that the compiler may take. Six are usual."""
RETRY_SECONDS = 600
"""How many seconds after a failure the build is tried again."""


LESS = "from some 1,000 events a second on, not every event is recorded"
"""What is lost without a tracker."""


class BuildError(RuntimeError):
    """The tracker cannot be built; the text says why."""


def cache(environ=os.environ):
    """Returns the folder for what is made once: compiled trackers, and libraries for predictions."""
    if environ.get("VRAMSCOPE_CACHE"):
        return pathlib.Path(environ["VRAMSCOPE_CACHE"])
    base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "vramscope"


def compiler(environ=os.environ):
    """Returns the path of a C++ compiler, or None."""
    for name in (environ.get("CXX"), "c++", "g++", "clang++"):
        found = name and shutil.which(name)
        if found:
            return found
    return None


def _cuda_headers(torch, environ=os.environ):
    """Returns folders with CUDA's headers, of a toolkit or of torch's dependencies, and further folders that they need."""
    site = pathlib.Path(torch.__file__).resolve().parent.parent
    places = [pathlib.Path(environ[name]) / "include" for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    places += sorted(site.glob("nvidia/cu[0-9]*/include"), reverse=True)
    places += [site / "nvidia" / "cuda_runtime" / "include", pathlib.Path("/usr/local/cuda/include")]
    found = [place for place in places if (place / "cuda_runtime_api.h").is_file()]
    # The runtime's headers include some of another package. Triton, a dependency of torch, has them too.
    further = [site / "nvidia" / name / "include" for name in ("cuda_crt", "cuda_nvcc")]
    further.append(site / "triton" / "backends" / "nvidia" / "include")
    return found, [place for place in further if place.is_dir()]


def command(torch, target, compiler_path, standard):
    """Returns the compiler's command line."""
    root = pathlib.Path(torch.__file__).resolve().parent
    found, further = _cuda_headers(torch)
    if not found:
        raise BuildError("CUDA's headers (cuda_runtime_api.h) were not found; set CUDA_HOME to a toolkit's folder")
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
    """Returns a name that identifies a compiled tracker."""
    parts = [torch.__version__, str(torch.version.git_version), str(torch._C._GLIBCXX_USE_CXX11_ABI)]
    parts += [platform.machine()]
    for path in sorted(FOLDER.iterdir()):
        parts += [path.name, path.read_text(encoding="utf-8")]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return f"tracker-{torch.__version__}-{digest}".replace("+", "_")


def _compile(torch, target):
    path = compiler()
    if path is None:
        raise BuildError(f"no C++ compiler, and no prebuilt tracker for torch {torch.__version__}; {LESS}")
    _log.log(f"compiling the tracker for torch {torch.__version__}: about 6 s, once")
    # First the standard that torch is built with; an older compiler may only support the other one.
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
                    # Libraries that are preloaded into the job must not be loaded into the compiler.
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


def build(torch, is_asked_for=False):
    """Returns the tracker's path, compiling it if needed. Other processes wait for the one that compiles.

    After a failure, the next jobs don't try again for a while, unless the user asked for it."""
    import fcntl

    prebuilt = _prebuilt.find(torch)
    if prebuilt is not None:
        return prebuilt
    folder = cache()
    key = _key(torch)
    target, failure = folder / (key + ".so"), folder / (key + ".failed")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.stat(folder).st_uid != os.getuid():
            raise BuildError(f"{folder} belongs to another user; set VRAMSCOPE_CACHE to a folder of your own")
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
                        raise BuildError(f"timed out waiting for another process that compiles the tracker ({lock.name})") from None
                    time.sleep(0.1)
            if target.is_file():
                return target
            is_fresh = failure.is_file() and time.time() - failure.stat().st_mtime < RETRY_SECONDS
            if is_fresh and not is_asked_for:
                raise BuildError(failure.read_text(encoding="utf-8"))
            try:
                _compile(torch, target)
            except BuildError as error:
                failure.write_text(str(error), encoding="utf-8")
                raise
            failure.unlink(missing_ok=True)
    except OSError as error:
        raise BuildError(f"cannot use {folder}: {error}") from None
    return target
