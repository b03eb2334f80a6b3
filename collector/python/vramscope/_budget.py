"""What the mode *within a budget* reckons with: its share of the time, which entries of a history are new, and how many
are missing. Nothing here knows PyTorch or a clock.
"""

from __future__ import annotations

from ._library import CODES

COUNTED = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map")
COUNTED += ("segment_unmap", "oom")
"""Actions of which the allocator's statistics say how many there were."""


class Share:
    """A share of the time: what may be spent grows with the time that passes, up to a bound."""

    def __init__(self, share, now, most_seconds=0.25):
        self.share, self.most = share, most_seconds
        self._saved, self._at = 0.0, now

    def saved(self, now):
        """Seconds that may be spent now; negative where too much was spent."""
        self._saved = min(self.most, self._saved + self.share * max(0.0, now - self._at))
        self._at = max(self._at, now)
        return self._saved

    def spend(self, seconds, now):
        """Takes note of what was spent."""
        self.saved(now)
        self._saved -= seconds


class Pace:
    """How many entries PyTorch is to keep, so that reading them all stays within the share of the time and, where that
    can be, none is overwritten before it was read.

    A read costs about as much for each entry that is kept, new or not. So few are kept where few come; where more
    come than can be read, the most are, for one long view now and then, and at an out-of-memory.
    """

    LEAST = 256
    SECONDS = 0.25
    """Between two reads, where that can be: what a page shows is so old at most."""

    def __init__(self, share, most):
        self.share, self.most = share, max(most, 1)
        self.least = min(self.LEAST, self.most)
        # As measured with torch 2.4 to 2.15: better known after the first read.
        self.per_item = 10e-6
        self.rate = 0.0

    def measured(self, seconds, items):
        """A read of so many entries and blocks took so long."""
        if items > 0:
            self.per_item += (seconds / items - self.per_item) * (0.5 if items >= 64 else 0.1)

    def came(self, events, seconds):
        """So many events happened in so many seconds."""
        if seconds > 0:
            self.rate += (events / seconds - self.rate) * min(1.0, seconds)

    def cost(self, entries, blocks):
        """Seconds that a read is likely to take."""
        return self.per_item * (entries + blocks)

    def keep(self, kept, blocks):
        """How many entries to keep, when it is `kept` now."""
        size = self.least
        while size < self.most:
            seconds = max(self.SECONDS, self.cost(size, blocks) / self.share)
            if size >= 2 * self.rate * seconds:
                break
            size = min(2 * size, self.most)
        # Every change loses what happens meanwhile, so it must be worth it.
        return size if size > kept or size * 4 <= kept else kept


def key(entry):
    """What tells an entry of a history from others."""
    address = entry.get("addr", entry.get("device_free", 0))
    return entry.get("time_us", 0), entry["action"], address, entry["size"]


class Tail:
    """The latest entries that are known, to find what is new in a later reading."""

    KEPT = 16

    def __init__(self):
        self._known = []

    def forget(self):
        """The history was begun anew."""
        self._known = []

    def first_new(self, entries, kept):
        """Where in `entries`, oldest first, the first new one is; None where the known ones are not there any more.
        `kept`: as many entries are kept at most."""
        known = self._known
        if not known:
            # Begun anew: what came is all there until the oldest was overwritten.
            return 0 if len(entries) < kept else None
        for at in range(len(entries) - 1, -1, -1):
            if key(entries[at]) != known[-1]:
                continue
            if all(key(entries[at - back]) == known[-1 - back] for back in range(1, min(len(known), at + 1))):
                return at + 1
        return None

    def remember(self, entries):
        """Knows these, the latest ones, from now on."""
        if entries:
            self._known = [key(entry) for entry in entries[-self.KEPT :]]


class Ledger:
    """How many events there were, by the allocator's count, and how many of them were seen."""

    def __init__(self, counts):
        self._at_start = counts
        self._accounted = dict.fromkeys(COUNTED, 0)

    def seen(self, action):
        """One more of this action is accounted for."""
        if action in self._accounted:
            self._accounted[action] += 1

    def lost(self, counts):
        """{action: how many are missing} up to the moment of `counts`, and accounts for them. None: nobody knows,
        because the statistics were reset; counting begins anew."""
        total = {action: counts[action] - self._at_start[action] for action in COUNTED}
        if any(count < 0 for count in total.values()):
            self._at_start = dict(counts)
            self._accounted = dict.fromkeys(COUNTED, 0)
            return None
        missing = {action: total[action] - self._accounted[action] for action in COUNTED}
        # What was seen after `counts` were taken makes less than nothing.
        missing = {action: count for action, count in missing.items() if count > 0}
        for action, count in missing.items():
            self._accounted[action] += count
        return missing

    def waiting(self, counts):
        """About how many events were not seen yet."""
        return sum(max(0, counts[a] - self._at_start[a] - self._accounted[a]) for a in COUNTED)


def counts(stats):
    """How many events of each action there were, by the allocator's statistics."""

    def total(name, which):
        return stats.get(name, {}).get("all", {}).get(which, 0)

    segments, freed = total("segment", "allocated"), total("segment", "freed")
    return {
        "alloc": total("allocation", "allocated"),
        "free_requested": total("allocation", "freed"),
        "free_completed": total("active", "freed"),
        "segment_alloc": segments,
        "segment_free": freed,
        # Calls of the driver that are not for segments of their own are for pages of expandable ones.
        "segment_map": max(0, stats.get("num_device_alloc", segments) - segments),
        "segment_unmap": max(0, stats.get("num_device_free", freed) - freed),
        "oom": stats.get("num_ooms", 0),
    }


def events(entries, to, stack_of):
    """Adds entries of a history to the columns `to`."""
    for entry in entries:
        pool = entry.get("pool_id") or (0, 0)
        to.action.append(CODES.get(entry["action"], CODES["other"]))
        to.address.append(entry.get("addr", entry.get("device_free", 0)))
        to.size.append(entry["size"])
        to.stream.append(entry.get("stream", 0))
        to.pool0.append(pool[0])
        to.pool1.append(pool[1])
        to.stack.append(stack_of(entry.get("frames")))
        to.time_us.append(entry.get("time_us", 0))
    return to
