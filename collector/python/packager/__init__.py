"""Builds the package: wheels, for this machine or another, and the source distribution.

A wheel holds things that no backend puts together by itself: the Python package, two libraries that PyTorch loads and a
program for the PATH, built by cargo from a workspace two folders up. So this is a backend of its own. It needs
the standard library and cargo, nothing else, and installing needs only the wheel.

The functions below are those of PEP 517 and 660. ``python -m packager --help`` has the wheels for other machines.

Variables: ``VRAMSCOPE_LIBRARY``, ``VRAMSCOPE_DRIVER`` and ``VRAMSCOPE_PROGRAM`` name files that are already built, and ``VRAMSCOPE_TRACKERS`` a
folder of compiled trackers to include.
"""

import os
import pathlib

from . import archive, native, project, source

__all__ = ["build_editable", "build_sdist", "build_wheel", "prepare_metadata_for_build_wheel"]


def write_wheel(folder, target, libraries, program, trackers=None):
    """Writes the wheel of a target from files that are built, without those that are None. `libraries` has their paths by name.
    Returns its path."""
    about = project.read()
    path = pathlib.Path(folder) / f"{about.name}-{about.version}-{target.tag}.whl"
    wheel = archive.Wheel(path)
    for file in sorted((project.HERE / about.name).rglob("*")):
        if file.suffix in (".py", ".cpp", ".h"):
            wheel.add(file.relative_to(project.HERE).as_posix(), file.read_bytes())
    for name, library in libraries.items():
        if library is not None:
            wheel.add(f"{about.name}/{name}", native.stripped(library))
    for file in sorted(trackers.iterdir()) if trackers is not None else []:
        wheel.add(f"{about.name}/prebuilt/{file.name}", file.read_bytes())
    wheel.add(f"{about.name}.pth", (project.HERE / f"{about.name}.pth").read_bytes())
    if program is not None:
        wheel.add(f"{about.name}-{about.version}.data/scripts/{target.program}", native.stripped(program), is_program=True)
    about.add_to(wheel, target.tag)
    return path


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    target = native.host()
    libraries = {
        target.library: _given("VRAMSCOPE_LIBRARY") or native.build_library(target),
        target.driver: _given("VRAMSCOPE_DRIVER") or native.build_driver(target),
    }
    program = _given("VRAMSCOPE_PROGRAM") or native.build_program(target)
    return write_wheel(wheel_directory, target, libraries, program, _given("VRAMSCOPE_TRACKERS")).name


def _given(variable):
    path = os.environ.get(variable)
    return pathlib.Path(path).resolve() if path else None


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds a wheel that refers to the sources. Library and program are those in cargo's folder."""
    about, tag = project.read(), native.host().tag
    path = pathlib.Path(wheel_directory) / f"{about.name}-{about.version}-{tag}.whl"
    wheel = archive.Wheel(path)
    wheel.add(f"_{about.name}_sources.pth", f"{project.HERE}\n")
    wheel.add(f"{about.name}.pth", (project.HERE / f"{about.name}.pth").read_bytes())
    about.add_to(wheel, tag)
    return path.name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Writes the metadata alone, which needs no cargo."""
    return project.read().write_to(metadata_directory, native.host().tag)


def build_sdist(sdist_directory, config_settings=None):
    return source.write(sdist_directory).name
