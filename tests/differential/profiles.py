"""The subjects of scripts: how often each operation occurs, and which sizes, settings, capacities and streams."""

from dataclasses import dataclass, field

M, G = 1 << 20, 1 << 30

# The chance of each option to be in a valid settings string.
ANY = {
    "max_split_size_mb": 0.35,
    "max_non_split_rounding_mb": 0.2,
    "large_segment_size_mb": 0.2,
    "garbage_collection_threshold": 0.3,
    "expandable_segments": 0.4,
    "roundup_power2_divisions": 0.25,
    "graph_capture_record_stream_reuse": 0.1,
    "per_process_memory_fraction": 0.15,
    "release_lock_on_cudamalloc": 0.05,
    "throw_on_cudamalloc_oom": 0.06,
    "expandable_segments_reserve": 0.12,
    "backend": 0.02,
}
MIXED = {"tiny": 2, "small": 4, "middle": 4, "large": 3, "edge": 3}
TIGHT = (30 * M, 60 * M, 90 * M, 128 * M, 200 * M, 333 * M)
ROOMY = (600 * M, G, 4 * G)
STREAMS = {"record_stream": 12, "hold": 3, "release": 3, "synchronize": 0.5}


@dataclass(frozen=True)
class Profile:
    """A subject. Weights are relative; `malloc` and `free` share the rest, depending on how many blocks are live."""

    operations: dict = field(default_factory=dict)
    sizes: dict = field(default_factory=lambda: MIXED)
    start: dict = field(default_factory=dict)
    config: dict = field(default_factory=lambda: ANY)
    capacities: tuple = TIGHT + ROOMY
    streams: tuple = (1, 1, 2)
    live: tuple = (4, 12, 40)
    # How many of 100 settings strings are odd.
    odd: float = 0
    # The chance that an id is used twice; a third of it, that an unknown one is freed or recorded.
    careless: float = 0
    # The chance that a request in a capture is on another stream than the capture's, which it never returns to.
    wander: float = 0


HOUSE = {"empty_cache": 1, "snapshot": 1.5, "reset_peak": 0.3}
POOLS = {"pool_new": 3, "pool_begin": 8, "pool_end": 8, "pool_del": 2}
GRAPHS = {"graph_begin": 4, "graph_end": 5, "graph_del": 2}
FAILURES = {"fail_next": 2, "capacity": 2, "fraction": 1}

PROFILES = {
    "ties": Profile({"empty_cache": 5, "snapshot": 1, **STREAMS}, {"few": 1}, {"max_split_size_mb": 0.2, "expandable_segments": 0.1}, live=(6, 20)),
    "split": Profile(HOUSE, {"edge": 5, "large": 2, "page": 1}, {"max_split_size_mb": 0.9, "max_non_split_rounding_mb": 0.5, "large_segment_size_mb": 0.3}),
    "collect": Profile(
        {**HOUSE, "fraction": 3, "capacity": 0.5},
        {"few": 2, "large": 3, "page": 2},
        {"garbage_collection_threshold": 0.95, "max_split_size_mb": 0.3, "expandable_segments": 0.2, "per_process_memory_fraction": 0.3},
        capacities=(90 * M, 200 * M, 400 * M, 800 * M),
        live=(3, 8, 15),
    ),
    "expandable": Profile({**HOUSE, **FAILURES}, {"page": 3, **MIXED}, {"expandable_segments": 1, "max_split_size_mb": 0.25, "large_segment_size_mb": 0.25}),
    "toggle": Profile({**HOUSE, "config": 6}, {"page": 2, **MIXED}, ANY, {**ANY, "expandable_segments": 0.8}),
    "events": Profile({**HOUSE, **STREAMS}, streams=(2, 3, 5, 9), start={"expandable_segments": 0.25, "max_split_size_mb": 0.2}),
    "pools": Profile({**HOUSE, **POOLS, "capacity": 0.5}, start={"expandable_segments": 0.3, "max_split_size_mb": 0.2}),
    "pool_events": Profile({**HOUSE, **POOLS, **STREAMS}, start={"expandable_segments": 0.2}, streams=(2, 3, 5)),
    "graphs": Profile({**HOUSE, **GRAPHS}, start={"expandable_segments": 0.3, "max_split_size_mb": 0.2}, streams=(1, 2, 3)),
    "graph_events": Profile(
        {**HOUSE, **GRAPHS, **STREAMS}, start={"graph_capture_record_stream_reuse": 0.5, "expandable_segments": 0.2}, streams=(2, 3, 4)
    ),
    "pool_graphs": Profile({**HOUSE, **POOLS, **GRAPHS, **STREAMS}, start={"expandable_segments": 0.2}, streams=(1, 2, 3)),
    "failures": Profile({**HOUSE, "fail_next": 6, "capacity": 6, "fraction": 3}, start=ANY, capacities=TIGHT),
    "oom": Profile({**HOUSE, **STREAMS, "fraction": 0.5}, start=ANY, capacities=TIGHT, streams=(1, 2, 3)),
    "roundup": Profile({**HOUSE, "config": 2}, {"doubled": 1}, {"roundup_power2_divisions": 1}, {"roundup_power2_divisions": 0.9}),
    "settings": Profile({"config": 40, "snapshot": 2, "empty_cache": 2}, odd=60, live=(2, 6)),
    "sizes": Profile({**HOUSE, **FAILURES}, {"absurd": 2, "edge": 3, "doubled": 1}, ANY, careless=0.02),
    "careless": Profile({**HOUSE, **STREAMS, **POOLS, "fraction": 0.5}, careless=0.3, streams=(2, 3)),
    "many_streams": Profile({**HOUSE, **STREAMS, "graph_begin": 0.5, "graph_end": 1}, streams=(20, 33, 40, 70), start={"expandable_segments": 0.2}),
    "everything": Profile(
        {**HOUSE, **STREAMS, **POOLS, **GRAPHS, **FAILURES, "config": 1.5},
        {"few": 2, "page": 2, "doubled": 1, "absurd": 0.1, **MIXED},
        ANY,
        streams=(1, 2, 4),
        odd=20,
        careless=0.01,
        wander=0.01,
    ),
}
