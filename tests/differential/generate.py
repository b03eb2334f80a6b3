#!/usr/bin/env python3
"""Makes scripts of allocator operations that are likely to show differences; the same one for the same seed.

    generate.py --focus NAME --seed N [--torch 2.11]       prints one script
    generate.py --list                                     prints the subjects

Scripts avoid what ends PyTorch's process, or what `execute.py` can't do:
- a capture that begins inside another, and the deletion of a graph whose capture is open;
- the end of a `MemPool` object while a capture is open, before 2.15 also while another pool is open: its destructor
  empties the pool, PyTorch asserts that this is allowed, and a destructor that throws ends the process. Pools are
  dropped at the end of a script, so what is open is closed there.
"""

import argparse
import json
import random
import sys

import settings
import sizes
from profiles import PROFILES
from releases import POOL_MAY_END_BESIDE_OTHERS_SINCE, POOL_OPTION_SINCE, has

M = 1 << 20


class Writer:
    """A script under construction, with the state that decides which operation makes sense next."""

    def __init__(self, name, seed, torch):
        self.r = random.Random(f"{name} {seed}")
        self.profile = PROFILES[name]
        self.torch = torch
        self.ops = []
        self.live = []
        self.next_id = 0
        self.streams = self.r.choice(self.profile.streams)
        self.current = 0
        self.held = set()
        # Pools by number; the open ones in order; one that was deleted while open, whose object ends with its context.
        self.pools, self.open, self.dying = [], [], None
        self.graphs, self.graph = [], None
        self.target = self.r.choice(self.profile.live)
        self.capacity = self.r.choice(self.profile.capacities)
        self.config, self.options = settings.good(self.r, self.profile.start, torch, True)
        self.sizes = dict(self.profile.sizes)
        # Some scripts use few of the operations, so that every pair of operations occurs without a third.
        self.weights = {k: w * self.r.choice((0, 0.3, 1, 1, 2)) for k, w in self.profile.operations.items()}

    def add(self, *op):
        self.ops.append(list(op))

    def fresh(self):
        if self.live and self.r.random() < self.profile.careless:
            return self.r.choice(self.live)
        self.next_id += 1
        return self.next_id

    def some_id(self):
        """The id of a live block, most likely a young one; if the profile is careless, sometimes of none."""
        if not self.live or self.r.random() < self.profile.careless / 3:
            return self.r.randrange(self.next_id + 3)
        x = self.r.random()
        if x < 0.4:
            return self.live[-1 - min(int(self.r.expovariate(0.5)), len(self.live) - 1)]
        return self.live[0] if x < 0.5 else self.r.choice(self.live)

    def stream(self):
        if self.graph is not None and self.r.random() >= self.profile.wander:
            return self.current
        return self.r.randrange(self.streams) if self.r.random() < 0.4 else self.current

    def malloc(self):
        i, self.current = self.fresh(), self.stream()
        self.add("malloc", i, sizes.draw(self.r, self.sizes, self.options), self.current)
        if i not in self.live:
            self.live.append(i)

    def free(self):
        # Sometimes a burst: free neighbours merge, and whole segments become free.
        for _ in range(1 if self.r.random() < 0.9 else self.r.randrange(1, 2 + len(self.live))):
            i = self.some_id()
            self.add("free", i)
            if i in self.live:
                self.live.remove(i)

    def record_stream(self):
        self.add("record_stream", self.some_id(), self.r.randrange(self.streams))

    def hold(self):
        s = self.r.randrange(self.streams)
        self.held.add(s)
        self.add("hold", s)

    def release(self):
        s = self.r.choice(sorted(self.held)) if self.held else self.r.randrange(self.streams)
        self.held.discard(s)
        self.add("release", s)

    def fraction(self):
        x = self.r.random()
        self.add("fraction", self.r.choice((0.0, 1.0, 1.0, 0.5, 0.25, 0.9, 0.999)) if x < 0.6 else round(self.r.random(), 3) if x < 0.95 else self.r.choice((0, 1, -0.5, 1.5)))

    def config_(self):
        if self.r.random() * 100 < self.profile.odd:
            self.add("config", settings.odd(self.r, self.profile.config, self.torch))
        else:
            text, options = settings.good(self.r, self.profile.config, self.torch, False)
            self.options = options or self.options
            self.add("config", text)

    def capacity_(self):
        self.add("capacity", self.r.choice((0, self.capacity // 2, self.capacity, self.capacity, 2 * self.capacity, self.capacity + 20 * M, self.r.randrange(2 * self.capacity))))

    def fail_next(self):
        self.add("fail_next", self.r.choice((1, 1, 1, 2, 2, 3, 5, 0)))

    def may_end(self, p):
        """Returns whether the object of pool `p` may end now."""
        others = [q for q in self.open if q != p]
        return self.graph is None and (has(self.torch, POOL_MAY_END_BESIDE_OTHERS_SINCE) or not others)

    def pool_new(self):
        if len(self.pools) >= 4 and self.r.random() < 0.8:
            return
        fresh = max([0, *self.pools, *self.open]) + 1
        again = [p for p in self.pools if p not in self.open and self.may_end(p)]
        p = self.r.choice(again) if again and self.r.random() < 0.1 else fresh
        options = {k: self.r.random() < 0.6 for k in ("use_on_oom", "no_split") if self.r.random() < 0.35}
        # A release without these options refuses to make the pool; sometimes that is tried.
        unknown = {k for k, since in POOL_OPTION_SINCE.items() if not has(self.torch, since)}
        if unknown and self.r.random() < 0.9:
            options = {k: v for k, v in options.items() if k not in unknown}
        self.add("pool_new", p, options) if options or self.r.random() < 0.1 else self.add("pool_new", p)
        if p not in self.pools and not unknown & options.keys():
            self.pools.append(p)

    def pool_begin(self):
        idle = [p for p in self.pools if p not in self.open]
        if self.dying is not None:
            return
        if not self.pools:
            self.pool_new()
        elif self.r.random() < 0.02 and self.open:
            # A second begin without an end: the first context ends, the second begins.
            again = self.r.choice(self.open)
            self.open.remove(again)
            self.open.append(again)
            self.add("pool_begin", again)
        elif idle and len(self.open) < 3:
            p = self.r.choice(idle)
            self.open.append(p)
            self.add("pool_begin", p)

    def pool_end(self):
        if self.open:
            # Mostly the newest; PyTorch allows any.
            i = -1 if self.r.random() < 0.8 else self.r.randrange(len(self.open))
            if self.open[i] == self.dying:
                if not self.may_end(self.dying):
                    return
                self.dying = None
            self.add("pool_end", self.open.pop(i))

    def pool_del(self):
        candidates = [p for p in self.pools if self.may_end(p) and (p not in self.open or self.dying is None)]
        if candidates:
            p = self.r.choice(candidates)
            if p in self.open:
                self.dying = p
            self.pools.remove(p)
            self.add("pool_del", p)

    def graph_begin(self):
        if self.graph is None and self.dying is None:
            self.graph = self.next_id = self.next_id + 1
            self.add("graph_begin", self.graph)

    def graph_end(self):
        if self.graph is not None:
            self.graphs.append(self.graph)
            self.add("graph_end", self.graph)
            self.graph = None

    def graph_del(self):
        if self.graphs:
            self.add("graph_del", self.graphs.pop(self.r.randrange(len(self.graphs))))

    def finish(self):
        """Closes what is open, the innermost first."""
        self.graph_end()
        while self.open:
            self.add("pool_end", self.open.pop())

    def one(self):
        rest = 60.0
        names = [*self.weights, "blocks"]
        k = self.r.choices(names, [*self.weights.values(), rest])[0]
        if k == "blocks":
            # Keeps the number of live blocks around its target.
            self.free() if self.live and self.r.random() < 0.5 + 0.4 * (len(self.live) - self.target) / self.target else self.malloc()
        elif k in ("config", "capacity"):
            getattr(self, k + "_")()
        elif hasattr(self, k):
            getattr(self, k)()
        else:
            self.add(k)


def is_tried(script):
    """Returns whether a script has one capture at a time: none begins in another, none is deleted while it is open."""
    capture = None
    for op in script["ops"]:
        if op[0] == "graph_begin":
            if capture is not None:
                return False
            capture = op[1]
        elif op[0] in ("graph_end", "graph_del") and op[1] == capture:
            if op[0] == "graph_del":
                return False
            capture = None
    return True


def script(name, seed, torch="2.11"):
    """Returns the script of a subject (a name in PROFILES) and a seed, with the options that the release knows."""
    w = Writer(name, seed, torch)
    length = int(2 ** w.r.uniform(4.3, 11))
    while len(w.ops) < length:
        w.one()
        # Sometimes the wanted number of blocks changes.
        if w.r.random() < 0.01:
            w.target = w.r.choice(w.profile.live)
    w.finish()
    return {
        "name": f"{name}_{seed}",
        "config": w.config,
        "capacity_bytes": w.capacity,
        "va": "bump" if w.r.random() < 0.1 else "firstfit",
        "driver": False,
        "ops": w.ops,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--focus", choices=list(PROFILES), default="everything")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--torch", default="2.11")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(PROFILES))
    else:
        json.dump(script(arguments.focus, arguments.seed, arguments.torch), sys.stdout, separators=(",", ":"))
        print()


if __name__ == "__main__":
    main()
