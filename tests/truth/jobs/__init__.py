"""The jobs: small programs that train or serve with PyTorch. Each takes seconds, and none looks at a value on the device."""

import dataclasses
import typing

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Job:
    """A program; `run` takes a `recording.Recording`."""

    run: typing.Callable
    # The settings that it is recorded under.
    conf: str = ""
    # Bytes that the device has for the process; None: all of it.
    memory: typing.Optional[int] = None
    # Whether the program itself begins the history, after some work.
    begins_late: bool = False


def all_jobs():
    """Returns the jobs by name. PyTorch is imported for it."""
    from . import graphs, limits, mixed, other_settings, serving, streams, training

    return {name: job for part in (training, serving, mixed, streams, graphs, limits, other_settings) for name, job in part.JOBS.items()}
