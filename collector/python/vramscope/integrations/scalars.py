"""The GPU memory as scalars, for loggers.

    scalars = Scalars(wandb_sink(), tensorboard_sink(writer), every=10)
    for number in range(steps):
        ...
        scalars.step(number)

The callbacks of Lightning and Transformers take one as `scalars`. A *sink* is any function that takes a dictionary of names
and numbers, and the number of the step, for example ``lambda values, step: logger.log_metrics(values, step)`` for a logger
of Lightning.
"""

from __future__ import annotations

import sys

from .. import _torch
from .._log import log

GIB = 1 << 30
PREFIX = "vramscope"


def readings(prefix=PREFIX):
    """Returns the memory of each device that has been used, in GiB, and how often requests failed.

    ``allocated`` and ``reserved`` are now, ``peak`` is the most that was allocated since the program began (or has called
    ``torch.cuda.reset_peak_memory_stats``), and ``gaps`` are cached bytes in segments that are partly in use. ``retries`` are
    requests that released the cache first, ``ooms`` those that failed. Without CUDA there are none.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return {}
    found, count = {}, torch.cuda.device_count()
    for device in range(count):
        of = _torch.stats(torch, device)
        if not of["reserved_bytes"]["all"]["peak"]:
            continue
        place = prefix if count == 1 else f"{prefix}/device{device}"
        found[f"{place}/allocated_gib"] = of["allocated_bytes"]["all"]["current"] / GIB
        found[f"{place}/peak_gib"] = of["allocated_bytes"]["all"]["peak"] / GIB
        found[f"{place}/reserved_gib"] = of["reserved_bytes"]["all"]["current"] / GIB
        found[f"{place}/gaps_gib"] = of["inactive_split_bytes"]["all"]["current"] / GIB
        found[f"{place}/retries"] = of["num_alloc_retries"]
        found[f"{place}/ooms"] = of["num_ooms"]
    return found


def wandb_sink(run=None):
    """Returns a sink for a run of Weights & Biases; without one, for the current run.

    The values join the row that the program's own next ``log`` completes, so that they never use up its step numbers. Of
    several readings for one row, the last one stays; the row's own step is ``vramscope/step``.
    """

    def sink(values, step):
        import wandb

        to = wandb.run if run is None else run
        if to is None:
            raise RuntimeError("there is no run: call wandb.init() first")
        to.log({**values, f"{PREFIX}/step": step}, commit=False)

    return sink


def tensorboard_sink(writer):
    """Returns a sink for a ``SummaryWriter`` of PyTorch or tensorboardX."""

    def sink(values, step):
        for name, value in values.items():
            writer.add_scalar(name, value, global_step=step)

    return sink


class Scalars:
    """Gives readings to sinks, at every `every`-th call of `step`.

    A sink that raises an error is not called again, and a line says so. Taking a reading costs some ten microseconds and
    does not wait for the device.
    """

    def __init__(self, *sinks, every=1, prefix=PREFIX):
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ValueError(f"every must be a number of steps, not {every!r}")
        if not all(callable(sink) for sink in sinks):
            raise TypeError("a sink is a function of a dictionary and a step number")
        self._sinks, self._every, self._prefix, self._calls = list(sinks), every, prefix, 0

    def step(self, number):
        """Gives the readings of now to all sinks, if it is their turn."""
        self._calls += 1
        if (self._calls - 1) % self._every:
            return
        values = readings(self._prefix)
        for sink in list(self._sinks) if values else ():
            try:
                sink(dict(values), number)
            except Exception as error:  # Training goes on.
                self._sinks.remove(sink)
                log(f"No more scalars for {getattr(sink, '__qualname__', sink)}: {type(error).__name__}: {error}")
