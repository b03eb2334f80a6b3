#!/usr/bin/env python3
"""Runs a program on PyTorch, and records it.

    record.py SCRIPT SNAPSHOT [SETTINGS]

SNAPSHOT is the file that the history is written to; beside it, as .json, what PyTorch itself counted in the compared step: the peak of
requested bytes of live tensors, if it counts them, and of their blocks.
"""

import json
import pathlib
import runpy
import sys

import torch
from torch.optim import optimizer as optimizers

from pairs import STEPS


def main():
    script, snapshot = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(script.parent))
    torch.manual_seed(1)
    torch.set_num_threads(1)
    torch.cuda.init()
    if len(sys.argv) > 3:
        torch.cuda.memory._set_allocator_settings(sys.argv[3])
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, context="all", stacks="python")
    peaks = []

    def ended(optimizer, *_):
        stats = torch.cuda.memory_stats()
        peaks.append({name: stats.get(f"{name}.all.peak") for name in ("requested_bytes", "allocated_bytes")})
        torch.cuda.reset_peak_memory_stats()

    handle = optimizers.register_optimizer_step_post_hook(ended)
    runpy.run_path(str(script), run_name="__main__")
    handle.remove()
    torch.cuda.memory._dump_snapshot(str(snapshot))
    assert len(peaks) == STEPS, f"{len(peaks)} steps"
    snapshot.with_suffix(".json").write_text(json.dumps(peaks))


if __name__ == "__main__":
    main()
