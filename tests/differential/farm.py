#!/usr/bin/env python3
"""Runs made-up scripts through the real PyTorch and through ours, and keeps the smallest script for each difference.

    farm.py --harness FOLDER --vramscope BINARY [--torch 2.11] [--focus NAME]... [--first SEED] [--scripts N | --minutes M]
            [--found FOLDER] [--texts]
    farm.py --harness FOLDER [...]                without --vramscope: what the scripts reach in the real one, as counts
    farm.py --harness FOLDER --verify CORPUS      forked children against stored results of fresh processes
    farm.py --harness FOLDER --keep CORPUS --focus NAME --first SEED --scripts N [--longest OPERATIONS]
                                                  writes cases NAME.in.json.gz, NAME.out.json.gz
    farm.py --harness FOLDER ... --script FILE... these scripts, not made-up ones

Differences are stored as FOUND/NAME.in.json, .out.json (the real result) and a line in FOUND/index.txt.
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
from oracle import Ours, Real
from profiles import PROFILES
from shrink import shrink

# Stored scripts for one and the same kind of difference.
PER_KIND = 2

# Heaps that the real one gets to show that its own result varies.
HEAPS = 6


def kind_of(torch, found, script):
    """What makes two differences the same: where they show, by which operations, under which options."""
    options = re.findall(r"[a-z_0-9]+(?=:)", " ".join([script["config"], *(str(o[1]) for o in script["ops"] if o[0] == "config")]))
    return torch, found[0], tuple(sorted({o[0] for o in script["ops"]})), tuple(sorted(set(options)))


def family(section):
    """What must stay the same of a section while a script is made smaller."""
    return section if section.startswith("crash") else section.split(".")[0]


class Farm:
    def __init__(self, arguments):
        self.arguments = arguments
        self.real = Real(arguments.harness, arguments.torch)
        self.ours = Ours(arguments.vramscope, arguments.torch) if arguments.vramscope else None
        self.kinds = collections.Counter()
        self.counts = collections.Counter()

    def difference(self, script):
        """The difference and the real result; no difference where the real one contradicts itself in the same way."""
        real = self.real.run(script)
        if "crashed" in real:
            return None, real
        ours = self.ours.run(script)
        found = compare.difference(ours, real, script["ops"], self.arguments.texts)
        if found and self.varies(script, real):
            self.counts["in an order that varies in the real one"] += 1
            found = compare.difference(compare.settled(ours), compare.settled(real), script["ops"], self.arguments.texts)
        self.counts["undefined before the end"] += found is None and "undefined_from" in ours and ours["final"] != real.get("final")
        return found, real

    def varies(self, script, real):
        """Whether the real one gives another result under another heap."""
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
        """The main loop; gives the number of scripts that differed."""
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
            self.counts["the real one crashed"] += "crashed" in real
            self.counts["refused by both"] += "refused" in real and not found
            if found:
                self.counts["differ"] += 1
                self.keep(script, found)
        print(self.summary(time.monotonic() - start))
        return self.counts["differ"]

    def keep(self, script, found):
        # A kind that was seen often enough is recognised before the long way of shrinking.
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
            print(f"{script['name']}: a difference that does not come again")
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
        rest = ", ".join(f"{k} {c[k]}" for k in ("the real one crashed", "refused by both", "in an order that varies in the real one", "undefined before the end"))
        return f"torch {self.arguments.torch}: {c['scripts']} scripts, {c['operations']} operations in {seconds:.0f} s: {c['differ']} differ; {rest}"

    def survey(self):
        """What the scripts reach in the real one."""
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
        """Forked children against the stored results of fresh processes; gives the number of cases that differ."""
        differ = 0
        sources = sorted([*corpus.glob("*.in.json"), *corpus.glob("*.in.json.gz")])
        for source in sources:
            name = source.name.split(".in.json")[0]
            stored = [p for p in (source.with_name(f"{name}.out.json"), source.with_name(f"{name}.out.json.gz")) if p.exists()]
            forked = self.real.run_file(source)
            same = forked == compare.load(stored[0]) if stored else "refused" in forked
            differ += not same
            if not same:
                print(f"{name}: differs")
        print(f"{len(sources) - differ} of {len(sources)} cases: forked children give what fresh processes gave")
        return differ

    def write(self, corpus):
        """Scripts and their real results as cases for `compare.py`; none whose result varies."""
        corpus.mkdir(parents=True, exist_ok=True)
        for script in self.scripts():
            real = self.real.run(script)
            if "trace" in real and not self.varies(script, real):
                for kind, content in (("in", script), ("out", real)):
                    with gzip.GzipFile(corpus / f"{script['name']}.{kind}.json.gz", "wb", mtime=0) as file:
                        file.write(json.dumps(content, separators=(",", ":")).encode())


def store(folder, name, script, real):
    (folder / f"{name}.in.json").write_text(json.dumps(script, separators=(",", ":")) + "\n")
    if "refused" not in real:
        (folder / f"{name}.out.json").write_text(json.dumps(real, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--harness", required=True, help="folder with the harness's replay.py and run.sh")
    parser.add_argument("--vramscope", help="our binary")
    parser.add_argument("--torch", default="2.11", help="a torch that the harness has set up")
    parser.add_argument("--focus", action="append", choices=list(PROFILES), help="what scripts are about (default: everything in turn)")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--scripts", type=int, help="seeds for each focus")
    parser.add_argument("--longest", type=int, help="pass over scripts of more operations")
    parser.add_argument("--script", type=pathlib.Path, nargs="*", help="files with scripts, not made-up ones")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--found", default="found", help="where differences are stored")
    parser.add_argument("--texts", action="store_true", help="compare the words of errors as well")
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
    elif farm.ours:
        status = farm.hunt()
    else:
        status = farm.survey()
    farm.real.close()
    sys.exit(1 if status else 0)


if __name__ == "__main__":
    main()
