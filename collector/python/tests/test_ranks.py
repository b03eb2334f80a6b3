"""Jobs of several processes: each process that uses the GPU has its own recording, and the others have none."""

import json
import os
import pathlib
import shutil
import tempfile
import unittest

import torch_jobs
from torch_jobs import check_events, messages, needs_torch

JOB = str(torch_jobs.HERE / "ranks_job.py")
LAUNCHER = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]


@needs_torch
class RanksTest(unittest.TestCase):
    def setUp(self):
        if torch_jobs.gpus() < 2:
            self.skipTest("each of two ranks needs a GPU")
        folder = tempfile.TemporaryDirectory(prefix="vramscope-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = str(self.folder / "run.vramscope")
        self.variables = torch_jobs.launched(folder.name)
        self.variables["VRAMSCOPE_STACKS"] = "none"

    def files(self):
        return sorted(path.name for path in self.folder.glob("*.vramscope"))

    def check_ranks(self, done):
        """Checks that each rank has a recording equal to PyTorch's history, and that the launcher prints nothing."""
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        ranks = sorted(json.loads(line)["rank"] for line in done.stdout.splitlines())
        self.assertEqual(ranks, [0, 1])
        self.assertEqual(self.files(), ["run.rank0.vramscope", "run.rank1.vramscope"])
        jobs = set()
        for rank in ranks:
            path = self.folder / f"run.rank{rank}.vramscope"
            header = check_events(self, path, self.folder / f"torch.rank{rank}.pickle", rank)["header"]
            self.assertEqual((header["rank"], header["name"]), (rank, f"ranks_job.py, rank {rank}"))
            jobs.add(header["job"])
        self.assertEqual(len(jobs), 1, jobs)
        lines = [f"vramscope: Recording to {self.folder}/run.rank{rank}.vramscope: every event" for rank in ranks]
        self.assertEqual(messages(done), lines)

    def test_a_variable_records_each_rank_and_one_of_them_compiles(self):
        # A compiler that counts its calls.
        calls, compiler = self.folder / "calls", self.folder / "compiler"
        path = next(found for found in map(shutil.which, ("c++", "g++", "clang++")) if found)
        compiler.write_text(f'#!/bin/sh\necho once >> "{calls}"\nexec "{path}" "$@"\n')
        compiler.chmod(0o755)
        self.variables.update(CXX=str(compiler), VRAMSCOPE_CACHE=str(self.folder / "cache"))
        done = torch_jobs.start([*LAUNCHER, JOB, "rank", str(self.folder)], VRAMSCOPE_OUT=self.out, **self.variables)
        compiling = [line for line in messages(done) if "compiling the tracker" in line]
        self.assertEqual(len(compiling), 1, messages(done))
        done.stderr = done.stderr.replace(compiling[0] + "\n", "")
        self.check_ranks(done)
        self.assertEqual(calls.read_text().count("once"), 1)

    def test_each_rank_may_attach_itself(self):
        options = json.dumps({"attach": True})
        done = torch_jobs.start([*LAUNCHER, JOB, "rank", str(self.folder), options], **self.variables)
        self.check_ranks(done)

    def test_a_launcher_is_not_recorded_itself(self):
        run = ["-m", "vramscope", "run", "--out", self.out, *LAUNCHER, JOB, "rank", str(self.folder)]
        self.check_ranks(torch_jobs.start(run, **self.variables))

    def test_ranks_are_recorded_without_an_installed_package(self):
        variables = {**self.variables, "PYTHONPATH": str(torch_jobs.HERE.parent)}
        run = ["-m", "vramscope", "run", "--out", self.out, *LAUNCHER, JOB, "rank", str(self.folder)]
        self.check_ranks(torch_jobs.start(run, **variables))

    def test_a_program_that_does_not_use_the_gpu_is_told(self):
        code = self.folder / "none.py"
        code.write_text("import torch\n")
        done = torch_jobs.start(["-m", "vramscope", "run", "--out", self.out, str(code)], **self.variables)
        self.assertEqual((done.returncode, self.files()), (0, []), done.stderr)
        self.assertEqual(messages(done), ["vramscope: Nothing was recorded: the program did not use the GPU."])

    def test_processes_without_a_rank_do_not_share_a_file(self):
        # A child of a fork may use the GPU if its parent did not. From Python 3.14 on, the default is a fork server.
        for method in ("spawn", "fork", "forkserver"):
            with self.subTest(method=method):
                for path in self.folder.glob("*.vramscope"):
                    os.unlink(path)
                options = json.dumps({"method": method})
                done = torch_jobs.start(
                    [JOB, "started", str(self.folder), options], VRAMSCOPE_OUT=self.out, **self.variables
                )
                self.assertEqual((done.returncode, done.stdout), (0, '{"codes": [0, 0]}\n'), done.stderr[-3000:])
                first, second = self.files()
                self.assertRegex(first, r"^run\.pid[0-9]+\.vramscope$")
                self.assertEqual(second, "run.vramscope")
                lines = [f"vramscope: Recording to {self.folder}/{name}: every event" for name in (first, second)]
                self.assertEqual(messages(done), lines)
                # Either process may have been first.
                names = [first, second]
                if any(self.allocates_on(name) != device for device, name in enumerate(names)):
                    names.reverse()
                for device, name in enumerate(names):
                    trace = self.folder / f"torch.rank{device}.pickle"
                    check_events(self, self.folder / name, trace, device)

    def allocates_on(self, name):
        """Returns the device on which a recording has allocations."""
        recorded, _ = torch_jobs.read(self.folder / name)
        traces = enumerate(recorded["device_traces"])
        return next(device for device, events in traces if any(of["action"] == "alloc" for of in events))


if __name__ == "__main__":
    unittest.main()
