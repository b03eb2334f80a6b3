"""CUDA graphs and memory pools under the agent: the events equal PyTorch's own history."""

import json
import pathlib
import pickle
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
            with open(folder / "torch.pickle", "rb") as file:
                theirs = pickle.load(file)
        pools, wanted = (
            sorted((segment["address"], segment["total_size"], *segment["segment_pool_id"]) for segment in of["segments"])
            for of in (recorded, theirs)
        )
        self.assertEqual(pools, wanted)
        # The default pool, one for each of three graphs, and one that three graphs share.
        self.assertGreater(len({segment[2:] for segment in pools}), 4)
        # What is allocated at the end of a capture is freed with its graph.
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
