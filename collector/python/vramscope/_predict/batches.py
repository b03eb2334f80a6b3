"""Repeats the first batches of a program's data: what it loads and decodes is not what takes GPU memory."""

import functools


def repeat(loader, number):
    """Makes each pass over a `DataLoader`, which is the class `loader`, load `number` batches and repeat them, as many as it would have
    had."""
    real = loader.__iter__

    @functools.wraps(real)
    def iterate(self):
        kept, left = [], real(self)
        for batch in left:
            kept.append(batch)
            yield batch
            if len(kept) == number:
                break
        else:
            return
        # Its workers end with it.
        del left
        try:
            more = len(self) - number
        except TypeError:  # An `IterableDataset` that does not know.
            more = None
        place = 0
        while more is None or place < more:
            yield kept[place % number]
            place += 1

    loader.__iter__ = iterate
