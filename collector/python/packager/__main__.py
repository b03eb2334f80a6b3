"""``python -m packager``: the wheels for all machines that can be built for here, the trackers alone, or the sources."""

import argparse
import pathlib
import subprocess
import sys

from . import build_sdist, native, project, trackers, write_wheel

CACHE = project.ROOT / "target" / "trackers"
MACHINES = {"x86_64-unknown-linux-gnu": "x86_64", "aarch64-unknown-linux-gnu": "aarch64"}


def _options():
    parser = argparse.ArgumentParser(prog="python -m packager", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    wheels = commands.add_parser("wheels", help="build wheels with cargo and zig (pip install cargo-zigbuild ziglang)")
    wheels.add_argument("targets", nargs="*", metavar="TARGET", help=f"one of {', '.join(native.TARGETS)}; without one, all")
    wheels.add_argument("--out", default=project.ROOT / "dist", type=pathlib.Path, help="the folder for them (default: dist)")
    compiled = commands.add_parser("trackers", help="compile the trackers for each release of PyTorch")
    compiled.add_argument("machines", nargs="*", default=list(MACHINES.values()), metavar="MACHINE", help="x86_64 or aarch64")
    source = commands.add_parser("sdist", help="write the source distribution")
    source.add_argument("--out", default=project.ROOT / "dist", type=pathlib.Path, help="the folder for it (default: dist)")
    return parser.parse_args()


def _wheel(target, folder):
    compiled = trackers.build(MACHINES[target.triple], CACHE) if target.is_linux else None
    libraries = {target.library: native.build_library(target), target.driver: native.build_driver(target)}
    return write_wheel(folder, target, libraries, native.build_program(target), compiled)


def main():
    options = _options()
    if options.command == "trackers":
        for machine in options.machines:
            print(trackers.build(machine, CACHE))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    if options.command == "sdist":
        print(options.out / build_sdist(options.out))
        return 0
    unknown = set(options.targets) - set(native.TARGETS)
    if unknown:
        print(f"No such target: {', '.join(sorted(unknown))}. There are: {', '.join(native.TARGETS)}", file=sys.stderr)
        return 2
    failed = 0
    for name in options.targets or native.TARGETS:
        try:
            path = _wheel(native.TARGETS[name], options.out)
        except (subprocess.CalledProcessError, trackers.TrackerFailed) as error:
            # One machine that can't be built for, such as macOS without Apple's SDK, must not keep the others from it.
            print(f"{name}: not built: {error}", file=sys.stderr, flush=True)
            failed = 1
        else:
            print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
