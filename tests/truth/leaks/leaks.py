#!/usr/bin/env python3
"""Asks `vramscope doctor` which line leaks, of jobs whose answer is known.

    leaks.py [--run] [--table FILE] [--jobs FOLDER] [--vramscope PROGRAM] [JOB...]

Each job runs once on PyTorch without a GPU; its snapshot is kept in target/truth/leaks, and used again unless its
source changed or `--run` is given. A leaking job is answered right if the first leak that is found is one of its marked
lines, a clean one if no leak is found. What the jobs themselves claim is checked from their snapshots. The exit code is
1 if more than one leak was not found, if a clean job was said to leak, or if a job is not what it claims.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import answer
import source
import truth
from snapshot import Snapshot

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
KEPT = ROOT / "target" / "truth"
PYTHON = [sys.executable, ROOT / "tests/differential/environment.py", "2.11"]
# Of all leaks, those that may be missed.
MAY_BE_MISSED = 1


@dataclasses.dataclass
class Row:
    job: source.Job
    truth: truth.Truth
    answer: answer.Answer

    @property
    def is_right(self):
        return self.answer.is_right_for(self.job)

    def cells(self):
        also = self.answer.others(self.job) if self.job.leaks else []
        told = self.answer.text + (f"; also {', '.join(also)}" if also else "")
        return [self.job.name, self.job.about, self.truth.text, told, "yes" if self.is_right else "**no**"]


def is_kept(job, folder):
    """Whether there is a snapshot of a job that was made from its source as it is now."""
    made = folder / f"{job.name}.json"
    sources = [pathlib.Path(job.path), HERE / "models.py", HERE / "run.py"]
    return made.exists() and all(path.stat().st_mtime < made.stat().st_mtime for path in sources)


def record(jobs, folder, wanted, again):
    """Runs the jobs whose snapshots are missing, or all of them."""
    missing = [job.name for job in wanted if again or not is_kept(job, folder)]
    if missing:
        command = [*PYTHON, HERE / "record.py", folder, jobs, *missing]
        ended = subprocess.run([str(part) for part in command], env={**os.environ, "PYTHONWARNINGS": "ignore"})
        if ended.returncode != 0:
            raise SystemExit("Some jobs did not run")


def judge(job, folder, program):
    path = folder / f"{job.name}.pickle"
    counted = json.loads(path.with_suffix(".json").read_text())
    return Row(job, truth.of(job, Snapshot(path), counted), answer.ask(program, path))


def totals(rows):
    """The sentences below the table, and whether they are good."""
    leaking, clean = [row for row in rows if row.job.leaks], [row for row in rows if not row.job.leaks]
    found, false = sum(row.is_right for row in leaking), sum(not row.is_right for row in clean)
    others = sum(len(row.answer.others(row.job)) for row in leaking)
    wrong = sum(row.truth.wrong is not None for row in rows)
    said = [
        f"{found} of {len(leaking)} leaks found, each at its line.",
        f"{false} of {len(clean)} clean jobs said to leak.",
        f"{others} lines of leaking jobs named beside those that leak.",
    ]
    if wrong:
        said.append(f"{wrong} jobs are not what they claim.")
    return said, found >= len(leaking) - MAY_BE_MISSED and not false and not wrong


HEADERS = {
    True: ["job", "what leaks", "kept at the end, of the peak", "answer", "right"],
    False: ["job", "why nothing leaks", "memory at the end, of that in the middle", "answer", "right"],
}


def document(rows):
    """The table as Markdown."""
    said, _ = totals(rows)
    lines = ["# Leaks whose line is known", "", *said]
    for leaks, title in ((True, "Leaking"), (False, "Clean")):
        table = [HEADERS[leaks], ["---"] * 5, *(row.cells() for row in rows if row.job.leaks == leaks)]
        lines += ["", f"## {title}", "", *(f"| {' | '.join(cells)} |" for cells in table)]
    return "\n".join(lines) + "\n"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--run", action="store_true")
    options.add_argument("--table", type=pathlib.Path)
    options.add_argument("--jobs", type=pathlib.Path, default=HERE / "jobs")
    options.add_argument("--vramscope", type=pathlib.Path, default=ROOT / "target/debug/vramscope")
    options.add_argument("job", nargs="*")
    given = options.parse_args()
    folder = given.jobs.resolve()
    jobs = source.read(folder)
    unknown = [name for name in given.job if name not in jobs]
    if unknown:
        sys.exit(f"There is no job {unknown[0]}")
    names = given.job or list(jobs)
    kept = KEPT / ("leaks" if folder == HERE / "jobs" else folder.name)
    record(folder, kept, [jobs[name] for name in names], given.run)
    rows = []
    for name in names:
        row = judge(jobs[name], kept, given.vramscope)
        rows.append(row)
        job, _, measured, told, right = row.cells()
        kind = "leaking" if row.job.leaks else "clean"
        print(f"{kind:8} {job:28} {measured:>8}  {right.strip('*'):3}  {told}", flush=True)
        if row.truth.wrong:
            print(f"         NOT WHAT IT CLAIMS: {row.truth.wrong}")
    said, is_good = totals(rows)
    print("\n".join(said))
    if given.table:
        given.table.write_text(document(rows))
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
