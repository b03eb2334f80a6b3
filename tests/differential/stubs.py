"""Stands in for NVIDIA's libraries that PyTorch loads, so that none of them has to be downloaded.

PyTorch asks its libraries for several hundred functions of CUDA, cuBLAS, cuDNN, NCCL and others when it is loaded. The
fake CUDA library (`tests/fakecuda`) has those that its allocator uses. For all others `build` makes one library of
functions that do nothing, with the fake library behind it, and gives it the name of each library that is missing.
"""

import re
import subprocess

import elf

# What NVIDIA's libraries are called, and their functions.
LIBRARY = re.compile(r"lib(cu|nv|nccl).*\.so\.\d+")
FUNCTION = re.compile(r"_*(cu[A-Zadfbps]|nccl|nv)\w+")
# Functions of CUDA itself that do nothing say that they are not supported; those of the other libraries say that all is well.
CUDA = re.compile(r"_*cu(da)?[A-Z]")
NOT_SUPPORTED = 801
# PyTorch looks these up by name: text in its library, between two zero bytes.
LOOKED_UP = re.compile(rb"\0((?:cu[A-Z]|nvml[A-Z])\w+)(?=\0)")
# And these whatever the release; the driver's library has them under either name.
ALWAYS = {"libcuda.so.1", "libnvidia-ml.so.1"}


def names(torch, fake):
    """The functions to make and the libraries that are missing, for PyTorch's folder and the fake library."""
    wheel = [elf.read(path) for path in sorted(torch.glob("lib/*.so*")) + sorted(torch.glob("_C*.so"))]
    present = {path.name for path in torch.glob("lib/*.so*")}
    functions = {f for library in wheel for f in library.undefined if FUNCTION.fullmatch(f)}
    functions |= {f.decode() for f in LOOKED_UP.findall((torch / "lib/libc10_cuda.so").read_bytes())}
    functions -= elf.read(fake).defined.union(*(library.defined for library in wheel))
    missing = ALWAYS | {n for library in wheel for n in library.needed if LIBRARY.fullmatch(n) and n not in present}
    return sorted(functions), sorted(missing)


def source(functions):
    """The library as Rust."""
    lines = ["#![allow(non_snake_case)]"]
    for function in functions:
        result = NOT_SUPPORTED if CUDA.match(function) and not function.startswith("cuFile") else 0
        lines.append(f'#[unsafe(no_mangle)] pub extern "C" fn {function}() -> i32 {{ {result} }}')
    return "\n".join(lines) + "\n"


def build(torch, fake):
    """Builds the library beside `fake` and links every missing library's name to it. Raises `CalledProcessError`."""
    functions, missing = names(torch, fake)
    folder = fake.parent
    text, library = folder / "stubs.rs", folder / "libstubs.so"
    text.write_text(source(functions))
    command = ["rustc", "--edition", "2024", "--crate-type", "cdylib", "--crate-name", "stubs", "-o", library, text]
    # The fake library is needed by name only: nothing in the source mentions it.
    for argument in (f"-L{folder}", "-Wl,--no-as-needed", "-lfakecuda", "-Wl,-rpath,$ORIGIN"):
        command += ["-C", f"link-arg={argument}"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    for name in missing:
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(library.name)
