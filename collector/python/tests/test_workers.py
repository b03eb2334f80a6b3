"""Workers of a DataLoader: they record and print nothing and do not hang, and the job's own recording is complete."""

import json
import pathlib
import pickle
import tempfile
import unittest

import torch_jobs
from torch_jobs import check_events, messages, needs_torch

JOB = str(torch_jobs.HERE / "workers_job.py")


@needs_torch
class WorkersTest(unittest.TestCase):
    def check(self, method, persistent, attach, mode="events"):
        with tempfile.TemporaryDirectory(prefix="vramscope-") as name, self.subTest(method=method, mode=mode):
            folder = pathlib.Path(name)
            options = json.dumps({"method": method, "persistent": persistent, "attach": attach, "mode": mode})
            variables = torch_jobs.launched(folder)
            if not attach:
                variables.update(VRAMSCOPE_OUT=str(folder / "run.vramscope"), VRAMSCOPE_STACKS="none", VRAMSCOPE_MODE=mode)
            # A timeout would end a worker that hangs.
            done = torch_jobs.start([JOB, name, options], **variables)
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            # Forked workers have no agent; workers that import torch again wait for a GPU that they never use.
            states = ["waiting"] if method != "fork" and not attach else ["none"]
            self.assertEqual(json.loads(done.stdout), {"seen": 96, "states": states, "here": False})
            self.assertEqual([path.name for path in folder.glob("*.vramscope")], ["run.vramscope"])
            (line,) = messages(done)
            self.assertTrue(line.startswith(f"vramscope: Recording to {name}/run.vramscope: "), line)
            if mode == "events":
                about = check_events(self, folder / "run.vramscope", folder / "torch.pickle", 0)
                with open(folder / "torch.pickle", "rb") as file:
                    annotations = pickle.load(file).get("external_annotations", ())
                self.assertEqual(about["devices"][0]["marks"], 24 + len(annotations))

    def test_spawned_workers(self):
        self.check("spawn", True, True)
        self.check("spawn", False, False)

    def test_forked_workers(self):
        self.check("fork", True, True)
        self.check("fork", False, False)

    def test_workers_of_a_fork_server(self):
        self.check("forkserver", True, False)

    def test_workers_of_a_job_within_a_budget(self):
        self.check("spawn", True, True, "budget")


if __name__ == "__main__":
    unittest.main()
