"""Recordings beside a job's own use of PyTorch's history: stacks, annotations, texts and marks are not lost, and nothing of
PyTorch is imported for them."""

import json
import pathlib
import pickle
import signal
import tempfile
import unittest

import torch_jobs
from torch_jobs import frames, needs_torch, read

JOB = str(torch_jobs.HERE / "history_job.py")


def run(name, folder, **options):
    done = torch_jobs.start([JOB, name, str(folder), json.dumps(options)])
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@needs_torch
class HistoryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vramscope-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_stacks_outlive_the_history_of_the_job(self):
        result = run("own_history", self.folder, mode="events", stacks="python")
        self.assertEqual((result["still_on"], result["on_after"], result["lost"]), (True, False, 0))
        for name, count in (("out.vramscope", 40), ("second.vramscope", 10)):
            recorded, _ = read(self.folder / name)
            allocated = [of for of in recorded["device_traces"][0] if of["action"] == "alloc"]
            self.assertEqual(len(allocated), count)
            self.assertEqual([of["action"] for of in allocated if "allocate" not in str(frames(of))], [])

    def test_within_a_budget_events_outlive_the_history_of_the_job(self):
        result = run("own_history", self.folder, mode="budget", stacks="python")
        self.assertEqual((result["still_on"], result["on_after"]), (True, False))
        recorded, about = read(self.folder / "out.vramscope")
        allocated = [of for of in recorded["device_traces"][0] if of["action"] == "alloc"]
        # What was cleared with the job's own history is counted.
        lost = sum(loss[2][0] for loss in about["devices"][0]["losses"])
        self.assertEqual(len(allocated) + lost, 40)
        self.assertGreaterEqual(len(allocated), 10)

    def test_annotations_and_texts_of_the_job_are_recorded(self):
        if torch_jobs.start(["-c", "import torch; torch._C._cuda_setMemoryMetadata"]).returncode != 0:
            self.skipTest("this release of torch has no texts")
        for mode in ("events", "budget"):
            for stacks in (None, "python"):
                with self.subTest(mode=mode, stacks=stacks):
                    result = run("annotated", self.folder, mode=mode, stacks=stacks)
                    self.assertTrue(result["still_on"])
                    recorded, _ = read(self.folder / "out.vramscope")
                    with open(self.folder / "torch.pickle", "rb") as file:
                        theirs = pickle.load(file)
                    notes = [(of["name"], of["stage"], of["time_us"]) for of in theirs["external_annotations"]]
                    ours = [(of["name"], of["stage"], of["time_us"]) for of in recorded["external_annotations"]]
                    self.assertEqual(ours, [note for note in notes if note[0] != "closed"])
                    texts = [of["user_metadata"] for of in theirs["device_traces"][0] if of["action"] == "alloc"]
                    ours = [of["user_metadata"] for of in recorded["device_traces"][0] if of["action"] == "alloc"]
                    self.assertEqual(ours, ["one", "", "two", ""])
                    self.assertEqual(ours, texts[1:])

    def test_marks_before_cuda_starts_are_kept_with_their_times(self):
        for mode in ("events", "budget"):
            with self.subTest(mode=mode):
                self.assertEqual(run("early", self.folder, mode=mode)["marks_lost"], 0)
                recorded, _ = read(self.folder / "out.vramscope")
                notes = recorded["external_annotations"]
                named = [(of["name"], of.get("stage")) for of in notes]
                self.assertEqual(named, [("loading", None), ("setup", "START"), ("setup", "END"), ("after", None)])
                first, second = notes[0]["time_us"], notes[1]["time_us"]
                self.assertGreater(second - first, 190_000)
                self.assertLess(second, recorded["device_traces"][0][0]["time_us"])

    def test_nothing_of_pytorch_is_imported(self):
        for mode in ("events", "budget"):
            for stacks in (None, "python", "all"):
                for records_history in (False, True):
                    with self.subTest(mode=mode, stacks=stacks, records_history=records_history):
                        options = dict(mode=mode, stacks=stacks, records_history=records_history)
                        self.assertEqual(run("modules", self.folder, **options)["modules"], [])

    def test_an_interrupted_job_ends_as_without_a_recording(self):
        for mode in ("events", "budget"):
            with self.subTest(mode=mode):
                done = torch_jobs.start([JOB, "interrupted", str(self.folder), json.dumps({"mode": mode})])
                self.assertEqual(done.returncode, -signal.SIGINT, done.stderr)
                self.assertEqual(done.stderr.strip().splitlines()[-1], "KeyboardInterrupt", done.stderr)
                recorded, about = read(self.folder / "out.vramscope")
                self.assertEqual(about["findings"], [])
                self.assertEqual([of["action"] for of in recorded["device_traces"][0]].count("alloc"), 100)


if __name__ == "__main__":
    unittest.main()
