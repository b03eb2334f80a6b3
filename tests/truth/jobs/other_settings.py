"""Jobs that are recorded under other settings than the default ones."""

import dataclasses

from . import graphs, limits, mixed, streams, training

EXPANDABLE = "expandable_segments:True"


def under(job, conf):
    return dataclasses.replace(job, conf=conf)


JOBS = {
    "expandable_variable": under(training.JOBS["transformer_variable"], EXPANDABLE),
    "expandable_emptied": under(mixed.JOBS["emptied_cache"], EXPANDABLE),
    "expandable_pools": under(graphs.JOBS["pools_that_end"], EXPANDABLE),
    "expandable_graphs": under(graphs.JOBS["captured_graphs"], EXPANDABLE),
    "expandable_tight": under(limits.JOBS["tight"], EXPANDABLE),
    "expandable_caught": under(limits.JOBS["caught_failures"], EXPANDABLE),
    "expandable_lagging": under(streams.JOBS["lagging"], EXPANDABLE),
    "split_tight": under(limits.JOBS["tight"], "max_split_size_mb:64"),
    "split_sizes": under(limits.JOBS["tight_sizes"], "max_split_size_mb:32,roundup_power2_divisions:4"),
    "split_emptied": under(mixed.JOBS["emptied_cache"], "max_split_size_mb:64"),
}
