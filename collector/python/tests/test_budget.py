"""The calculations of the mode *within a budget*, without torch."""

import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from vramscope import _annotations, _budget


def make(i, action="alloc"):
    # As in real histories, many entries share times and addresses.
    return {"action": action, "addr": 512 * (i % 7), "size": 512, "stream": 0, "time_us": i // 5}


class TailTest(unittest.TestCase):
    def test_new_entries_are_found_after_the_known_ones(self):
        entries = [make(i) for i in range(100)]
        # Entries known before; start and end of the read; the most kept; the index of the first new one.
        cases = [
            (0, 0, 10, 50, 0),
            (0, 0, 50, 50, None),
            (10, 0, 30, 50, 10),
            (10, 5, 30, 25, 5),
            (10, 9, 34, 25, 1),
            (10, 10, 35, 25, None),
            (30, 5, 30, 25, 25),
        ]
        for known, start, end, kept, want in cases:
            with self.subTest(known=known, start=start, end=end):
                tail = _budget.Tail()
                tail.remember(entries[:known])
                self.assertEqual(tail.first_new(entries[start:end], kept), want)

    def test_a_ring_is_read_without_losing_or_doubling_against_a_model(self):
        for seed in range(50):
            chance = random.Random(seed)
            kept, entries, seen, tail = 40, [], [], _budget.Tail()
            for _ in range(60):
                entries += [make(len(entries) + i, chance.choice(("alloc", "oom"))) for i in range(chance.randrange(0, 39))]
                ring = entries[-kept:]
                first = tail.first_new(ring, kept)
                self.assertIsNotNone(first, seed)
                seen += ring[first:]
                tail.remember(ring)
            self.assertEqual(seen, entries)


class LedgerTest(unittest.TestCase):
    def counts(self, **more):
        return {**dict.fromkeys(_budget.COUNTED, 0), **more}

    def test_an_unseen_event_is_lost_once(self):
        ledger = _budget.Ledger(self.counts(alloc=5))
        for _ in range(3):
            ledger.seen("alloc")
        ledger.seen("snapshot")
        self.assertEqual(ledger.waiting(self.counts(alloc=10, oom=1)), 3)
        self.assertEqual(ledger.lost(self.counts(alloc=10, oom=1)), {"alloc": 2, "oom": 1})
        self.assertEqual(ledger.lost(self.counts(alloc=10, oom=1)), {})
        # An event that was seen after the counts were read is not lost.
        ledger.seen("alloc")
        self.assertEqual(ledger.lost(self.counts(alloc=10, oom=1)), {})
        self.assertEqual(ledger.lost(self.counts(alloc=11, oom=1)), {})

    def test_after_a_reset_of_the_statistics_the_loss_is_unknown(self):
        ledger = _budget.Ledger(self.counts(alloc=50))
        self.assertIsNone(ledger.lost(self.counts(alloc=3)))
        self.assertEqual(ledger.lost(self.counts(alloc=4)), {"alloc": 1})

    def test_counts_are_those_of_the_statistics(self):
        def of(allocated, freed):
            return {"all": {"allocated": allocated, "freed": freed}}

        stats = {"allocation": of(10, 8), "active": of(10, 7), "segment": of(3, 1)}
        stats.update(num_device_alloc=5, num_device_free=1, num_ooms=2)
        want = self.counts(alloc=10, free_requested=8, free_completed=7, segment_alloc=3, segment_free=1)
        want.update(segment_map=2, oom=2)
        self.assertEqual(_budget.counts(stats), want)


class ShareTest(unittest.TestCase):
    def test_no_more_is_spent_than_the_share(self):
        share, now, spent = _budget.Share(0.01, 0.0), 0.0, 0.0
        chance = random.Random(1)
        while now < 1000:
            now += chance.random()
            cost = chance.random() / 20
            if share.saved(now) >= cost:
                share.spend(cost, now)
                spent += cost
        self.assertLess(spent, 0.01 * now)
        self.assertGreater(spent, 0.005 * now)

    def test_savings_are_bounded(self):
        share = _budget.Share(0.01, 0.0, max_seconds=0.25)
        self.assertEqual(share.saved(1e6), 0.25)


class PaceTest(unittest.TestCase):
    def test_few_entries_are_kept_for_few_events_and_the_most_for_too_many(self):
        # Events a second; how many entries to keep, at 10 µs each and one percent.
        for rate, want in ((0, 256), (100, 256), (400, 256), (2_000, 10_000), (100_000, 10_000)):
            with self.subTest(rate=rate):
                pace = _budget.Pace(0.01, 10_000)
                pace.rate = rate
                self.assertEqual(pace.keep(want, 0), want)
                kept = pace.keep(10_000, 0)
                seconds = max(pace.SECONDS, pace.cost(kept, 0) / pace.share)
                if want < 10_000:
                    self.assertGreaterEqual(kept, rate * seconds)

    def test_the_cost_is_learned(self):
        pace = _budget.Pace(0.01, 10_000)
        for _ in range(20):
            pace.measured(0.030, 1000)
        self.assertAlmostEqual(pace.cost(500, 500), 0.030, places=4)
        for _ in range(50):
            pace.happened(1000, 0.1)
        self.assertAlmostEqual(pace.rate, 10_000, delta=100)


class InterruptedTest(unittest.TestCase):
    def test_after_the_job_cleared_the_history_entries_may_be_missing(self):
        entries = [{"action": "alloc", "addr": at, "size": 1, "time_us": at} for at in range(30)]
        tail = _budget.Tail()
        self.assertEqual(tail.first_new(entries, 100), 0)
        tail.interrupt()
        self.assertIsNone(tail.first_new(entries, 100))
        tail.remember(entries[:20])
        # What is known is found in any case.
        tail.interrupt()
        self.assertEqual(tail.first_new(entries, 100), 20)


class DetailTest(unittest.TestCase):
    def test_keeping_a_history_takes_at_most_half_of_the_budget(self):
        names = _budget.Detail.NAMES
        # Rates, and what is kept after each: stacks up to 3,333 events a second, events up to 50,000.
        rates = [(3_000, "stacks"), (3_500, "events"), (2_000, "events"), (1_600, "stacks"), (49_000, "events")]
        rates += [(51_000, "nothing"), (26_000, "nothing"), (24_000, "events"), (900_000, "nothing"), (0, "stacks")]
        detail = _budget.Detail(0.01, True)
        for rate, name in rates:
            detail.level = detail.allowed(rate, rate)
            self.assertEqual(names[detail.level], name, rate)
            self.assertLessEqual(detail.seconds(rate), 0.005)
        # Without stacks.
        self.assertEqual(names[_budget.Detail(0.01, False).allowed(100, 100)], "events")

    def test_a_short_burst_changes_nothing_unless_it_is_large(self):
        detail = _budget.Detail(0.01, False)
        self.assertEqual(detail.allowed(40_000, 190_000), _budget.Detail.EVENTS)
        self.assertEqual(detail.allowed(40_000, 210_000), _budget.Detail.NOTHING)


class AnnotationsTest(unittest.TestCase):
    @staticmethod
    def snapshot(*notes):
        return {"external_annotations": [dict(zip(("name", "stage", "time_us", "device"), note)) for note in notes]}

    def test_only_new_annotations_and_open_spans_are_found(self):
        closed = [("a", "START", 1, 0), ("a", "END", 2, 0)]
        nested = [("b", "START", 3, 0), ("c", "START", 3, 1), ("b", "START", 3, 0), ("b", "END", 4, 0)]
        kept = _annotations.Annotations(self.snapshot(*closed, *nested))
        more = [("d", None, 4, 0), ("b", "END", 5, 0)]
        found = kept.new(self.snapshot(*closed, *nested, *more))
        self.assertEqual(found, [(0, "b", 0, 3), (1, "c", 0, 3), (0, "d", 2, 4), (0, "b", 1, 5)])
        self.assertEqual(kept.new(self.snapshot(*closed, *nested, *more)), [])
        # The oldest were overwritten, and more have the time of the latest.
        found = kept.new(self.snapshot(("b", "END", 5, 0), ("e", "START", 5, 0), ("e", "END", 6, 0)))
        self.assertEqual(found, [(0, "e", 0, 5), (0, "e", 1, 6)])
        self.assertEqual(kept.new({}), [])


if __name__ == "__main__":
    unittest.main()
