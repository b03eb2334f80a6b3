"""What is written to a full disk: what was there stays, and nothing half written is found. Without torch.

A limit on the size of files stands for the disk: it also ends a write in its middle.
"""

import contextlib
import errno
import json
import os
import pathlib
import resource
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from vramscope import _file, _log, _ring
from vramscope.integrations import _baselines


@contextlib.contextmanager
def limited(size):
    """No file of this process grows beyond `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class FullDiskTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_file_is_replaced_by_a_whole_one_only(self):
        path = self.folder / "oom.pickle"
        path.write_bytes(b"before")
        with limited(1000), self.assertRaises(OSError):
            _ring.replace(str(path), lambda file: file.write(bytes(5000)))
        self.assertEqual((path.read_bytes(), os.listdir(self.folder)), (b"before", ["oom.pickle"]))
        _ring.replace(str(path), lambda file: file.write(b"after"))
        self.assertEqual((path.read_bytes(), os.listdir(self.folder)), (b"after", ["oom.pickle"]))

    def test_stored_peaks_survive_a_write_that_fails(self):
        path = self.folder / "peaks.json"
        first = _baselines.Baselines(path)
        first.put("H100", "test_one", {"0": 5})
        first.save()
        before = path.read_bytes()
        second = _baselines.Baselines(path)
        for n in range(100):
            second.put("H100", f"test_{n}", {"0": n})
        with limited(len(before) + 100), self.assertRaises(OSError):
            second.save()
        self.assertEqual(path.read_bytes(), before)
        second.save()
        self.assertEqual(len(json.loads(path.read_text(encoding="utf-8"))["H100"]), 101)

    def test_a_recording_that_could_not_begin_leaves_no_file(self):
        path = self.folder / "run.vramscope"
        _file.Claim(str(path)).release()
        self.assertFalse(path.exists())
        claim = _file.Claim(str(path))
        path.write_bytes(b"events")
        claim.release()
        self.assertEqual(path.read_bytes(), b"events")
        path.write_bytes(b"")
        _file.Claim(str(path)).release()
        self.assertTrue(path.exists(), "it was there before")

    def test_a_full_disk_is_not_taken_for_a_full_device(self):
        for error, wanted in [
            (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
            (OSError(errno.EDQUOT, "Disk quota exceeded"), "your quota on this disk is used up"),
            (PermissionError(errno.EACCES, "Permission denied"), "PermissionError: [Errno 13] Permission denied"),
        ]:
            self.assertEqual(_log.why(error), wanted)


if __name__ == "__main__":
    unittest.main()
