#!/usr/bin/env python3
"""Compares `vramscope replay` with what PyTorch did, case by case.

    compare.py CASES [--torch 2.11] [--texts] [NAME...]

CASES is an archive of `farm.py --keep`, NAME.jsonl.gz, or a folder with NAME.in.json[.gz] and NAME.out.json[.gz]. The exit code is 1
when any case differs.

Compared: `malloc`, `trace`, `snapshots`, `final`, `settings` exactly, and `errors` by operation, kind (out of memory, or any
other) and, for out of memory, every amount in the text. Not compared, since it is not the allocator's: the words of
an error and its Python type (`--texts` compares them as well), the echo of the script, PyTorch's version, and the operation
of a trace entry where PyTorch doesn't record it (-1 throughout before 2.10).
"""

import argparse
import gzip
import json
import pathlib
import re
import sys

from oracle import ROOT, Ours

AMOUNT = re.compile(r"\d+(?:\.\d+)? (?:bytes|[KMG]iB)(?: allowed)?|more than 1EB|allocated in private pools")


def load(path):
    opened = gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")
    with opened as file:
        return json.loads(file.read())


def cases(path):
    """Yields the name of each case, its script, and PyTorch's result. It is None if PyTorch refused to start."""
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                case = json.loads(line)
                yield case["name"], case["script"], case["result"]
        return
    for source in sorted([*path.glob("*.in.json"), *path.glob("*.in.json.gz")]):
        name = source.name.split(".in.json")[0]
        results = [p for p in (source.with_name(f"{name}.out.json"), source.with_name(f"{name}.out.json.gz")) if p.exists()]
        yield name, load(source), load(results[0]) if results else None


def error_key(text, texts):
    """What of an error must be equal."""
    if text.startswith("oom"):
        return ["oom", *AMOUNT.findall(text)]
    return text if texts else "error"


def brief(value):
    text = json.dumps(value, separators=(",", ":"))
    return text if len(text) < 160 else text[:157] + "..."


def first_in_list(ours, real):
    """Index of the first difference between two lists that differ."""
    low, high = 0, min(len(ours), len(real))
    if ours[:high] == real[:high]:
        return high
    # Halving compares slices at C speed: the long traces need it.
    while high - low > 1:
        middle = (low + high) // 2
        if ours[low:middle] == real[low:middle]:
            low = middle
        else:
            high = middle
    return low


def settled(result):
    """A result with what torch leaves to the order of a hash map put in one order.

    Several blocks whose frees were deferred complete in the order of their objects' addresses in torch's heap. Entries of
    such a run are sorted here. What depends on which block is merged into which goes: the counts of inactive splits
    (their current values stay), and what inactive blocks say was requested last.
    """
    if "trace" not in result:
        return result
    trace, run = [], []
    for row in result["trace"]:
        if row[1] == "free_completed":
            run.append(row)
            continue
        trace += sorted(run)
        run = []
        trace.append(row)

    def without(state):
        kept = {k: v for k, v in state["stats"].items() if not (k.startswith("inactive_split") and not k.endswith("current"))}
        segments = [{**s, "blocks": [[*b[:2], 0, b[3]] if b[3] == "inactive" else b for b in s["blocks"]]} for s in state["segments"]]
        return {**state, "segments": segments, "stats": kept}

    return {**result, "trace": trace + sorted(run), "snapshots": [without(s) for s in result["snapshots"]], "final": without(result["final"])}


def until(result, op):
    """What a result says of the time before an operation."""
    if "trace" not in result:
        return result
    return {
        **result,
        "malloc": [row for row in result["malloc"] if row[0] < op],
        "trace": [row for row in result["trace"] if 0 <= row[0] < op],
        "errors": {k: v for k, v in result["errors"].items() if int(k) < op},
        "snapshots": [s for s in result["snapshots"] if s["op"] < op],
        "final": {},
        "settings": {},
    }


def inside(ours, real, path=""):
    """The first place at which two JSON values differ, as (path, ours, real); None when they don't."""
    if ours == real:
        return None
    if isinstance(ours, dict) and isinstance(real, dict):
        for key in [*real, *(k for k in ours if k not in real)]:
            if key not in ours or key not in real:
                return f"{path}.{key}", ours.get(key, "absent"), real.get(key, "absent")
            found = inside(ours[key], real[key], f"{path}.{key}")
            if found:
                return found
    if isinstance(ours, list) and isinstance(real, list) and ours and real:
        i = first_in_list(ours, real)
        if i < len(ours) and i < len(real):
            return inside(ours[i], real[i], f"{path}[{i}]")
        return f"{path}[{i}]", ours[i] if i < len(ours) else "absent", real[i] if i < len(real) else "absent"
    return path, ours, real


def difference(ours, real, ops=(), texts=False):
    """The difference that comes first in time, as (section, line); None when there is none.

    Where ours says that torch's behaviour is undefined from an operation on, what came before it counts.
    """
    found = first_difference(ours, real, ops, texts)
    if found and "trace" in real and (end := ours.get("undefined_from")) is not None:
        return first_difference(until(ours, end), until(real, end), ops, texts)
    return found


def first_difference(ours, real, ops, texts):
    for side, result in (("ours", ours), ("real", real)):
        if "crashed" in result:
            place = re.search(r"panicked at (\S+?):\d+:", result["crashed"])
            return f"crash {side} {place[1] if place else ''}".strip(), f"{side} crashed: {result['crashed']}"
    if "refused" in ours or "refused" in real:
        if "refused" in ours and "refused" in real:
            return None
        return "refused", f"ours: {brief(ours.get('refused', 'runs'))}  real: {brief(real.get('refused', 'runs'))}"
    found = []
    end = len(ops) + 1

    def op_of(row):
        return row[0] if isinstance(row, list) and row and isinstance(row[0], int) and row[0] >= 0 else end

    ours_trace, real_trace = ours.get("trace", []), real.get("trace", [])
    if all(row[0] < 0 for row in real_trace):
        ours_trace = [[-1, *row[1:]] for row in ours_trace]
    for section, a, b in (("malloc", ours.get("malloc", []), real["malloc"]), ("trace", ours_trace, real_trace)):
        if a != b:
            i = first_in_list(a, b)
            x, y = (s[i] if i < len(s) else "absent" for s in (a, b))
            found.append((min(op_of(x), op_of(y)), f"{section}", f"{section}[{i}] ours {brief(x)} real {brief(y)}"))
    a, b = ({int(k): error_key(v, texts) for k, v in side.get("errors", {}).items()} for side in (ours, real))
    if a != b:
        op = min(k for k in {*a, *b} if a.get(k) != b.get(k))
        x, y = (side.get("errors", {}).get(str(op), "no error") for side in (ours, real))
        found.append((op, "errors", f"error ours {x[:400]!r} real {y[:400]!r}"))
    for i, (x, y) in enumerate(zip(ours.get("snapshots", []), real["snapshots"])):
        if x != y:
            path, p, q = inside(x, y)
            found.append((y["op"], "snapshots" + re.sub(r"\[\d+\]", "[]", path), f"snapshots[{i}]{path} ours {brief(p)} real {brief(q)}"))
            break
    if len(ours.get("snapshots", [])) != len(real["snapshots"]):
        found.append((end, "snapshots", f"{len(ours.get('snapshots', []))} snapshots, real {len(real['snapshots'])}"))
    for section in ("final", "settings"):
        if ours.get(section) != real[section]:
            path, p, q = inside(ours.get(section), real[section])
            found.append((end, section + re.sub(r"\[\d+\]", "[]", path), f"{section}{path} ours {brief(p)} real {brief(q)}"))
    if not found:
        return None
    op, section, line = min(found, key=lambda f: f[0])
    where = f"op {op} {brief(ops[op])}: " if 0 <= op < len(ops) else ""
    return section, where + line


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--vramscope", default=ROOT / "target/release/vramscope", help="the program to compare with")
    parser.add_argument("--torch", default="2.11")
    parser.add_argument("--texts", action="store_true", help="compare the words of errors as well")
    arguments = parser.parse_args()
    ours = Ours(arguments.vramscope, arguments.torch)
    equal = differ = 0
    for name, script, real in cases(arguments.cases):
        if arguments.names and name not in arguments.names:
            continue
        real = real or {"refused": "no output"}
        found = difference(ours.run_text(json.dumps(script).encode()), real, script["ops"], arguments.texts)
        if found:
            differ += 1
            print(f"{name}: {found[0]}: {found[1]}", flush=True)
        else:
            equal += 1
            print(f"{name}: equal", flush=True)
    print(f"{equal} equal, {differ} differ")
    sys.exit(1 if differ or not equal else 0)


if __name__ == "__main__":
    main()
