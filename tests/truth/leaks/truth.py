"""Checks that a job is what it claims, from its snapshot and from what PyTorch counted."""

import dataclasses

# How far the share that a job states may be from the measured one.
TOLERANCE = 0.1


@dataclasses.dataclass
class Truth:
    # What the table says: the share of the peak that stays, or memory at the end as a share of that in the middle.
    text: str
    # Why the job is not what it claims.
    wrong: str | None = None


def of(job, snapshot, counted):
    return leaking(job, snapshot, counted) if job.leaks else clean(job, snapshot, counted)


def leaking(job, snapshot, counted):
    """The marked lines hold what the job says at its end, more than before, and still more as the program goes on."""
    kept = {line: size for line, size in snapshot.at_the_end().items() if line and line[0] == job.path}
    marked = {number: size for (_, number), size in kept.items() if number in job.lines}
    share = sum(marked.values()) / snapshot.peak
    truth = Truth(f"{share:.2%}")
    over_time = snapshot.over_time(job.path, job.lines)
    if set(marked) != job.lines:
        truth.wrong = f"nothing stays of line {sorted(job.lines - set(marked))}"
    elif job.most and max(marked, key=marked.get) not in job.most:
        truth.wrong = f"line {max(marked, key=marked.get)} holds most"
    elif not over_time[1] < over_time[3]:
        truth.wrong = f"what stays doesn't grow: {over_time} bytes after each quarter"
    elif counted["after"] and not counted["after"][0][0] < counted["after"][1][0]:
        truth.wrong = f"nothing more stays as the program goes on: {counted['after']}"
    elif abs(share / job.share - 1) > TOLERANCE:
        truth.wrong = f"{share:.3%} stays, not {job.share:.3%}"
    return truth


def clean(job, snapshot, counted):
    """As the program goes on, memory gets no higher in the second span of steps than it was in the first."""
    truth = Truth(f"{counted['end'] / counted['middle']:.1%}" if counted["middle"] else "")
    first, second = counted["after"] or ([0, 0], [0, 0])
    if not counted["after"]:
        truth.wrong = "the program doesn't go on after the history"
    elif second[1] > first[1]:
        truth.wrong = f"memory still rises after the history: {first} and then {second} bytes"
    return truth
