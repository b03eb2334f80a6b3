"""The mode *within a budget*: reads PyTorch's own functions within a share of the job's time, without a compiler.

Statistics are read at short intervals, the history in increments: PyTorch keeps its latest entries, a snapshot contains
all of them, and those that the last snapshot did not contain are new. Entries that were overwritten before they were read
are lost; the allocator's statistics say how many they were, by action.
"""

from __future__ import annotations

import itertools
import time

from . import _annotations, _backward, _budget, _history, _library, _outside, _state, _torch

STATS_SECONDS = 0.1
LOSS_SECONDS = 1.0
"""The time between two reports of lost events while there is no history."""


class Sampler:
    """Reads and records the statistics of every device, and the memory beside its allocator."""

    def __init__(self, torch, library, numbers):
        self._torch, self._library, self._numbers = torch, library, numbers
        self._recorded = {}
        self._outside = _outside.Outside(torch, library, numbers)

    def sample(self):
        """Returns each device's statistics. Records those that have changed or were not recorded for a second."""
        found, reserved, now = {}, {}, time.monotonic()
        for device in self._numbers:
            stats = found[device] = _torch.stats(self._torch, device)
            sums = _torch.sums(stats)
            reserved[device] = sums[2]
            before, at = self._recorded.get(device, (None, 0.0))
            if sums != before or now - at >= 1.0:
                self._library.sample(device, 0, *sums)
                self._recorded[device] = (sums, now)
        self._outside.sample(reserved)
        return found


class WithinBudget:
    """The mode *within a budget*."""

    def __init__(self, torch, library, stacks, context, budget, history):
        self.name = f"within a budget of {100 * budget:g} %"
        self._torch, self._library = torch, library
        self._stacks, self._context, self._budget = stacks, context, budget
        self._pace = _budget.Pace(budget, history)
        self._share = _budget.Share(budget, time.perf_counter())
        self._kept = self._pace.max_entries
        self._blocks = 0
        self._history = _history.History(torch, lambda: self._record(self._kept), stacks is not None)
        self._has_history = True
        self._backward = _backward.Backward(torch, library) if stacks is not None else None
        self._folders = _backward.folders(torch)
        self._detail = _budget.Detail(budget, stacks is not None)
        self._reported_at = time.perf_counter()
        self._stats_seconds = STATS_SECONDS
        self._read_at = time.perf_counter()
        self._counted = 0
        self._reads = 0
        self._spent = 0.0

    # ---- start and end ------------------------------------------------------------------------------------------

    def open(self, config):
        """Reads the present state and starts the recording."""
        torch, library = self._torch, self._library
        self._numbers = [device["number"] for device in config["devices"]]
        self._names = _state.Names(library)
        self.stack_of = self._names.stack if self._stacks else None
        self._metadata = {}
        self._tails = {device: _budget.Tail() for device in self._numbers}
        self._is_covered = dict.fromkeys(self._numbers, True)
        self._sampler = Sampler(torch, library, self._numbers)
        self._has_history = _torch.backend(torch) == "native"
        segments = {device: [] for device in self._numbers}
        if self._has_history:
            self._history.open()
            self._changes = self._history.changes
            snapshot = _torch.snapshot(torch, traces=True)
            config["settings"] = _torch.settings(snapshot)
            self._annotations = _annotations.Annotations(snapshot)
            segments = _state.by_device(snapshot["segments"], self._numbers)
            for device, entries in enumerate(snapshot["device_traces"]):
                if device in self._tails:
                    self._tails[device].remember(entries)
        else:
            self.name += ", statistics only"
        for device in self._numbers:
            library.segments(_library.START, device, _state.columns(segments[device]))
        library.start(config)
        if self._backward is not None and self._has_history:
            self._backward.open()
        stats = {device: _budget.counts(_torch.stats(torch, device)) for device in self._numbers}
        self._ledgers = {device: _budget.Ledger(stats[device]) for device in self._numbers}

    def stop(self, seconds):
        """Reads the rest, and ends the history if this agent started it."""
        self._sampler.sample()
        if self._has_history:
            self._read(is_last=True)
            self._history.close()
        if self._backward is not None:
            self._backward.close()

    def write_end(self):
        """Records the state at the end."""
        snapshot = _torch.snapshot(self._torch, traces=False)
        self._pass_state_on(_library.END, snapshot)

    def _pass_state_on(self, when, snapshot):
        for device, segments in _state.by_device(snapshot["segments"], self._numbers).items():
            try:
                self._library.segments(when, device, _state.columns(segments, self.stack_of))
            except _library.LibraryError:
                pass  # The queue is full. The recording's end has the segments too.

    def _record(self, entries):
        context = self._context if self._detail.level == _budget.Detail.STACKS else None
        _torch.record_history(self._torch, entries, context, self._stacks or "python")
        self._kept = entries

    # ---- recording ----------------------------------------------------------------------------------------------

    def interval(self):
        """Returns the seconds until the next turn."""
        return self._stats_seconds

    def turn(self):
        """Reads statistics, and also the history if the budget allows it or a viewer asked for it."""
        spent = time.thread_time()
        stats = self._sampler.sample()
        spent, now = time.thread_time() - spent, time.perf_counter()
        self._spend(spent)
        # Statistics use at most a quarter of the share.
        self._stats_seconds = max(STATS_SECONDS, 4 * spent / self._budget)
        if not self._has_history:
            return
        self._history.check()
        counts = {device: _budget.counts(of) for device, of in stats.items()}
        total = sum(sum(of.values()) for of in counts.values())
        waiting = sum(self._ledgers[device].waiting(counts[device]) for device in counts)
        self._pace.happened(max(0, total - self._counted) if self._counted else 0, self._stats_seconds)
        self._counted = total
        if self._history.is_ours or self._detail.level == _budget.Detail.NOTHING:
            self._choose_detail(now, counts)
        gathering = self._detail.seconds(self._pace.rate) if self._history.is_ours else 0.0
        self._share.share = max(0.25 * self._budget, self._budget - gathering)
        asked = self._library.poll_ask()
        if self._detail.level == _budget.Detail.NOTHING and not asked:
            return
        entries = self._kept * len(self._numbers)
        if self._history.is_ours:
            entries = min(entries, waiting + self._kept)
        # A read that costs more than the budget can hold is made on credit, which delays the next one.
        price = min(self._pace.cost(entries, self._blocks), 0.9 * self._share.max_seconds)
        is_due = waiting > 0 and self._share.saved(now) >= price
        if is_due or asked:
            self._read(with_state=asked == "state")

    def flush(self, seconds):
        """Reads the history."""
        if self._has_history:
            self._read()

    def out_of_memory(self, seconds):
        """Reads the whole history and the state, regardless of the budget."""
        self._sampler.sample()
        if self._has_history:
            self._read(with_state=True)

    def _choose_detail(self, now, counts):
        """Changes what the history holds, if keeping it takes too much of the budget, or no longer does."""
        before, level = self._detail.level, self._detail.allowed(self._pace.rate, self._pace.latest)
        if level == before:
            if level == _budget.Detail.NOTHING and now - self._reported_at >= LOSS_SECONDS:
                self._report_lost(counts)
                self._reported_at = now
            return
        if before != _budget.Detail.NOTHING and self._share.saved(now) >= self._pace.cost(self._kept, self._blocks):
            self._read(is_last=True)
        self._detail.level = level
        if level == _budget.Detail.NOTHING:
            self._history.pause()
        elif before == _budget.Detail.NOTHING:
            self._history.resume()
        else:
            self._record(self._kept)
        for tail in self._tails.values():
            tail.interrupt()

    def _report_lost(self, counts):
        for device in self._numbers:
            for action, count in (self._ledgers[device].lost(counts[device]) or {}).items():
                self._library.lost(device, _library.CODES[action], count)

    def _spend(self, seconds):
        self._spent += seconds
        self._share.spend(seconds, time.perf_counter())

    def _read(self, with_state=False, is_last=False):
        began, torch = time.thread_time(), self._torch
        # Read before the snapshot, so that events between the two are seen and not counted as lost.
        counts = {device: _budget.counts(_torch.stats(torch, device)) for device in self._numbers}
        if self._history.changes != self._changes:
            self._changes = self._history.changes
            for tail in self._tails.values():
                tail.interrupt()
        snapshot = _torch.snapshot(torch, traces=True)
        items, has_loss = 0, False
        traces = snapshot["device_traces"]
        for device in self._numbers:
            entries = traces[device] if device < len(traces) else []
            items += len(entries)
            has_loss |= self._add(device, entries, counts[device])
        self._blocks = sum(len(segment["blocks"]) for segment in snapshot["segments"])
        if with_state or has_loss:
            self._pass_state_on(_library.NOW, snapshot)
        for annotation in self._annotations.new(snapshot):
            # While the history is the agent's, the job has not asked for them.
            if annotation[0] in self._tails and not self._history.is_ours:
                self._library.mark(*annotation)
        self._names.next_snapshot()
        self._reads += 1
        del snapshot, traces
        wanted = self._pace.keep(self._kept, self._blocks)
        if self._history.is_ours and not is_last and wanted != self._kept:
            self._record(wanted)
            for tail in self._tails.values():
                tail.interrupt()
        spent = time.thread_time() - began
        self._pace.measured(spent, items + self._blocks)
        self._spend(spent)
        self._read_at = time.perf_counter()

    def _add(self, device, entries, counts):
        """Records a device's new entries. Returns whether entries before them were lost."""
        tail, ledger = self._tails[device], self._ledgers[device]
        first = tail.first_new(entries, self._kept)
        new = entries if first is None else entries[first:]
        tail.remember(entries)
        if self._is_covered[device] and first is not None:
            # PyTorch made this entry when it copied the state at the start, which contains everything before it.
            at = next((i for i, entry in enumerate(new) if entry["action"] == "snapshot"), None)
            if at is not None:
                self._is_covered[device] = False
                ledger = self._ledgers[device] = _budget.Ledger(self._counts_before(counts, new[at + 1 :]))
                new, first = new[at + 1 :], 0
        for entry in new:
            ledger.seen(entry["action"])
        has_loss = False
        if first is None:
            self._is_covered[device] = False
            lost = ledger.lost(counts)
            # If the number is unknown, it is at least one.
            for action, count in ({"other": 1} if lost is None else lost).items():
                self._library.lost(device, _library.CODES[action], count)
                has_loss = True
        for text, entries in itertools.groupby(new, lambda entry: entry.get("user_metadata") or ""):
            if text != self._metadata.get(device, ""):
                self._library.metadata(device, self._library.text(text))
                self._metadata[device] = text
            columns = _budget.events(entries, _library.Events(), self._stack_of_entry)
            self._library.events(device, columns)
        return has_loss

    def _stack_of_entry(self, entry):
        if not self._stacks:
            return 0
        frames = entry.get("frames")
        # An entry for which PyTorch gathered no stack has no list.
        if frames is None or any(self._is_own(frame) for frame in frames):
            return self.stack_of(frames)
        return self._backward.at(entry.get("time_us", 0)) or self.stack_of(frames)

    def _is_own(self, frame):
        return bool(frame["line"]) and not frame["filename"].startswith(self._folders)

    @staticmethod
    def _counts_before(counts, entries):
        """Returns `counts` as they were before these entries."""
        before = dict(counts)
        for entry in entries:
            if entry["action"] in before:
                before[entry["action"]] -= 1
        return before

    def stats(self):
        return {"reads": self._reads, "spent_seconds": round(self._spent, 6), "kept": self._kept, "keeps": _budget.Detail.NAMES[self._detail.level]}
