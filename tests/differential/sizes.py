"""Request sizes, in families. Each family is about one decision that the allocator makes by size.

A family is a function from a random number generator and the settings at the start of the script to a number of bytes.
"""

K, M, G = 1 << 10, 1 << 20, 1 << 30

# The allocator's own thresholds (allocator constants of PyTorch): quantum, small/large pool, segment classes.
THRESHOLDS = (512, 1024, 4 * K, 512 * K, M, 2 * M, 3 * M, 10 * M, 12 * M, 20 * M, 22 * M, 32 * M, 40 * M)
NEAR = (-2 * M, -M - 512, -M, -513, -512, -511, -1, 0, 1, 511, 512, 513, M - 512, M, M + 512, 2 * M)


def tiny(r, _):
    return r.choice((1, 2, 511, 512, 513, 1024, 1025, 4096)) if r.random() < 0.3 else r.randrange(1, 8 * K)


def small(r, _):
    return min(M, int(2 ** r.uniform(9, 20.2)))


def middle(r, _):
    return int(2 ** r.uniform(20, 23.32))


def large(r, _):
    return int(2 ** r.uniform(23.32, 26.5))


def page(r, settings):
    """Whole pages of expandable segments, or a little more or less."""
    unit = r.choice((2 * M, 20 * M, settings.get("large_segment_size_mb", 20) * M))
    return max(1, unit * r.randrange(1, 5) + r.choice((0, 0, 0, -512, 512, -1, 1, -M)))


def edge(r, settings):
    """A threshold, including those of the settings, or a step beside it."""
    limits = list(THRESHOLDS)
    if "max_split_size_mb" in settings:
        limits += [settings["max_split_size_mb"] * M] * 6
        limits += [(settings["max_split_size_mb"] + settings.get("max_non_split_rounding_mb", 20)) * M] * 3
    if "large_segment_size_mb" in settings:
        limits += [settings["large_segment_size_mb"] * M] * 4
    return max(1, r.choice(limits) + r.choice(NEAR))


def few(r, _):
    """A few sizes, so that many free blocks are equal."""
    return r.choice((512, 64 * K, M, 5 * M, 5 * M, 10 * M, 10 * M, 20 * M, 30 * M))


def doubled(r, _):
    """Around powers of two and their divisions: where `roundup_power2_divisions` decides."""
    power = 1 << r.randrange(9, 28)
    return max(1, power + r.randrange(8) * power // 8 + r.choice((-512, -1, 0, 0, 1, 512)))


def absurd(r, _):
    """More than any device has: overflow, the limit of 1 EiB, and sizes that do not fit in 64 bits."""
    return r.choice((
        0, 0, G, 64 * G, 1 << 40, (1 << 59) + 1, (1 << 60) - (2 * M), (1 << 60) - 512, (1 << 60) - 1, 1 << 60, (1 << 60) + 1,
        1 << 61, 1 << 62, (1 << 63) - (2 * M), (1 << 63) - 512, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, -1, -(1 << 63),
    ))  # fmt: skip


FAMILIES = {f.__name__: f for f in (tiny, small, middle, large, page, edge, few, doubled, absurd)}


def draw(r, weights, settings):
    """Returns a size of one of the families in `weights` (name to weight)."""
    names = list(weights)
    return FAMILIES[r.choices(names, [weights[n] for n in names])[0]](r, settings)
