"""The monitor of cached memory: when it acts, without torch and with it."""

import json
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch_jobs
import vramscope
from vramscope import _config, _monitor

GIB = 1 << 30


def run(name, *arguments, **variables):
    """Runs a job and returns what it printed: its JSON, and the agent's lines."""
    done = torch_jobs.start([str(HERE / "monitor_job.py"), name, *arguments], FAKECUDA_DEVICES="1", **variables)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1]), torch_jobs.messages(done)


class ThresholdTest(unittest.TestCase):
    def test_it_passes_once_and_again_only_after_the_share_fell(self):
        threshold = _monitor.Threshold(0.3, 50)
        looks = [
            (49, 0, False),  # Too little is cached.
            (100, 71, False),  # Below the threshold.
            (100, 70, True),  # At the threshold.
            (100, 10, False),  # Still above it.
            (100, 71, False),  # It fell.
            (100, 50, True),  # Passed again.
            (0, 0, False),  # Nothing is cached.
            (100, 50, True),
        ]
        for i, (cached, largest, want) in enumerate(looks):
            self.assertEqual(threshold.passes(cached, lambda largest=largest: largest), want, i)
        self.assertEqual(threshold.times, 3)

    def test_the_largest_block_is_only_looked_up_if_enough_is_cached(self):
        threshold = _monitor.Threshold(0.3, 50)
        self.assertFalse(threshold.passes(49, lambda: self.fail("it was looked up")))

    def test_arguments_are_checked(self):
        for options in ({"threshold": 0}, {"threshold": 1}, {"threshold": "x"}, {"action": "clear"}, {"interval": 0}):
            with self.subTest(options=options), self.assertRaises(ValueError):
                vramscope.Monitor(**options)
        for value in (0, 1, "much"):
            with self.assertRaisesRegex(_config.ConfigError, "warn_at"):
                _config.Config(warn_at=value)
        config = _config.from_environment({"VRAMSCOPE_TO": "1", "VRAMSCOPE_WARN_AT": "0.25"})
        self.assertEqual((config.warn_at, _config.Config().warn_at), (0.25, None))

    def test_a_free_block_serves_what_its_pool_serves(self):
        mib = 1 << 20
        cases = [
            (512, True, 512),
            (2 * mib, True, mib),  # Larger requests go to large pools.
            (2 * mib, False, 2 * mib),
            (mib, False, 0),  # Smaller requests go to small pools.
        ]
        for gap, is_small, want in cases:
            self.assertEqual(_monitor.servable(gap, is_small), want, (gap, is_small))

    def test_a_warning_has_numbers_and_what_to_try(self):
        reading = _monitor.Reading(0, 11 * GIB, 12 * GIB, 20 * GIB, 7 * GIB, 3 * GIB, 1)
        said = (
            "62 % of the cached memory of device 0 is unusable: of 8.00 GiB cached (20.0 GiB reserved), the largest request "
            "that fits has 3.00 GiB. "
        )
        splits = "7.00 GiB are gaps in segments that are in use. Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
        wholes = "7.00 GiB are whole segments. Try torch.cuda.empty_cache(), which gives them back to the driver."
        expandable = "Try to allocate what lives long before what lives short."
        cases = [
            (reading, "", said + splits),
            (reading._replace(inactive_split=GIB), "", said + wholes),
            (reading, "expandable_segments:True", said + expandable),
            (reading._replace(times=4), "", said + splits + " This has happened 4 times."),
        ]
        for of, settings, want in cases:
            with unittest.mock.patch.dict(os.environ, {"PYTORCH_CUDA_ALLOC_CONF": settings}):
                self.assertEqual(_monitor.text(of), want)

    def test_a_setting_to_try_keeps_those_of_the_job(self):
        old, new, expandable = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "expandable_segments:True"
        cases = [
            ({}, f"{old}={expandable}"),
            ({old: "max_split_size_mb:200, expandable_segments:False"}, f"{old}=max_split_size_mb:200,{expandable}"),
            ({old: "roundup_power2_divisions:[64:2,>:4]"}, f"{old}='roundup_power2_divisions:[64:2,>:4],{expandable}'"),
            ({old: "a:1", new: "b:2"}, f"{new}=b:2,{expandable}"),
        ]
        for variables, want in cases:
            with unittest.mock.patch.dict(os.environ, variables):
                for name in {old, new} - variables.keys():
                    os.environ.pop(name, None)
                self.assertEqual(_monitor._set(expandable), want)

    def test_without_torch_it_does_nothing(self):
        self.assertNotIn("torch", sys.modules)
        with vramscope.Monitor(0.3, interval=0.01) as monitor:
            self.assertEqual(monitor.check(), [])
        self.assertEqual((monitor.actions, monitor.reason), (0, None))
        self.assertFalse(monitor._thread.is_alive())

    def test_amounts_have_three_digits(self):
        cases = [(0, "0 B"), (999, "999 B"), (1000, "0.98 KiB"), (1536, "1.50 KiB"), (10 << 20, "10.0 MiB")]
        cases += [(999 << 20, "999 MiB"), (1 << 40, "1.00 TiB"), (5000 << 40, "5000 TiB")]
        for count, want in cases:
            self.assertEqual(_monitor._bytes(count), want, count)


@torch_jobs.needs_torch
class MonitorTest(unittest.TestCase):
    def check_readings(self, found, has_tracker):
        self.assertEqual(found["looks"], [0, 0, 1, 0, 0, 1])
        self.assertEqual((found["acted"], found["times"]), (2, [1, 2]))
        for name in ("cached", "largest", "split"):
            self.assertEqual(*found[name], name)
        self.assertGreater(found["unusable"], 0.9)
        self.assertEqual((found["has_tracker"], found["reason"]), (has_tracker, None))

    def test_readings_are_those_of_pytorch(self):
        self.check_readings(run("readings")[0], True)

    def test_readings_are_the_same_without_a_compiler(self):
        with tempfile.TemporaryDirectory() as folder:
            # Snapshots are taken at once, and not only when their time is saved.
            code = "import sys; from vramscope import _build, _monitor; _build.compiler = lambda: None; _monitor.SNAPSHOT_SHARE = 1e9\n"
            code += f"import runpy; sys.argv = ['job', 'readings']; runpy.run_path({str(HERE / 'monitor_job.py')!r}, run_name='__main__')"
            done = torch_jobs.start(["-c", code], FAKECUDA_DEVICES="1", VRAMSCOPE_CACHE=folder)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        self.check_readings(json.loads(done.stdout.strip().splitlines()[-1]), False)

    def test_whole_segments_are_released(self):
        found, _ = run("emptied")
        self.assertEqual(found, {"most": 900 << 20, "is_released": True, "actions": 1, "reason": None})

    def test_the_agent_warns_once(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.vramscope")
            found, lines = run("warned", out, VRAMSCOPE_QUIET="")
        self.assertEqual(found, {"actions": 1, "threads": False})
        warnings = [line for line in lines if "is unusable" in line]
        self.assertEqual(len(warnings), 1, lines)
        self.assertRegex(warnings[0], r"9\d % of the cached memory of device 0 is unusable: of [\d.]+ GiB cached")

    def test_an_action_that_fails_ends_the_monitor_and_not_the_job(self):
        found, lines = run("failing", VRAMSCOPE_QUIET="")
        self.assertEqual(found, {"actions": 0, "reason": "RuntimeError: no", "looks": 0})
        self.assertEqual(lines, ["vramscope: The monitor has stopped: RuntimeError: no"])

    def test_the_gpu_is_never_initialised(self):
        self.assertEqual(run("unused")[0], {"is_initialized": False, "found": [], "reason": None})


if __name__ == "__main__":
    unittest.main()
