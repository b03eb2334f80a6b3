"""Samples of the memory beside the allocator, without torch and with it."""

import ctypes
import os
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch_jobs
from vramscope import _outside

OWN, OTHER, VIEWER = 7, 8, 9


class FakeNvml:
    """NVML's functions, for one device."""

    def __init__(self, compute, graphics=None, name=b"GPU-one"):
        self._lists = {"Compute": compute, "Graphics": graphics}
        self._name = name
        self.asked = []

    def nvmlDeviceGetHandleByUUID(self, name, handle):
        self.asked.append(name)
        handle._obj.value = 1
        return 0 if name == self._name else 6

    def nvmlDeviceGetMemoryInfo(self, handle, memory):
        memory._obj.total, memory._obj.free, memory._obj.used = 1000, 300, 650
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle, count, processes):
        return self._list("Compute", count, processes)

    def nvmlDeviceGetGraphicsRunningProcesses_v3(self, handle, count, processes):
        return self._list("Graphics", count, processes)

    def _list(self, kind, count, processes):
        found = self._lists[kind]
        if found is None:
            return 3
        for i, (pid, used) in enumerate(found):
            processes[i].pid, processes[i].used = pid, used
        count._obj.value = len(found)
        return 0


class OutsideTest(unittest.TestCase):
    def test_nvml_tells_the_users_of_a_device(self):
        unknown = (1 << 64) - 1
        cases = [
            (FakeNvml([(OWN, 400), (OTHER, 200)]), (700, 200)),
            (FakeNvml([(OWN, 400)], [(VIEWER, 50), (OWN, 400)]), (700, 50)),
            (FakeNvml([(OWN, 400)]), (700, 0)),
            # This process cannot be told from others, or the driver hides what they use.
            (FakeNvml([(OTHER, 200)]), (700, None)),
            (FakeNvml([(OWN, 400), (OTHER, unknown)]), (700, None)),
            (FakeNvml(None), (700, None)),
            (FakeNvml([(OWN, 400)], name=b"MIG-one"), (700, 0)),
            (FakeNvml([(OWN, 400)], name=b"GPU-two"), (None, None)),
            (object(), (None, None)),
        ]
        for i, (library, want) in enumerate(cases):
            self.assertEqual(_outside.Nvml(library, OWN).memory("one"), want, i)
        self.assertEqual(_outside.Nvml(FakeNvml([]), OWN).memory(None), (None, None))

    def test_a_device_is_looked_up_once(self):
        library = FakeNvml([(OWN, 400)])
        nvml = _outside.Nvml(library, OWN)
        nvml.memory("one"), nvml.memory("one")
        self.assertEqual(library.asked, [b"GPU-one"])

    def test_the_structures_are_those_of_nvml(self):
        self.assertEqual((ctypes.sizeof(_outside._Memory), ctypes.sizeof(_outside._Process)), (24, 24))
        self.assertEqual((_outside._Process.used.offset, _outside._Process.part.offset), (8, 20))

    @unittest.skipUnless(os.path.exists("/proc/self/statm"), "the system has no /proc/self/statm")
    def test_the_resident_set_is_that_of_this_process(self):
        before = _outside.resident()
        held = b"x" * (64 << 20)
        self.assertGreater(_outside.resident() - before, len(held) // 2)


@torch_jobs.needs_torch
class RecordedTest(unittest.TestCase):
    def test_a_recording_has_the_process_and_its_pinned_memory(self):
        job = "import sys, time, torch, vramscope\n"
        job += "with vramscope.attach(out=sys.argv[1]):\n"
        job += "    pinned = torch.empty(8 << 20, dtype=torch.uint8, pin_memory=True)\n"
        job += "    kept = torch.empty(1 << 20, device='cuda')\n"
        job += "    time.sleep(2.2)\n"
        job += "print(hasattr(torch.cuda, 'host_memory_stats'))\n"
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.vramscope")
            done = torch_jobs.start(["-c", job, out], FAKECUDA_DEVICES="2")
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            _, about = torch_jobs.read(out)
        for device in about["devices"]:
            samples = [values for _, values in device["outside"]]
            self.assertIn(len(samples), (2, 3, 4))
            self.assertTrue(all(resident > 50 << 20 for resident, *_ in samples), samples)
            has_stats = "True" in done.stdout
            self.assertEqual(samples[-1][1], 8 << 20 if has_stats else None)


if __name__ == "__main__":
    unittest.main()
