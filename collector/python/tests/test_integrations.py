"""The package in other libraries, each as it is published. A test is skipped where its library is not installed."""

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch_jobs
from vramscope.integrations import _baselines, _picture, scalars

LIBRARIES = ("lightning", "transformers", "accelerate", "wandb", "tensorboard", "nbclient", "ipykernel", "pytest")
PLACE = "http://127.0.0.1:9"


@functools.lru_cache(maxsize=None)
def installed():
    """Returns the libraries that the Python with torch has."""
    code = f"import importlib.util as u; print(*[name for name in {LIBRARIES!r} if u.find_spec(name)])"
    return torch_jobs.start(["-c", code]).stdout.split()


def needs(*libraries):
    """Skips a test without these libraries, or without torch."""

    def decorate(test):
        @functools.wraps(test)
        def run(self):
            missing = [name for name in libraries if name not in installed()]
            if missing:
                self.skipTest(f"the Python with torch has no {' and no '.join(missing)}")
            self.folder = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, self.folder, True)
            return test(self)

        return torch_jobs.needs_torch(run)

    return decorate


def program():
    return os.environ.get("VRAMSCOPE_PROGRAM") or torch_jobs.server()


class WithoutTorchTest(unittest.TestCase):
    def test_growth_is_a_share(self):
        for value, want in [("2%", 0.02), (" 2.5 % ", 0.025), ("0.1", 0.1), (0.1, 0.1), (0, 0.0), ("150%", 1.5)]:
            self.assertAlmostEqual(_baselines.growth(value), want)
        for value in ("-2%", "much", "", None, True, "2%%"):
            with self.assertRaises(ValueError):
                _baselines.growth(value)

    def test_baselines_of_several_processes_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "peaks.json"
            one, other = _baselines.Baselines(path), _baselines.Baselines(path)
            one.put("torch 2.11", "a", {"0": 1})
            other.put("torch 2.11", "b", {"0": 2})
            other.put("torch 2.6", "a", {"0": 3})
            one.save()
            other.save()
            third = _baselines.Baselines(path)
            found = [third.get(*of) for of in [("torch 2.11", "a"), ("torch 2.11", "b"), ("torch 2.6", "a"), ("torch 2.6", "b")]]
            self.assertEqual(found, [{"0": 1}, {"0": 2}, {"0": 3}, None])

    def test_scalars_need_a_gpu_and_sinks(self):
        self.assertEqual(scalars.readings(), {})
        scalars.Scalars(lambda *_: self.fail("there is nothing to log")).step(0)
        for options in ({"every": 0}, {"every": True}, {"every": 1.5}):
            with self.assertRaises(ValueError):
                scalars.Scalars(**options)
        with self.assertRaises(TypeError):
            scalars.Scalars("wandb")

    def test_a_picture_has_steps(self):
        self.assertEqual(_picture.draw([]), "")
        drawn = _picture.draw([(0, 0, 1 << 20), (1, 1 << 20, 2 << 20), (4, 0, 2 << 20)])
        self.assertIn('aria-label="1.00 MiB allocated at the peak, after event 1; at most 2.00 MiB reserved"', drawn)
        self.assertIn('points="0.0,100.0 200.0,100.0 200.0,0.0 800.0,0.0 800.0,0.0"', drawn)


class IntegrationTest(unittest.TestCase):
    def run_job(self, name, **variables):
        done = torch_jobs.start(
            [str(HERE / "integration_jobs.py"), name, self.folder],
            **{"FAKECUDA_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0", **variables},
        )
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return json.loads(done.stdout.strip().splitlines()[-1])

    def marks(self, name):
        """Returns the marks of a recording: a span's start as `(name`, its end as `name)`."""
        recorded, about = torch_jobs.read(os.path.join(self.folder, name))
        self.assertEqual(about["findings"], [])
        form = {"START": "({}", "END": "{})"}
        return " ".join(form.get(of.get("stage"), "{}").format(of["name"]) for of in recorded["external_annotations"])

    @needs("lightning")
    def test_lightning(self):
        found = self.run_job("lightning")
        steps = [[step, True] for step in range(4)]
        # A fit, one that fails at its first step, and one in the program's own recording.
        self.assertEqual(found["seen"], steps + steps[:1] + steps)
        self.assertEqual(found["after"], ["None", "KeyError", "running", {"out": "x.vramscope", "stacks": None}])
        self.assertEqual(found["files"], ["own.vramscope", "run.run2.vramscope", "run.run3.vramscope", "run.vramscope"])
        first = "(epoch 0 step 0 step 1 (validation validation) epoch 0) (epoch 1 step 2 step 3 (validation validation) epoch 1)"
        self.assertEqual(self.marks("run.vramscope"), f"(sanity check sanity check) {first}")
        self.assertEqual(self.marks("run.run2.vramscope"), "(test test)")
        self.assertEqual(self.marks("run.run3.vramscope"), "(epoch 0 step 0 epoch 0)")
        self.assertEqual(self.marks("own.vramscope"), first.replace(" (validation validation)", ""))

    @needs("transformers", "accelerate")
    def test_transformers(self):
        found = self.run_job("transformers")
        self.assertEqual(found, {"steps": [0, 2, 0, 2], "copied": None, "files": ["run.run2.vramscope", "run.vramscope"]})
        # The first run's recording begins before the trainer moves the model to the GPU, and the second one's finds it there.
        recorded = [torch_jobs.read(os.path.join(self.folder, name))[0] for name in found["files"]]
        self.assertEqual([bool(torch_jobs.rewind(of)) for of in recorded], [True, False])
        want = "(epoch 0 step 0 step 1 (evaluation evaluation) epoch 0) (epoch 1 step 2 step 3 (evaluation evaluation) epoch 1)"
        self.assertEqual([self.marks(name) for name in found["files"]], [want, want])

    @needs("wandb")
    def test_wandb(self):
        found = self.run_job("wandb", WANDB_SILENT="true")
        # Its steps are the program's own 0 to 2, and the values are in their rows.
        self.assertEqual((found["steps"], found["sinks"]), (2, 0))
        want = dict.fromkeys(("allocated_gib", "peak_gib", "reserved_gib"), 0.1875)
        want.update({"gaps_gib": 0, "retries": 0, "ooms": 0, "step": 2})
        self.assertEqual(found["last"], {"loss": 1, **{f"vramscope/{name}": value for name, value in want.items()}})

    @needs("tensorboard")
    def test_tensorboard(self):
        found = self.run_job("tensorboard")
        names = [f"vramscope/{name}" for name in ("allocated_gib", "peak_gib", "reserved_gib", "gaps_gib", "retries", "ooms")]
        # Nothing was allocated at step 0.
        self.assertEqual(found, {"before": {}, "names": names, "allocated": [[2, 0.125], [4, 0.25]]})

    @needs("nbclient", "ipykernel")
    def test_a_notebook_without_a_server(self):
        _, _, whole, empty, _, own, ended, failed = self.run_job("notebook", SERVER="", VRAMSCOPE_TO=PLACE)
        shown = {kind: (text, page) for kind, text, page in whole}
        self.assertEqual(shown["execute_result"][0], "10")
        text, page = shown["display_data"]
        self.assertRegex(text, r"peak +70\.0 MiB requested")
        self.assertRegex(page, r'<svg [^>]*aria-label="70.0 MiB allocated at the peak.*</svg><pre [^>]*>Device 0: 35 events')
        self.assertIn("0 events", empty[-1][1])
        self.assertNotIn("<svg", empty[-1][2])
        self.assertIn("own.vramscope", own[-1][2])
        self.assertGreater(int(ended[0][1]), 20)
        # The picture, and then the error once.
        self.assertEqual([kind for kind, _, _ in failed], ["display_data", "error"])

    @needs("nbclient", "ipykernel")
    def test_a_notebook_with_the_page_inside(self):
        whole = self.run_job("notebook", OPTIONS="--page --height 321", VRAMSCOPE_TO=PLACE)[2]
        page = whole[-1][2]
        if "<svg" in page:
            self.skipTest("the program was built without its page")
        self.assertRegex(page[:200], r'<iframe srcdoc="&lt;!doctype html&gt;')
        self.assertIn('height="321"', page[-200:])

    def has_page(self, to):
        """Returns whether the server was built with its page."""
        try:
            with urllib.request.urlopen(to + "/", timeout=10):
                return True
        except urllib.error.HTTPError:
            return False

    @needs("nbclient", "ipykernel")
    def test_a_notebook_with_a_server(self):
        for may_frame in (True, False):
            with self.subTest(may_frame=may_frame), tempfile.TemporaryDirectory() as data:
                origin = ["--embed-origin", "http://localhost:8888"] if may_frame else []
                command = [str(program()), "serve", "--listen", "127.0.0.1:0", "--data", data, *origin]
                with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
                    try:
                        to = server.stdout.readline().split("is at ")[1].split("/ ")[0]
                        has_page = self.has_page(to)
                        page = self.run_job("notebook", SERVER=to)[2][-1][2]
                    finally:
                        server.terminate()
                may_frame = may_frame and has_page
                self.assertRegex(page, rf'^<p><a href="{to}/#\S*session=[a-z0-9]+"')
                frame = rf'<iframe src="{to}/s-[a-z0-9]+\?embed"'
                (self.assertRegex if may_frame else self.assertNotRegex)(page, frame)
                self.assertEqual("<svg" in page, not may_frame)


TESTS = """
    import os, pytest, torch

    def tensor(mebibytes):
        return torch.empty(mebibytes << 20, dtype=torch.uint8, device="cuda")

    MORE = int(os.environ["MORE"])

    @pytest.fixture
    def held():
        yield tensor(50 + MORE)

    def test_whole(vramscope_memory, held):
        tensor(100 + MORE)

    def test_parts(vramscope_memory):
        tensor(500 + MORE)
        with vramscope_memory(max_growth="50%", name="one"):
            tensor(20 + MORE)
        with vramscope_memory(max_growth=0, name="two"):
            tensor(20)

    def test_once_at_a_time(vramscope_memory):
        vramscope_memory("10%")
        with pytest.raises(RuntimeError, match="one part"):
            vramscope_memory()
        tensor(20)

    def test_failing(vramscope_memory):
        tensor(20 + MORE)
        assert MORE == 0

    def test_without():
        tensor(20 + MORE)
"""


# Of pytest's plugins, only the package's own, which is named on the command line and may be installed as well.
PLUGINS = {"FAKECUDA_DEVICES": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


class PytestTest(unittest.TestCase):
    def pytest(self, *arguments, **variables):
        """Runs pytest. Returns its exit status, the names of the tests that failed, and its output."""
        command = ["-m", "pytest", "-q", "-p", "vramscope.integrations.pytest_plugin", "--rootdir", self.folder, self.folder]
        done = torch_jobs.start([*command, *arguments], **{**PLUGINS, "MORE": "0", **variables})
        failed = [line.split("::")[1].split(" ")[0] for line in done.stdout.splitlines() if line.startswith("FAILED ")]
        return done.returncode, failed, done.stdout

    @needs("pytest")
    def test_a_test_fails_if_its_peak_grows(self):
        (pathlib.Path(self.folder) / "test_peaks.py").write_text(textwrap.dedent(TESTS))
        kept = pathlib.Path(self.folder) / "vramscope_memory.json"
        measured = ["test_whole", "test_parts", "test_once_at_a_time", "test_failing"]
        status, failed, said = self.pytest()
        self.assertEqual((status, failed, kept.exists()), (1, measured, False), said)
        self.assertIn("Store one: pytest --vramscope-update", said)
        self.assertEqual(self.pytest("--vramscope-update")[:2], (0, []))
        (peaks,) = json.loads(kept.read_text()).values()
        peaks = {name.split("::")[1]: of["0"] >> 20 for name, of in peaks.items()}
        want = {"test_whole": 100, "test_parts one": 20, "test_parts two": 20, "test_once_at_a_time": 20, "test_failing": 20}
        self.assertEqual(peaks, want)
        self.assertEqual(self.pytest()[:2], (0, []))
        # A growth of 8 % of one test, and of 40 % of a part of another.
        status, failed, said = self.pytest(MORE="8")
        self.assertEqual((status, failed), (1, ["test_whole", "test_failing"]), said)
        self.assertIn("test_whole: the peak of device 0 grew by 8.0 %, from 100 MiB to 108 MiB; 2 % is allowed.", said)
        self.assertRegex(said, r"live at the peak, by line:\n +108 MiB .* tensor  \S+test_peaks.py:5\n")
        self.assertIn("assert 8 == 0", said)
        status, failed, _ = self.pytest(MORE="12", VRAMSCOPE_PROGRAM="/nowhere")
        self.assertEqual((status, failed), (1, ["test_whole", "test_parts", "test_failing"]))
        self.assertEqual(self.pytest("-k", "test_whole", "--vramscope-update", MORE="8")[:2], (0, []))
        self.assertEqual(self.pytest("-k", "test_whole or without", MORE="8")[:2], (0, []))


if __name__ == "__main__":
    unittest.main()
