"""Predictions beside the truth, as Markdown: a summary, and every number."""

import collections

from compare import NUMBERS
from explanations import explanation

HEAD = """# What-if beside the truth

`just whatif-truth` records jobs with PyTorch, runs each of them under other settings, and compares what PyTorch's allocator
counted with what the command `vramscope whatif --json` prints for the recording. `tests/truth/README.md` says how. Jobs are
recorded under the default settings, those named `expandable_…` and `split_…` under such ones. Every number is in
`tests/truth/RESULTS.md`.
"""
RESULTS_HEAD = """# Every number of what-if beside the truth

Written by `just whatif-truth`; `shared/whatif/src/TRUTH.md` has the summary. A number that stands alone was predicted to the
byte; **bold** is the prediction and behind it the truth.
"""
SHOWN = ("peak_reserved", "peak_allocated", "segments_end", "device_allocs", "retries", "ooms")


def difference(row):
    """One line about a row that differs."""
    numbers = ", ".join(f"{name} {row.predicted[name]:,} for {row.true[name]:,}" for name in NUMBERS if name in row.different)
    others = ", ".join(name for name in row.different if name not in NUMBERS)
    return f"{row.setting}: " + "; ".join(part for part in (others, numbers, row.ending) if part)


def unexplained(rows):
    """How many rows differ for no reason that is known."""
    return sum(not row.is_equal and explanation(row) is None for row in rows)


def cell(row, name):
    predicted, true = row.predicted[name], row.true[name]
    return f"{true:,}" if predicted == true else f"**{predicted:,}** / {true:,}"


def share(rows):
    return f"{sum(row.is_equal for row in rows):,} of {len(rows):,}"


def summary(rows):
    releases = list(dict.fromkeys(row.release for row in rows))
    jobs = sorted({row.job for row in rows})
    kinds = [(release, has_stacks) for release in releases for has_stacks in (True, False)]
    by_kind = collections.defaultdict(list)
    for row in rows:
        by_kind[row.job, row.release, row.has_stacks].append(row)
        by_kind[None, row.release, row.has_stacks].append(row)
    yield "| job | " + " | ".join(release + ("" if has_stacks else ", no stacks") for release, has_stacks in kinds) + " |"
    yield "|---|" + "---|" * len(kinds)
    for job in [*jobs, None]:
        yield f"| {job or '**all**'} | " + " | ".join(share(by_kind[job, *kind]) for kind in kinds) + " |"


def differences(rows):
    for row in rows:
        if not row.is_equal:
            how = "" if row.has_stacks else ", no stacks"
            yield f"- {row.release}{how}, {row.job}, {difference(row)}. {explanation(row) or 'Not explained.'}"


def reasons(rows):
    """How many rows differ for each reason, and in which jobs."""
    found = collections.defaultdict(list)
    for row in rows:
        if not row.is_equal:
            found[explanation(row) or "Not explained."].append(row.job)
    for reason, jobs in sorted(found.items(), key=lambda item: -len(item[1])):
        yield f"- {len(jobs)} ({', '.join(sorted(set(jobs)))}): {reason}"


def numbers(rows):
    for release in dict.fromkeys(row.release for row in rows):
        yield f"\n## PyTorch {release}\n"
        yield "| job | setting | " + " | ".join(name.replace("_", " ") for name in SHOWN) + " | ends |"
        yield "|---|---|" + "---:|" * len(SHOWN) + "---|"
        for row in rows:
            if row.release == release and row.has_stacks:
                cells = " | ".join(cell(row, name) for name in SHOWN)
                yield f"| {row.job} | {row.setting} | {cells} | {row.ending or 'with the trace'} |"


def documents(rows):
    """Returns the texts of the summary and of the results."""
    equal = f"\n{share(rows)} predictions are equal to the truth in all of: {', '.join(NUMBERS).replace('_', ' ')}.\n"
    parts = [HEAD, equal, "\n".join(summary(rows)), "\n## Differences\n", "\n".join(reasons(rows)) or "None."]
    all_parts = [RESULTS_HEAD, "\n## Differences\n", "\n".join(differences(rows)) or "None.", "\n".join(numbers(rows))]
    return "\n".join(parts) + "\n", "\n".join(all_parts) + "\n"
