#!/usr/bin/env python3
"""Tests of the farm's parts. They need no environment:  ./check.py"""

import unittest

import compare
import generate
from profiles import PROFILES
from shrink import shrink

EMPTY = {"malloc": [], "errors": {}, "trace": [], "snapshots": [], "final": {"segments": [], "stats": {}}, "settings": {}}


class Scripts(unittest.TestCase):
    def test_a_seed_stands_for_one_script(self):
        for name in PROFILES:
            self.assertEqual(generate.script(name, 5), generate.script(name, 5))
            self.assertNotEqual(generate.script(name, 5)["ops"], generate.script(name, 6)["ops"])

    def test_what_is_opened_is_closed(self):
        for name in ("pools", "graphs", "pool_graphs", "everything"):
            for seed in range(40):
                open_pools, graphs = set(), 0
                for op in generate.script(name, seed)["ops"]:
                    if op[0] == "pool_begin":
                        open_pools.add(op[1])
                    elif op[0] == "pool_end":
                        open_pools.remove(op[1])
                    graphs += (op[0] == "graph_begin") - (op[0] == "graph_end")
                    self.assertIn(graphs, (0, 1))
                self.assertEqual((open_pools, graphs), (set(), 0))


class Comparing(unittest.TestCase):
    def check(self, ours, real, section, texts=False):
        found = compare.difference({**EMPTY, **ours}, {**EMPTY, **real}, [["malloc", 1, 5, 0]] * 9, texts)
        self.assertEqual(found and found[0], section)

    def test_sections(self):
        row = [3, "alloc", 0, 512, 0]
        oom = "oom: Tried to allocate {} MiB. GPU 0 has a total of {} GiB"
        self.check({}, {}, None)
        self.check({"trace": [row]}, {"trace": [row]}, None)
        self.check({"trace": [row]}, {}, "trace")
        self.check({"trace": [row]}, {"trace": [[-1, *row[1:]]]}, None)
        self.check({"trace": [row], "malloc": [[1, 0]]}, {}, "malloc")
        self.check({"errors": {"2": "bad"}}, {"errors": {"2": "ValueError: no"}}, None)
        self.check({"errors": {"2": "bad"}}, {"errors": {"2": "ValueError: no"}}, "errors", texts=True)
        self.check({"errors": {"2": oom.format("2.00", 4)}}, {"errors": {"2": oom.format("2.00", 4) + " more"}}, None)
        self.check({"errors": {"2": oom.format("2.00", 4)}}, {"errors": {"2": oom.format("4.00", 4)}}, "errors")
        self.check({"errors": {"2": "bad"}}, {"errors": {"2": oom.format("2.00", 4)}}, "errors")
        self.check({"settings": {"a": 1}}, {"settings": {"a": 2}}, "settings.a")

    def test_refusals_and_crashes(self):
        self.assertIsNone(compare.difference({"refused": "a"}, {"refused": "b"}))
        self.assertEqual(compare.difference(EMPTY, {"refused": "b"})[0], "refused")
        self.assertEqual(compare.difference({"crashed": "panicked at a/b.rs:3:4: oh"}, EMPTY)[0], "crash ours a/b.rs")

    def test_settled_forgets_the_order_inside_a_run_only(self):
        a, b, c = ([1, "free_completed", n, 512, 0] for n in (1, 2, 3))
        other = [1, "alloc", 9, 512, 0]

        def trace(*rows):
            return compare.settled({**EMPTY, "trace": list(rows)})["trace"]

        self.assertEqual(trace(a, b, other, c), trace(b, a, other, c))
        self.assertNotEqual(trace(a, other, b), trace(b, other, a))

    def test_first_difference_in_a_list(self):
        real = list(range(100))
        for i in (0, 1, 49, 50, 98, 99):
            self.assertEqual(compare.first_in_list([*real[:i], -1, *real[i + 1 :]], real), i)
        self.assertEqual(compare.first_in_list(real[:7], real), 7)


class Shrinking(unittest.TestCase):
    def test_what_matters_stays(self):
        ops = [["malloc", i, 1, 0] for i in range(500)]
        script = {"config": "a:1,b:2,c:3", "va": "bump", "ops": [*ops, ["config", "d:1,e:2"]]}

        def differs(s):
            ids = {o[1] for o in s["ops"]}
            return {77, 400} <= ids and "b:2" in s["config"] and any(o[0] == "config" and "e:2" in o[1] for o in s["ops"])

        small = shrink(script, differs)
        self.assertEqual(small["ops"], [ops[77], ops[400], ["config", "e:2"]])
        self.assertEqual((small["config"], small["va"]), ("b:2", "firstfit"))


if __name__ == "__main__":
    unittest.main()
