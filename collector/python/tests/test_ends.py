"""Jobs that end early or hard, at a real server: what was recorded has arrived, and their end shows at once."""

import json
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

import torch_jobs
from torch_jobs import needs_torch

JOB = str(torch_jobs.HERE / "ends_job.py")


@needs_torch
@unittest.skipUnless(torch_jobs.server(), "build the server: cargo build -p vramscope")
class EndsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vramscope-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.to = self.serve()

    def serve(self, listen="127.0.0.1:0"):
        command = [str(torch_jobs.server()), "serve", "--listen", listen, "--data", str(self.folder / "data")]
        self.server = server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return re.search(r"http://[0-9.:]+", server.stdout.readline()).group()

    def start(self, name, **options):
        command = [*torch_jobs.python(), JOB, name, self.to, json.dumps(options)]
        job = subprocess.Popen(
            command,
            env=torch_jobs.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for pipe in (job.stdin, job.stdout, job.stderr):
            self.addCleanup(pipe.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    def session(self, name):
        with urllib.request.urlopen(f"{self.to}/api/v1/sessions/{name}") as answer:
            return json.load(answer)

    def ended(self, job):
        """Waits for a job's end. Returns the session and what the job printed after its name."""
        out, errors = job.communicate(timeout=120)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertTrue(lines, errors)
        return self.session(lines[0]), lines[1:]

    def test_events_before_os_exit_arrive(self):
        for mode in ("events", "budget"):
            for stacks in (None, "python"):
                with self.subTest(mode=mode, stacks=stacks):
                    job = self.start("os_exit", mode=mode, stacks=stacks)
                    session, _ = self.ended(job)
                    self.assertEqual((job.returncode, session["state"]), (7, "ended"))
                    # 50 allocations, and a segment for five each.
                    self.assertGreaterEqual(session["events"], 60)
                    self.assertEqual(session["devices"][0]["allocated"], 50 << 22)

    def test_a_child_that_ends_by_os_exit_does_not_end_the_recording(self):
        job = self.start("fork_exit")
        session, (said,) = self.ended(job)
        self.assertEqual(said, {"child": 3, "state": "running"})
        self.assertEqual((session["state"], session["devices"][0]["allocated"]), ("ended", 51 << 22))

    def test_a_flush_waits_for_the_connection(self):
        for mode in ("events", "budget"):
            with self.subTest(mode=mode):
                job = self.start("flush", mode=mode)
                session, (said,) = self.ended(job)
                self.assertEqual((job.returncode, said["is_sent"]), (-signal.SIGKILL, True))
                self.assertLess(said["seconds"], 2.0)
                self.assertGreaterEqual(session["events"], 60)

    def test_a_flush_does_not_wait_for_a_server_that_is_away(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.to = f"http://127.0.0.1:{free.getsockname()[1]}"
        out, errors = self.start("flush").communicate(timeout=120)
        said = json.loads(out.splitlines()[1])
        self.assertFalse(said["is_sent"], errors)
        self.assertLess(said["seconds"], 1.0)

    def test_an_early_out_of_memory_arrives_before_a_hard_end(self):
        for mode in ("events", "budget"):
            with self.subTest(mode=mode):
                job = self.start("oom", mode=mode)
                session, _ = self.ended(job)
                self.assertEqual((job.returncode, session["oom"]), (-signal.SIGKILL, 1))

    def test_a_killed_job_is_lost_within_seconds(self):
        job = self.start("killed")
        name = json.loads(job.stdout.readline())
        job.wait(timeout=120)
        at = time.monotonic()
        while self.session(name)["state"] == "live" and time.monotonic() < at + 20:
            time.sleep(0.05)
        self.assertEqual(self.session(name)["state"], "lost")
        self.assertLess(time.monotonic() - at, 3.0)
        self.assertGreaterEqual(self.session(name)["events"], 60)

    def test_a_server_that_is_back_is_found_within_seconds(self):
        job = self.start("waiting")
        name = json.loads(job.stdout.readline())
        job.stdout.readline()
        self.server.terminate()
        self.server.wait()
        time.sleep(8)
        self.serve(self.to.removeprefix("http://"))
        at = time.monotonic()
        while self.session(name)["state"] != "live" and time.monotonic() < at + 40:
            time.sleep(0.05)
        self.assertLess(time.monotonic() - at, 6.0)

    def test_a_device_is_listed_once_it_is_used(self):
        if torch_jobs.gpus() < 2:
            self.skipTest("there is no second GPU")
        for mode in ("events", "budget"):
            with self.subTest(mode=mode):
                job = self.start("second_device", mode=mode)
                name = json.loads(job.stdout.readline())
                job.stdout.readline()
                listed = self.session(name)["devices"]
                self.assertEqual([(of["number"], of["allocated"]) for of in listed], [(1, 5 << 22)])
                job.stdin.write("\n")
                job.stdin.flush()
                job.stdout.readline()
                listed = self.session(name)["devices"]
                self.assertEqual([(of["number"], of["allocated"]) for of in listed], [(0, 1 << 22), (1, 5 << 22)])
                job.communicate("\n", timeout=120)
                self.assertEqual(self.session(name)["state"], "ended")


if __name__ == "__main__":
    unittest.main()
