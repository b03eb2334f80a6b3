"""CUDA graphs and pools of memory under the agent: every event is what PyTorch's own trace says."""

import json
import pathlib
import tempfile
import unittest

import torch_jobs
from torch_jobs import check_events, needs_torch

JOB = str(torch_jobs.HERE / "pools_job.py")


@needs_torch
class PoolsTest(unittest.TestCase):
    def check(self, mode, stacks):
        with tempfile.TemporaryDirectory(prefix="vramscope-") as name:
            folder = pathlib.Path(name)
            done = torch_jobs.start([JOB, name, json.dumps({"mode": mode, "stacks": stacks})])
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            result = json.loads(done.stdout.splitlines()[-1])
            self.assertEqual((result["reason"], result["lost"]), (None, 0))
            check_events(self, folder / "run.vramscope", folder / "torch.pickle", 0, stacks is not None)
            recorded, _ = torch_jobs.read(folder / "run.vramscope")
        pools = {tuple(segment["segment_pool_id"]) for segment in recorded["segments"]}
        # The default one, those of graphs, and where there is such, one of the program's.
        self.assertIn((0, 0), pools)
        self.assertTrue(any(pool[0] == 0 and pool[1] > 0 for pool in pools), pools)
        self.assertEqual(any(pool[0] > 0 and pool[1] == 0 for pool in pools), result["has_pools"], pools)
        # What a capture takes at its end is freed when its graph goes.
        actions = [of["action"] for of in recorded["device_traces"][0]]
        self.assertGreater(actions.count("segment_free"), 3)

    def test_every_event(self):
        self.check("events", None)

    def test_every_event_with_stacks(self):
        self.check("events", "python")

    def test_within_a_budget(self):
        self.check("budget", None)


if __name__ == "__main__":
    unittest.main()
