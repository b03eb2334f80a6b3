"""The calculations of the mode *within a budget*: its share of the time, which entries of a history are new, and how many
are missing. Nothing here uses PyTorch or reads a clock.
"""

from __future__ import annotations

from ._library import CODES

COUNTED = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map")
COUNTED += ("segment_unmap", "oom")
"""Actions that the allocator's statistics count."""


class Share:
    """A budget that grows with a share of the elapsed time, up to a bound."""

    def __init__(self, share, now, max_seconds=0.25):
        self.share, self.max_seconds = share, max_seconds
        self._saved, self._at = 0.0, now

    def saved(self, now):
        """Returns the seconds that may be spent now; negative if too much was spent."""
        self._saved = min(self.max_seconds, self._saved + self.share * max(0.0, now - self._at))
        self._at = max(self._at, now)
        return self._saved

    def spend(self, seconds, now):
        """Subtracts spent seconds."""
        self.saved(now)
        self._saved -= seconds


class Pace:
    """Decides how many entries PyTorch keeps, so that reading all of them stays within the share of the time and, if
    possible, none is overwritten before it is read.

    A read costs the same for each kept entry, new or old. So few entries are kept for few events. If there are more events
    than can be read, as many entries as allowed are kept: for an occasional long view, and for out-of-memory errors.
    """

    MIN_ENTRIES = 256
    SECONDS = 0.25
    """The time between two reads, if the share allows it: a page is at most this far behind."""

    def __init__(self, share, max_entries):
        self.share, self.max_entries = share, max(max_entries, 1)
        self.min_entries = min(self.MIN_ENTRIES, self.max_entries)
        # As measured with torch 2.4 to 2.15. The first read gives a better estimate.
        self.per_item = 10e-6
        self.rate = self.latest = 0.0

    def measured(self, seconds, items):
        """Updates the estimate: a read of `items` entries and blocks took `seconds`."""
        if items > 0:
            self.per_item += (seconds / items - self.per_item) * (0.5 if items >= 64 else 0.1)

    def happened(self, events, seconds):
        """Updates the rate: `events` happened in `seconds`."""
        if seconds > 0:
            self.latest = events / seconds
            self.rate += (events / seconds - self.rate) * min(1.0, seconds)

    def cost(self, entries, blocks):
        """Returns the estimated seconds of a read."""
        return self.per_item * (entries + blocks)

    def keep(self, kept, blocks):
        """Returns how many entries to keep, given that `kept` are kept now."""
        size = self.min_entries
        while size < self.max_entries:
            seconds = max(self.SECONDS, self.cost(size, blocks) / self.share)
            if size >= 2 * self.rate * seconds:
                break
            size = min(2 * size, self.max_entries)
        # A change loses the events that happen during it, so only large changes are made.
        return size if size > kept or size * 4 <= kept else kept


class Detail:
    """Decides what a history may hold, so that recording it takes at most half of the share of the time."""

    NOTHING, EVENTS, STACKS = range(3)
    NAMES = ("nothing", "events", "stacks")
    SECONDS = (0.0, 0.1e-6, 1.5e-6)
    """The average times in which PyTorch keeps an event: without and with its stack. They count as the agent's, because they
    cost the job. Measured with torch 2.6 to 2.15, the stacks with a dozen frames."""
    BURST = 4
    """How many times the bound a single interval's rate may be."""

    def __init__(self, share, has_stacks):
        self._share = share
        self._most = self.STACKS if has_stacks else self.EVENTS
        self.level = self._most

    def allowed(self, rate, latest):
        """Returns the level for events at an average rate, and a latest one, in events per second."""
        for level in range(self._most, self.NOTHING, -1):
            bound = 0.5 * self._share / self.SECONDS[level]
            # After it was too much, it must fall to half of that bound.
            bound = bound if level <= self.level else 0.5 * bound
            if rate <= bound and latest <= self.BURST * bound:
                return level
        return self.NOTHING

    def seconds(self, rate):
        """Returns the time in which PyTorch keeps one second's events at the present level."""
        return rate * self.SECONDS[self.level]


def key(entry):
    """Returns what identifies an entry of a history."""
    address = entry.get("addr", entry.get("device_free", 0))
    return entry.get("time_us", 0), entry["action"], address, entry["size"]


class Tail:
    """Remembers the latest entries, to find the new ones in a later read."""

    KEPT = 16

    def __init__(self):
        self._known = []
        self._is_whole = True

    def forget(self):
        """Forgets all entries, because the history was restarted."""
        self._known = []
        self._is_whole = True

    def interrupt(self):
        """Notes that the job may have cleared the history, so that entries may be missing before those to come."""
        self._is_whole = False

    def first_new(self, entries, kept):
        """Returns the index of the first new entry in `entries`, oldest first; None if the known ones were overwritten.
        `kept` is the most entries that PyTorch keeps."""
        known = self._known
        if not known:
            # After a restart the history is complete until its oldest entry is overwritten.
            return 0 if self._is_whole and len(entries) < kept else None
        for at in range(len(entries) - 1, -1, -1):
            if key(entries[at]) != known[-1]:
                continue
            if all(key(entries[at - back]) == known[-1 - back] for back in range(1, min(len(known), at + 1))):
                return at + 1
        return None

    def remember(self, entries):
        """Remembers the latest of `entries`."""
        if entries:
            self._known = [key(entry) for entry in entries[-self.KEPT :]]
            self._is_whole = True


class Ledger:
    """Compares the allocator's event counts with the events that were seen."""

    def __init__(self, counts):
        self._at_start = counts
        self._accounted = dict.fromkeys(COUNTED, 0)

    def seen(self, action):
        """Counts one seen event of this action."""
        if action in self._accounted:
            self._accounted[action] += 1

    def lost(self, counts):
        """Returns how many events of each action are missing up to the moment of `counts`, and counts them as seen. Returns
        None if the statistics were reset, so that the number is unknown; counting then starts again."""
        total = {action: counts[action] - self._at_start[action] for action in COUNTED}
        if any(count < 0 for count in total.values()):
            self._at_start = dict(counts)
            self._accounted = dict.fromkeys(COUNTED, 0)
            return None
        missing = {action: total[action] - self._accounted[action] for action in COUNTED}
        # Events seen after `counts` were read make a negative difference.
        missing = {action: count for action, count in missing.items() if count > 0}
        for action, count in missing.items():
            self._accounted[action] += count
        return missing

    def waiting(self, counts):
        """Returns roughly how many events were not seen yet."""
        return sum(max(0, counts[a] - self._at_start[a] - self._accounted[a]) for a in COUNTED)


def counts(stats):
    """Returns how many events of each action the allocator's statistics count."""

    def total(name, which):
        return stats.get(name, {}).get("all", {}).get(which, 0)

    segments, freed = total("segment", "allocated"), total("segment", "freed")
    return {
        "alloc": total("allocation", "allocated"),
        "free_requested": total("allocation", "freed"),
        "free_completed": total("active", "freed"),
        "segment_alloc": segments,
        "segment_free": freed,
        # Driver calls that do not create or release a segment map or unmap pages of an expandable one.
        "segment_map": max(0, stats.get("num_device_alloc", segments) - segments),
        "segment_unmap": max(0, stats.get("num_device_free", freed) - freed),
        "oom": stats.get("num_ooms", 0),
    }


def events(entries, to, stack_of):
    """Appends entries of a history to the columns `to`, and returns `to`. `stack_of` numbers the stack of an entry."""
    for entry in entries:
        pool = entry.get("pool_id") or (0, 0)
        to.action.append(CODES.get(entry["action"], CODES["other"]))
        to.address.append(entry.get("addr", entry.get("device_free", 0)))
        to.size.append(entry["size"])
        to.stream.append(entry.get("stream", 0))
        to.pool0.append(pool[0])
        to.pool1.append(pool[1])
        to.stack.append(stack_of(entry))
        to.time_us.append(entry.get("time_us", 0))
    return to
