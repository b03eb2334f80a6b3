#!/usr/bin/env python3
"""Runs made-up scripts through PyTorch and through this allocator, and keeps the smallest script for each difference.

    farm.py [--torch 2.11] [--focus NAME]... [--first SEED] [--scripts N | --minutes M] [--found FOLDER] [--texts]
    farm.py --survey [...]             counts what the scripts reach in PyTorch; compares nothing
    farm.py --verify CASES             compares forked children with stored results of fresh processes
    farm.py --keep CASES --focus NAME --first SEED --scripts N [--longest OPERATIONS]
                                       adds cases to the archive CASES, a file NAME.jsonl.gz
    farm.py ... --script FILE...       these scripts instead of made-up ones

It makes the environment of the release first (`environment.py`). Differences are stored as FOUND/NAME.in.json,
.out.json (PyTorch's result) and a line in FOUND/index.txt; FOUND is target/differential/found if not given. The exit
code is 1 when there was any.
"""

import argparse
import collections
import gzip
import itertools
import json
import pathlib
import re
import sys
import time

import compare
import generate
from environment import Environment
from oracle import ROOT, Ours, Real
from profiles import PROFILES
from shrink import shrink

# How many scripts are stored for one kind of difference.
PER_KIND = 2

# How many other heaps PyTorch gets to show that its own result varies.
HEAPS = 6


def kind_of(torch, found, script):
    """The kind of a difference: where it shows, by which operations, under which options."""
    options = re.findall(r"[a-z_0-9]+(?=:)", " ".join([script["config"], *(str(o[1]) for o in script["ops"] if o[0] == "config")]))
    return torch, found[0], tuple(sorted({o[0] for o in script["ops"]})), tuple(sorted(set(options)))


def family(section):
    """The part of a section's name that must not change while a script is made smaller."""
    return section if section.startswith("crash") else section.split(".")[0]


class Farm:
    def __init__(self, arguments):
        self.arguments = arguments
        self.real = Real(Environment(arguments.torch).make())
        self.ours = Ours(arguments.vramscope, arguments.torch)
        self.kinds = collections.Counter()
        self.counts = collections.Counter()

    def difference(self, script):
        """Returns the difference and PyTorch's result; no difference where PyTorch contradicts itself in that way."""
        real = self.real.run(script)
        if "crashed" in real:
            return None, real
        ours = self.ours.run(script)
        found = compare.difference(ours, real, script["ops"], self.arguments.texts)
        if found and self.varies(script, real):
            self.counts["in an order that varies in PyTorch"] += 1
            found = compare.difference(compare.settled(ours), compare.settled(real), script["ops"], self.arguments.texts)
        self.counts["undefined before the end"] += found is None and "undefined_from" in ours and ours["final"] != real.get("final")
        return found, real

    def varies(self, script, real):
        """Returns whether PyTorch gives another result under another heap."""
        return any(self.real.run(script, heap) != real for heap in range(1, HEAPS + 1))

    def scripts(self):
        a = self.arguments
        if a.script:
            yield from (compare.load(path) for path in a.script)
            return
        for seed in itertools.count(a.first) if a.scripts is None else range(a.first, a.first + a.scripts):
            for focus in a.focus:
                script = generate.script(focus, seed, a.torch)
                if a.longest is None or len(script["ops"]) <= a.longest:
                    yield script

    def hunt(self):
        """Compares script after script; returns the number of those that differed."""
        start = reported = time.monotonic()
        for script in self.scripts():
            now = time.monotonic()
            if self.arguments.minutes is not None and now - start > self.arguments.minutes * 60:
                break
            if now - reported > 60:
                reported = now
                print(self.summary(now - start), flush=True)
            found, real = self.difference(script)
            self.counts["scripts"] += 1
            self.counts["operations"] += len(script["ops"])
            self.counts["PyTorch crashed"] += "crashed" in real
            self.counts["refused by both"] += "refused" in real and not found
            if found:
                self.counts["differ"] += 1
                self.keep(script, found)
        print(self.summary(time.monotonic() - start))
        return self.counts["differ"]

    def keep(self, script, found):
        # A kind that was seen often enough is recognized before the script is shrunk, which takes long.
        rough = (script["name"].rsplit("_", 1)[0], found[0])
        if self.kinds[rough] >= 3 * PER_KIND:
            return
        self.kinds[rough] += 1
        section = found[0]

        def differs(candidate):
            if not generate.is_tried(candidate):
                return False
            again, _ = self.difference(candidate)
            return again is not None and family(again[0]) == family(section)

        small = shrink(script, differs)
        found, real = self.difference(small)
        if found is None:
            print(f"{script['name']}: a difference that did not show again")
            return
        kind = kind_of(self.arguments.torch, found, small)
        self.kinds[kind] += 1
        if self.kinds[kind] > PER_KIND:
            return
        folder = pathlib.Path(self.arguments.found)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{script['name']}_torch_{self.arguments.torch}"
        line = f"{name} ({len(small['ops'])} ops, config {small['config']!r}): {found[0]}: {found[1]}"
        store(folder, name, {**small, "name": name}, real)
        with open(folder / "index.txt", "a") as index:
            index.write(line + "\n")
        print(line, flush=True)

    def summary(self, seconds):
        c = self.counts
        rest = ", ".join(f"{k} {c[k]}" for k in ("PyTorch crashed", "refused by both", "in an order that varies in PyTorch", "undefined before the end"))
        return f"torch {self.arguments.torch}: {c['scripts']} scripts, {c['operations']} operations in {seconds:.0f} s: {c['differ']} differ; {rest}"

    def survey(self):
        """Prints what the scripts reach in PyTorch."""
        for focus in self.arguments.focus:
            c = collections.Counter()
            for seed in range(self.arguments.first, self.arguments.first + (self.arguments.scripts or 20)):
                script = generate.script(focus, seed, self.arguments.torch)
                real = self.real.run(script)
                c["scripts"] += 1
                c["ops"] += len(script["ops"])
                if "trace" not in real:
                    c[next(iter(real))] += 1
                    continue
                for entry in real["trace"]:
                    c[entry[1]] += 1
                for text in real["errors"].values():
                    c["error " + ("oom" if text.startswith("oom") else text[:60])] += 1
                for key in ("num_alloc_retries", "num_ooms"):
                    c[key] += real["final"]["stats"][key]
            print(focus, json.dumps(c))

    def verify(self, corpus):
        """Compares forked children with stored results of fresh processes; returns the number of cases that differ."""
        differ = count = 0
        for name, script, stored in compare.cases(corpus):
            count += 1
            forked = self.real.run(script)
            # Older results have a log of driver calls.
            same = forked == {k: v for k, v in stored.items() if k != "driver"} if stored else "refused" in forked
            differ += not same
            if not same:
                print(f"{name}: differs")
        print(f"{count - differ} of {count} cases: a forked child gives what a fresh process gave")
        return differ

    def write(self, corpus):
        """Adds scripts and PyTorch's results to an archive for `compare.py`; none whose result varies."""
        kept = {name: (script, real) for name, script, real in compare.cases(corpus)} if corpus.exists() else {}
        for script in self.scripts():
            real = self.real.run(script)
            if "trace" in real and not self.varies(script, real):
                kept[script["name"]] = (script, real)
        lines = [{"name": name, "script": script, "result": real} for name, (script, real) in sorted(kept.items())]
        with gzip.GzipFile(corpus, "wb", mtime=0) as file:
            file.writelines(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def store(folder, name, script, real):
    (folder / f"{name}.in.json").write_text(json.dumps(script, separators=(",", ":")) + "\n")
    if "refused" not in real:
        (folder / f"{name}.out.json").write_text(json.dumps(real, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vramscope", default=ROOT / "target/release/vramscope", help="the program to compare with")
    parser.add_argument("--torch", default="2.11", help="the PyTorch release")
    parser.add_argument("--focus", action="append", choices=list(PROFILES), help="what the scripts are about (default: every subject in turn)")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--scripts", type=int, help="seeds for each focus")
    parser.add_argument("--longest", type=int, help="skip scripts of more operations")
    parser.add_argument("--script", type=pathlib.Path, nargs="*", help="files with scripts, instead of made-up ones")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--found", default=ROOT / "target/differential/found", help="where differences are stored")
    parser.add_argument("--texts", action="store_true", help="compare the words of errors as well")
    parser.add_argument("--survey", action="store_true", help="count what the scripts reach in PyTorch")
    parser.add_argument("--verify", type=pathlib.Path, metavar="CORPUS")
    parser.add_argument("--keep", type=pathlib.Path, metavar="CORPUS")
    arguments = parser.parse_args()
    arguments.focus = arguments.focus or list(PROFILES)
    farm = Farm(arguments)
    if arguments.verify:
        status = farm.verify(arguments.verify)
    elif arguments.keep:
        if arguments.scripts is None and not arguments.script:
            parser.error("--keep needs --scripts or --script")
        status = farm.write(arguments.keep)
    elif arguments.survey:
        status = farm.survey()
    else:
        status = farm.hunt()
    farm.real.close()
    sys.exit(1 if status else 0)


if __name__ == "__main__":
    main()
