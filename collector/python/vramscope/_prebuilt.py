"""Finds the tracker that the wheel has for the installed torch, so that no compiler is needed.

A tracker that does not fit would crash the job. So one is used only for the very build that it was compiled for: an official
release with CUDA, of the same commit, the same C++ ABI and the same machine, whose headers on this machine are those that
decide the layout of what the tracker reads.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import pathlib
import platform
import re

_PACKAGE = pathlib.Path(__file__).resolve().parent
FOLDER = _PACKAGE / "prebuilt"
SOURCES = _PACKAGE / "tracker"
INDEX = "index.json"
HEADERS = (
    "c10/core/Allocator.h",
    "c10/core/CachingDeviceAllocator.h",
    "c10/core/Device.h",
    "c10/cuda/CUDACachingAllocator.h",
    "c10/macros/cmake_macros.h",
    "c10/util/ApproximateClock.h",
    "torch/csrc/autograd/function.h",
    "torch/csrc/profiler/combined_traceback.h",
)
"""The headers with the types that the tracker shares with PyTorch. A release may lack some."""
OFFICIAL = re.compile(r"(\d+\.\d+\.\d+)(\+cu\d+)?")


def sources(folder=None):
    """Returns a digest of the tracker's sources."""
    digest = hashlib.sha256()
    for path in sorted((folder or SOURCES).iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def headers(include):
    """Returns a digest of the headers in torch's folder of them."""
    digest = hashlib.sha256()
    for name in HEADERS:
        path = include / name
        digest.update(path.read_bytes() if path.is_file() else b"none")
        digest.update(b"\0")
    return digest.hexdigest()


def _fits(torch, index):
    """Returns the name of the tracker that was compiled for the installed torch, or None."""
    version = OFFICIAL.fullmatch(torch.__version__)
    build = index["builds"].get(str(torch.version.git_version))
    if version is None or build is None or torch.version.cuda is None:
        return None
    include = pathlib.Path(torch.__file__).resolve().parent / "include"
    is_same = (
        build["version"] == version[1]
        and build["abi"] == int(torch._C._GLIBCXX_USE_CXX11_ABI)
        and index["machine"] == platform.machine()
        and index["sources"] == sources()
        and build["headers"] == headers(include)
    )
    return build["file"] if is_same else None


def find(torch):
    """Returns the path of the tracker for the installed torch, or None if there is none that surely fits."""
    try:
        index = json.loads((FOLDER / INDEX).read_text(encoding="utf-8"))
        name = _fits(torch, index)
        if name is None:
            return None
        # It can't be loaded where the C++ library is older than the one of glibc 2.28's time.
        ctypes.CDLL(str(FOLDER / name))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return FOLDER / name
