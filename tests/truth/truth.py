#!/usr/bin/env python3
"""Compares what `vramscope whatif` predicts with what PyTorch does.

    truth.py [--job NAME]... [--again] [--table FILE] [--vramscope PROGRAM] [PYTHON...]

Each PYTHON is a command that runs a Python with PyTorch, such as "tests/differential/environment.py 2.6". It records the
jobs and runs them under all settings; what it found is kept in target/truth/RELEASE and used again, unless `--again` is
given. Without a PYTHON, all that was kept is compared. The exit code is 1 if a difference has no explanation.
"""

import argparse
import pathlib
import shlex
import subprocess
import sys

import table
from compare import compare

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / "target" / "truth"
RESULTS = HERE / "RESULTS.md"
"""Every number, beside the summary that ``--table`` writes."""


def release_of(python):
    """The release of a command's PyTorch, such as 2.11."""
    ended = subprocess.run([*python, HERE / "release.py"], capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"{shlex.join(python)} does not run PyTorch: {ended.stderr.strip().splitlines()[-1:]}")
    return ended.stdout.strip()


def record(python, jobs, again):
    """Records the jobs with a command, unless they are kept; returns its release."""
    release = release_of(python)
    folder = KEPT / release
    known = subprocess.run([*python, HERE / "record.py", "--names"], capture_output=True, text=True, check=True).stdout.split()
    missing = [name for name in jobs or known if again or not (folder / f"{name}.json").exists()]
    if missing:
        subprocess.run([*python, HERE / "record.py", folder, *missing], check=True)
    return release


def version(release):
    return [int(part) for part in release.split(".")]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--job", action="append", default=[])
    options.add_argument("--again", action="store_true")
    options.add_argument("--table", type=pathlib.Path)
    options.add_argument("--vramscope", type=pathlib.Path, default=ROOT / "target/release/vramscope")
    options.add_argument("python", nargs="*")
    given = options.parse_args()
    releases = [record(shlex.split(python), given.job, given.again) for python in given.python]
    releases = sorted(releases or (folder.name for folder in KEPT.iterdir()), key=version)
    rows = []
    for release in releases:
        folder = KEPT / release
        for name in given.job or sorted(path.stem for path in folder.glob("*.json")):
            for has_stacks in (True, False):
                found = list(compare(given.vramscope, folder, name, release, has_stacks))
                rows += found
                equal = sum(row.is_equal for row in found)
                how = "" if has_stacks else ", without stacks"
                print(f"{release} {name}{how}: {equal} of {len(found)} equal", flush=True)
                for row in found:
                    if not row.is_equal:
                        print("  " + table.difference(row))
    if given.table:
        summary, results = table.documents(rows)
        given.table.write_text(summary)
        RESULTS.write_text(results)
    sys.exit(table.unexplained(rows) and 1)


if __name__ == "__main__":
    main()
