"""Makes libraries that stand in for NVIDIA's, so that an installed PyTorch starts without a GPU.

PyTorch, and packages such as torchvision, ask several libraries for several hundred functions of CUDA, cuBLAS, cuDNN, NCCL and
others when they are loaded. The simulated driver (`libfakecuda.so`) has those whose answer a program goes on with. All others
get a function here that does nothing and returns a number.

Each library has the name of NVIDIA's own. PyTorch's libraries look for those in their own folders first, so a process has to load
the stand-ins before (`variables`).
"""

import hashlib
import os
import pathlib
import re
import shutil
import tempfile

from . import elf

DRIVER = "libfakecuda.so"
"""The simulated driver."""
FUNCTIONS = "libvramscope_standins.so"
"""The library with the functions that do nothing."""
LIBRARY = re.compile(r"lib(cu|nv|nccl).*\.so(\.\d+)+")
"""What NVIDIA's libraries are called."""
FUNCTION = re.compile(r"_*(cu[A-Zadfbps]|nccl|nv)\w+")
"""What their functions are called."""
CUDA = re.compile(r"_*cu(da)?[A-Z]")
"""Functions of CUDA itself."""
NOT_SUPPORTED = 801
"""What functions of CUDA itself return. Those of the other libraries return 0: all is well."""
LOOKED_UP = re.compile(rb"\0((?:cu[A-Z]|nvml[A-Z])\w+)(?=\0)")
"""Functions that PyTorch looks up by name: text in its library, between two zero bytes."""
ALWAYS = {"libcuda.so.1", "libnvidia-ml.so.1"}
"""What PyTorch loads by name."""
FUNCTION_USER = re.compile(r"torch|c10|_C\b|cuda")
"""Names of libraries whose functions count although they ask for none of NVIDIA's libraries by name: another one loads it."""
LEFT_OUT = {"nvidia", "triton"}
"""Packages that are not looked into: NVIDIA's own libraries, and a compiler."""


def made(folders, driver, cache, machine):
    """Returns the folder with the stand-ins for the packages in `folders`, and makes it in the folder `cache` if it is not there.
    `driver` is the path of the simulated driver. Raises `OSError` and `ValueError`."""
    if set(str(cache)) & set(":;"):
        raise ValueError(f"{cache}: the dynamic linker takes colons and semicolons for separators. Set VRAMSCOPE_CACHE to another folder")
    libraries = _libraries(folders)
    key = hashlib.sha256(driver.read_bytes())
    for path in [pathlib.Path(__file__), pathlib.Path(elf.__file__)]:
        key.update(path.read_bytes())
    for path in libraries:
        about = path.stat()
        key.update(f"{path}\0{about.st_size}\0{about.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    folder = pathlib.Path(cache) / f"standins-{key.hexdigest()[:16]}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = pathlib.Path(tempfile.mkdtemp(prefix="standins-", dir=folder.parent))
        try:
            _make(part, libraries, driver, machine)
            part.rename(folder)
        except OSError:
            # Another process may have made it.
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


def variables(folder, environ=os.environ):
    """Returns the environment variables with which a process, and those that it starts, load the stand-ins in `folder`."""
    names = sorted(path.name for path in folder.iterdir() if LIBRARY.fullmatch(path.name))
    # By name: the dynamic linker takes spaces and colons for separators.
    preload, path = environ.get("LD_PRELOAD"), environ.get("LD_LIBRARY_PATH")
    return {
        "LD_PRELOAD": ":".join(names + ([preload] if preload else [])),
        "LD_LIBRARY_PATH": os.pathsep.join([str(folder)] + ([path] if path else [])),
    }


def _libraries(folders):
    """Returns the libraries of packages that may ask for NVIDIA's, in a stable order."""
    found = []
    for package in sorted(package for folder in folders for package in folder.iterdir()):
        if package.name in LEFT_OUT or package.name.endswith(".dist-info"):
            continue
        of = [package] if package.is_file() else package.rglob("*.so*")
        found += sorted(path for path in of if ".so" in path.suffixes and path.is_file() and not LIBRARY.fullmatch(path.name))
    return found


def _make(folder, libraries, driver, machine):
    functions, names = wanted(libraries, driver)
    shutil.copyfile(driver, folder / DRIVER)
    elf.write(folder / FUNCTIONS, machine, FUNCTIONS, [DRIVER], [(name, _result(name)) for name in functions])
    for name in names:
        elf.write(folder / name, machine, name, [FUNCTIONS, DRIVER])


def wanted(libraries, driver):
    """Returns the functions to make and the names of NVIDIA's libraries that these libraries ask for."""
    asking, defined, looked_up = [], set(elf.read(driver).defined), set()
    for path in libraries:
        try:
            library = elf.read(path)
        except ValueError:  # No library, or one of another machine.
            continue
        defined |= library.defined
        if any(LIBRARY.fullmatch(name) for name in library.needed) or FUNCTION_USER.search(path.name):
            asking.append(library)
        if path.name == "libc10_cuda.so":
            looked_up = {name.decode() for name in LOOKED_UP.findall(path.read_bytes())}
    functions = {name for library in asking for name in library.undefined if FUNCTION.fullmatch(name)} | looked_up
    names = ALWAYS | {name for library in asking for name in library.needed if LIBRARY.fullmatch(name)}
    return sorted(functions - defined), sorted(names)


def _result(name):
    return NOT_SUPPORTED if CUDA.match(name) and not name.startswith("cuFile") else 0
