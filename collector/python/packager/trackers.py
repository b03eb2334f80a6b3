"""Compiles the tracker for each release of PyTorch, so that jobs need no compiler.

The compiler is g++, as for PyTorch's own wheels: its C++ library is theirs. The linker is zig's, which binds to the symbols
of an old glibc. Empty libraries with the names of PyTorch's stand in for them; that these export what the tracker needs is
checked against the release.
"""

import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from . import native, project, releases

sys.path.insert(0, str(project.HERE))
from vramscope import _build, _prebuilt  # noqa: E402

GLIBCXX = (3, 4, 25)
"""The newest version of libstdc++'s symbols that a tracker may need: that of GCC 8, which glibc 2.28 is from the time of."""
COMPILERS = {"x86_64": "x86_64-linux-gnu-g++", "aarch64": "aarch64-linux-gnu-g++"}

_COMPAT = """
// Newer compilers call two functions and read a variable that an old machine doesn't have.
namespace std {
[[noreturn]] void __throw_bad_alloc();
[[noreturn]] __attribute__((visibility("hidden"))) void __throw_bad_array_new_length() { __throw_bad_alloc(); }
}
extern "C" { __attribute__((visibility("hidden"))) extern char __libc_single_threaded; char __libc_single_threaded = 0; }
"""


class TrackerFailed(RuntimeError):
    """A tracker can't be compiled, or needs what a release or an old machine doesn't have."""


def _run(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise TrackerFailed(f"{command[0]} failed:\n{done.stderr[-3000:]}")
    return done.stdout


def _compiler(machine):
    for name in (COMPILERS[machine], "g++"):
        found = shutil.which(name)
        if found and _run([found, "-dumpmachine"]).startswith(machine):
            return found
    raise TrackerFailed(f"{COMPILERS[machine]} is missing. Debian: apt-get install -y g++-{machine.replace('_', '-')}-linux-gnu")


def _object(compiler, release, abi, cuda, folder):
    """Compiles the tracker against the headers in `folder`. Returns the object file's path."""
    # With relative paths, those in messages are the same on every machine.
    includes = ["-isystem", "torch/include"]
    for place in cuda:
        includes += ["-isystem", place]
    major, minor = releases.minor(release)
    standard = "c++20" if (major, minor) >= (2, 12) else "c++17"
    line = [compiler, "-O2", "-fPIC", "-std=" + standard, "-w", f"-ffile-prefix-map={project.HERE}=.", f"-ffile-prefix-map={cuda[0]}=cuda"]
    line += [f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-DVRAMSCOPE_TORCH={major * 100 + minor}", *includes]
    _run([*line, "-c", _build.SOURCE, "-o", "tracker.o"], cwd=folder)
    return folder / "tracker.o"


def _link(compiler, machine, made, folder):
    """Links an object file. Returns the library's path."""
    (folder / "compat.cpp").write_text(_COMPAT)
    _run([compiler, "-O2", "-fPIC", "-w", "-c", "compat.cpp", "-o", "compat.o"], cwd=folder)
    stubs = []
    for name in ("c10", "c10_cuda", "torch_cpu"):
        stubs.append(f"lib{name}.so")
        _run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,lib{name}.so", "-x", "c", "/dev/null", "-o", stubs[-1]], cwd=folder)
    cxx = _run([compiler, "-print-file-name=libstdc++.so.6"]).strip()
    target = f"{machine}-linux-gnu.{native.GLIBC}"
    line = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-shared", "-s", "-Wl,--no-as-needed"]
    _run([*line, "-o", "tracker.so", made, "compat.o", *stubs, cxx], cwd=folder)
    return folder / "tracker.so"


def _check(library, exports):
    """Raises `TrackerFailed` if a library needs symbols that a release, or an old machine, doesn't have."""
    for kind, most in (("GLIBC", tuple(map(int, native.GLIBC.split(".")))), ("GLIBCXX", GLIBCXX)):
        for version in re.findall(rf"\b{kind}_([\d.]+)", _run(["readelf", "-VW", library])):
            if tuple(map(int, version.split("."))) > most:
                raise TrackerFailed(f"{library.name} needs {kind}_{version}")
    needs = {line.split()[-1] for line in _run(["nm", "-D", "--undefined-only", library]).splitlines()}
    of_torch = {name for name in needs if "@" not in name and re.match(r"_Z(T[ISV])?N?K?(2at|3c10|5torch)", name)}
    missing = of_torch - exports
    if missing or not of_torch:
        raise TrackerFailed(f"the release does not export {missing or 'anything that the tracker needs'}")


def _compile(release, machine, cache):
    """Returns the bytes of a release's tracker and what it fits, compiled unless that was done before."""
    archive = releases.headers(release, machine, cache)
    key = hashlib.sha256(archive.read_bytes() + _prebuilt.sources().encode() + pathlib.Path(__file__).read_bytes())
    done, fits = (cache / f"tracker-{release}-{machine}-{key.hexdigest()[:16]}.{kind}" for kind in ("so", "json"))
    if not (done.is_file() and fits.is_file()):
        print(f"compiling the tracker for torch {release} on {machine}", flush=True)
        compiler, cuda = _compiler(machine), releases.cuda(cache)
        with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(archive) as kept:
            folder = pathlib.Path(name)
            kept.extractall(folder)
            facts = json.loads((folder / "facts.json").read_text())
            made = _link(compiler, machine, _object(compiler, release, facts["abi"], cuda, folder), folder)
            _check(made, set(facts["exports"]))
            build = {"version": release, "abi": facts["abi"], "headers": _prebuilt.headers(folder / "torch" / "include")}
            for old in cache.glob(f"tracker-{release}-{machine}-*"):
                old.unlink()
            done.write_bytes(made.read_bytes())
            fits.write_text(json.dumps({facts["git_version"]: build}))
    return done.read_bytes(), json.loads(fits.read_text())


def build(machine, cache):
    """Compiles the trackers of a machine. Returns a folder of them with their index, for a wheel."""
    cache.mkdir(parents=True, exist_ok=True)
    files, builds = {}, {}
    for release in releases.RELEASES:
        if machine == "aarch64" and releases.minor(release) < releases.FIRST_ON_ARM:
            continue
        data, fits = _compile(release, machine, cache)
        # Patch releases mostly have the same one.
        file = files.setdefault(data, "tracker-torch{}.{}.so".format(*releases.minor(release)))
        builds.update((git, {**build, "file": file}) for git, build in fits.items())
    folder = cache / machine
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if len(set(files.values())) != len(files):
        raise TrackerFailed("two releases of one minor version need different trackers, which would have one name")
    for data, name in files.items():
        (folder / name).write_bytes(data)
    index = {"machine": machine, "sources": _prebuilt.sources(), "builds": builds}
    (folder / _prebuilt.INDEX).write_text(json.dumps(index, indent=1) + "\n")
    return folder
