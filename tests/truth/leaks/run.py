"""One run of a job: where its history ends, and what memory does as the program goes on."""

import random
import statistics

import torch


class Run:
    """What a job is given. It keeps no tensor, and allocates nothing on the device."""

    def __init__(self, snapshot):
        self.snapshot = snapshot
        self.number, self.step = 0, 0
        self.has_ended = False
        # Allocated bytes after each step: while the history was written, and in two spans of equal length afterwards.
        self.during, self.after = [], []

    def begin(self):
        """Begins the history."""
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.memory._record_memory_history(max_entries=1_000_000, context="all", stacks="python")

    def end(self):
        """Ends the history and writes the snapshot; the program goes on."""
        self.peak = torch.cuda.max_memory_allocated()
        torch.cuda.memory._dump_snapshot(str(self.snapshot))
        torch.cuda.memory._record_memory_history(enabled=None)
        self.has_ended = True

    def steps(self, number):
        """Counts `number` steps, after which the history ends, and twice as many after it."""
        self.number = number
        if not self.has_ended:
            yield from self.count(0, number, self.during)
            self.end()
        spans = [], []
        for turn, span in enumerate(spans, 1):
            yield from self.count(turn * number, number, span)
        self.after = [[min(span), max(span)] for span in spans]

    def count(self, first, number, span):
        for self.step in range(first, first + number):
            yield self.step
            span.append(torch.cuda.memory_allocated())

    def varied(self, low, high, of=0):
        """A number from `low` to `high` that varies from step to step; after the history, the same come again."""
        return random.Random(1000 * of + self.step % max(self.number, 1)).randint(low, high)

    def result(self):
        """What was counted."""
        middle = statistics.median(self.during[len(self.during) // 2 - 2 :][:4]) if self.during else None
        end = self.during[-1] if self.during else None
        return {"peak": self.peak, "middle": middle, "end": end, "after": self.after}
