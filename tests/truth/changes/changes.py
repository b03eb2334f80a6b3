#!/usr/bin/env python3
"""Asks `vramscope diff` what changed between two programs that differ in one known thing.

    changes.py [--run] [--table FILE] [--vramscope PROGRAM] [PAIR...]

Each program runs once on PyTorch without a GPU; its snapshot is kept in target/truth/changes, and used again unless its source
changed or `--run` is given. An answer is right if its sentence names what changed and nothing else, if the growth of that line or
category is the one known from the sizes of tensors (within 1 %), and if the growth of the peak is the one that PyTorch counted. The
exit code is 1 if one is wrong.
"""

import argparse
import hashlib
import json
import pathlib
import re
import subprocess
import sys

import pairs

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
KEPT = ROOT / "target/truth/changes"
# The most that a growth may differ from the known one.
SHARE = 0.01


def files(program):
    """The files of a program by name."""
    found, left = {}, list(program.edits)
    for path in sorted((HERE / "base").glob("*.py")):
        text = path.read_text()
        for old, new in program.edits:
            if old in text:
                text = text.replace(old, new, 1)
                left.remove((old, new))
        if program.inserted:
            text = re.sub(r"^( *)(?=def |class )", lambda found: (found[1] + "# More.\n") * program.inserted + found[1], text, flags=re.M)
        found[program.names.get(path.name, path.name)] = text
    assert not left, f"{left[0][0]!r} is in no file"
    return found


def record(program, again):
    """Runs a program, unless that was done; returns the path of its snapshot, and its files."""
    texts = files(program)
    key = hashlib.sha256(json.dumps([texts, program.folder, program.release, program.conf, (HERE / "record.py").read_text()]).encode())
    home = KEPT / key.hexdigest()[:16]
    snapshot, source = home / "run.pickle", home / program.folder
    if again or not snapshot.with_suffix(".json").exists():
        source.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (source / name).write_text(text)
        environment = [sys.executable, ROOT / "tests/differential/environment.py", program.release]
        command = [*environment, HERE / "record.py", source / "train.py", snapshot]
        command += [program.conf] if program.conf else []
        with open(home / "run.log", "w") as log:
            ended = subprocess.run([str(part) for part in command], stdout=log, stderr=log)
        if ended.returncode != 0:
            raise SystemExit(f"A program did not run; {home / 'run.log'} says why")
    return snapshot, {str(source / name): text for name, text in texts.items()}


def diff(program, a, b):
    """What the program says of two snapshots."""
    ended = subprocess.run([program, "diff", a, b, "--json"], capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"{a} and {b} were not compared: {ended.stderr.strip()}")
    return json.loads(ended.stdout)


def text_of(place, sources):
    """The source of a line `path:number`."""
    path, _, number = (place or "").rpartition(":")
    lines = sources.get(path, "").splitlines()
    return lines[int(number) - 1].strip() if number.isdigit() and 0 < int(number) <= len(lines) else ""


def is_near(found, known):
    return abs(found - known) <= max(abs(known) * SHARE, 1)


def judge(pair, answer, counted, sources):
    """Why an answer is wrong; None if it is right."""
    sentence, lines = answer["sentence"], answer["lines"]
    if sum(line["delta"] for line in lines) != answer["peak"]["delta"]:
        return "the lines don't add up to the peak"
    if sum(value for name, value in answer["accounting"].items() if name != "outside") != answer["reserved"]["delta"]:
        return "the parts don't add up to what is reserved"
    growth = counted[1]["requested_bytes"] - counted[0]["requested_bytes"]
    if not is_near(answer["peak"]["delta"], growth):
        return f"the peak grew by {growth}, by PyTorch's count"
    said = {found["what"] for found in answer["comparable"]["differences"]}
    if not said >= set(pair.said):
        return f"not said to differ: {', '.join(set(pair.said) - said)}"
    changed = [line for line in lines if line["delta"] and line["match"] in ("new", "gone")]
    if pair.cause == "nothing":
        if not sentence.startswith("No difference"):
            return "nothing changed"
        return f"{changed[0]['line']} is {changed[0]['match']}" if changed else None
    if pair.cause == "gaps":
        return None if "free gaps" in sentence else "the sentence does not name free gaps"
    kind, _, cause = pair.cause.partition(" ")
    if kind == "category":
        return None if f"{cause} of" in sentence else f"the sentence does not name {cause}"
    wanted = cause.split("|") if kind == "any" else [pair.cause]
    wanted = [part.removeprefix("of ") for part in wanted]
    named = [line for line in lines if line["delta"] and any(part in text_of(place, sources) for part in wanted for place in (line["b_line"], line["a_line"]))]
    named = [line for line in named if f"{pathlib.Path(line['line']).name} (" in sentence]
    if not named:
        return f"the sentence does not name {' or '.join(wanted)}"
    if pair.bytes is not None and not is_near(named[0]["delta"], pair.bytes):
        return f"that line grew by {pair.bytes}, and not by {named[0]['delta']}"
    return None


def mib(bytes):
    return f"{bytes / pairs.MIB:+.1f} MiB"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--run", action="store_true")
    options.add_argument("--table", type=pathlib.Path)
    options.add_argument("--vramscope", type=pathlib.Path, default=ROOT / "target/debug/vramscope")
    options.add_argument("pair", nargs="*")
    given = options.parse_args()
    known = {pair.name: pair for pair in pairs.PAIRS}
    for name in given.pair:
        if name not in known:
            sys.exit(f"There is no pair {name}")
    rows, right = [], 0
    wanted = [known[name] for name in given.pair or known]
    for pair in wanted:
        a, before = record(pair.before, given.run)
        b, after = record(pair.after, given.run)
        counted = [json.loads(path.with_suffix(".json").read_text())[-1] for path in (a, b)]
        answer = diff(given.vramscope, a, b)
        wrong = judge(pair, answer, counted, {**before, **after})
        right += wrong is None
        print(f"{'right' if wrong is None else 'WRONG':5}  {pair.name}: {answer['sentence']}" + (f"\n       {wrong}" if wrong else ""), flush=True)
        growth = counted[1]["requested_bytes"] - counted[0]["requested_bytes"]
        rows.append(f"| {pair.name} | {pair.about} | {mib(growth)} | {answer['sentence']} | {'yes' if wrong is None else '**no**: ' + wrong} |")
    said = f"{right} of {len(wanted)} right."
    print(said)
    if given.table:
        head = "| pair | what changed | growth of the peak, by PyTorch | the sentence | right |\n|---|---|---:|---|---|\n"
        given.table.write_text(f"# Changes that are known\n\n{said}\n\n{head}" + "\n".join(rows) + "\n")
    sys.exit(0 if right == len(wanted) else 1)


if __name__ == "__main__":
    main()
