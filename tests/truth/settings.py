"""The settings that every job is run under. Each run is predicted from the recording of the first one."""

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Setting:
    """One way to run a job. Limits are shares of the peak that the job reserved when it was recorded."""

    name: str
    # None: as the job is recorded.
    conf: typing.Optional[str]
    # `set_per_process_memory_fraction`, such that the limit is this share of the peak.
    limit: typing.Optional[float] = None
    # The device's memory.
    capacity: typing.Optional[float] = None


ALL = [
    Setting("as recorded", None),
    Setting("default", ""),
    Setting("expandable", "expandable_segments:True"),
    Setting("split 64", "max_split_size_mb:64"),
    Setting("split 128", "max_split_size_mb:128"),
    Setting("split 512", "max_split_size_mb:512"),
    Setting("roundup 4", "roundup_power2_divisions:4"),
    Setting("roundup 8", "roundup_power2_divisions:8"),
    Setting("gc 0.6", "garbage_collection_threshold:0.6", limit=1.2),
    Setting("split 64, gc 0.8", "max_split_size_mb:64,garbage_collection_threshold:0.8", limit=1.0),
    Setting("expandable, split 128", "expandable_segments:True,max_split_size_mb:128"),
    Setting("expandable, roundup list", "expandable_segments:True,roundup_power2_divisions:[64:8,256:4,512:2,>:1]"),
    Setting("95 % of the memory", None, capacity=0.95),
    Setting("85 %, expandable", "expandable_segments:True", capacity=0.85),
    Setting("85 %, split 64", "max_split_size_mb:64", capacity=0.85),
]


def of(job):
    """Returns the settings that a job is run under, the recorded one first."""
    return [setting for setting in ALL if job.conf or setting.conf != ""]
