"""What a person is told of a recording's way to its server; without torch."""

import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from vramscope import _config, _delivery, _library

TO = "http://box:7070"
AWAY = {"is_connected": False, "trouble": TO + "/: Connection refused", "sent_events": 5, "undelivered": 5}
THERE = {"is_connected": True, "trouble": None}
REFUSED = {"is_connected": False, "refused": "The token\n\x1b[31mis wrong.", "sent_events": 1200, "undelivered": 1200}
NOT_THERE = f"Cannot reach the server ({TO}/: Connection refused). Events are kept for it"
WRONG = f"{TO}: The token [31mis wrong."


def _place():
    return next((place for place in _library.candidates() if place.is_file()), None)


needs_library = unittest.skipUnless(_place(), "build it: cargo build -p pluggable")


class Told:
    """A library that has told in turn what is in a list."""

    def __init__(self, *turns):
        self.turns = list(turns)

    def stats(self):
        return self.turns.pop(0)


class LinesTest(unittest.TestCase):
    def lines(self, turns, result, out=None, reason=None, seconds=0.1):
        said, refusals = [], []
        delivery = _delivery.Delivery(Told(*turns), TO, out, said.append, refusals.append)
        delivery._what, delivery._reason = "every event", reason
        for turn in range(len(turns)):
            delivery.look(turn * seconds)
        delivery.end(result)
        return said, refusals

    def test_each_is_said_once(self):
        whole = {"sent_events": 5, "undelivered": 0}
        recording = f"Recording to {TO}: every event"
        lost = f"{TO} received 0 events; 5 were not delivered ({TO}/: Connection refused)."
        cases = [
            # What the library tells in turn, what it came to; what is said.
            ([None, {"is_connected": False}, THERE, THERE], whole, [recording]),
            ([AWAY] * 5, AWAY, [NOT_THERE + ".", lost]),
            ([AWAY] * 3 + [THERE] * 3, whole, [NOT_THERE + ".", recording]),
            # Another way is tried the next moment.
            ([AWAY, THERE], whole, [recording]),
            # Nothing was heard of it while it ran.
            ([], whole, [f"Recorded to {TO}: every event"]),
            ([], AWAY, [lost]),
            ([THERE, AWAY], {**AWAY, "sent_events": 2005}, [recording, lost.replace("received 0", "received 2,000")]),
            ([THERE], None, [recording, "The recording's end may be missing: time ran out before it was written and sent."]),
        ]
        for turns, result, want in cases:
            with self.subTest(want=want):
                self.assertEqual(self.lines(turns, result), (want, []))

    def test_silence_is_no_server_after_a_while(self):
        said, _ = self.lines([{"is_connected": False}] * 4, {}, seconds=0.7)
        self.assertEqual(said[0], f"Cannot reach the server ({TO}: no answer yet). Events are kept for it.")

    def test_a_refusal_ends_it_and_is_one_line_of_a_terminal(self):
        said, refusals = self.lines([REFUSED], REFUSED)
        end = f"{TO} received 0 events; 1,200 were not delivered (The token [31mis wrong)."
        self.assertEqual((said, refusals), (["Recording stopped: " + WRONG, end], [WRONG]))
        said, _ = self.lines([REFUSED], REFUSED, out="a.vramscope")
        self.assertEqual(said[0], "Sending stopped: " + WRONG)

    def test_a_file_beside_the_server_is_named(self):
        self.assertEqual(self.lines([THERE], {}, out="/a")[0], [f"Recording to {TO} and /a: every event"])
        said = self.lines([AWAY] * 2, {}, out="/a", reason="no compiler")[0]
        self.assertEqual(said[:2], [NOT_THERE + " and written to /a.", "every event (no compiler)"])


@needs_library
class LibraryTest(unittest.TestCase):
    def setUp(self):
        self.library = _library.Library(_place())

    def test_addresses_are_read_as_people_write_them(self):
        cases = [("127.0.0.1:7070", "http://127.0.0.1:7070"), ("http://box/", "http://box:80")]
        for written, want in cases:
            self.assertEqual(self.library.address(written), want)
        for written, word in (("https://box:1", "https://box:1"), ("box", "http://HOST:PORT"), ("http://box:0", "port")):
            with self.assertRaises(_config.ConfigError) as caught:
                self.library.address(written)
            self.assertIn(word, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))

    def record(self, to):
        """A recording of a hundred events; what was said."""
        said, first = [], threading.Event()

        def log(line):
            said.append(line)
            first.set()

        device = {"number": 0, "name": "none", "capacity": 1 << 30}
        self.library.start({"to": to, "devices": [device], "flush_millis": 10})
        delivery = _delivery.Delivery(self.library, to, None, log)
        delivery.start("every event")
        for at in range(100):
            self.library._event(0, _library.CODES["alloc"], 4096 * (at + 1), 512, 0, 0, 0, 0, 0)
        self.assertTrue(first.wait(5), "nothing was said")
        result = self.library.finish(200)
        return said, result, delivery.end(result)

    def test_with_nobody_there_all_that_was_lost_is_said(self):
        with socket.socket() as taken:
            # Nobody listens: the port is only ours.
            taken.bind(("127.0.0.1", 0))
            to = f"http://127.0.0.1:{taken.getsockname()[1]}"
            said, result, line = self.record(to)
        self.assertEqual((len(said), result["undelivered"]), (2, 100))
        self.assertRegex(said[0], rf"^Cannot reach the server \({to}/: Connection refused.*\)\. Events are kept")
        self.assertRegex(line, rf"^{to} received 0 events; 100 were not delivered \({to}/: Connection refused.*\)\.$")
        self.assertEqual(said[1], line)


class CommandTest(unittest.TestCase):
    def run_vramscope(self, *arguments, **more):
        return subprocess.run(
            [sys.executable, "-m", "vramscope", "run", *arguments],
            env={"PYTHONPATH": str(HERE.parent), **more},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_what_is_no_program_is_one_line_and_2(self):
        for arguments, name in ((["nope.py"], "nope.py"), (["-m", "nope"], "nope"), (["-m", "json.nope.x"], "json.nope.x")):
            done = self.run_vramscope(*arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(name, done.stderr)

    def test_what_can_not_be_recorded_to_never_stops_the_job(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "job.py"
            script.write_text("import os, sys\nprint('done', os.environ.get('VRAMSCOPE_TO'))\nsys.exit(3)\n")
            cases = [(["--to", "https://box"], {}), (["--budget", "no"], {})]
            cases += [([], {"VRAMSCOPE_LIBRARY": "/nowhere.so"}), (["--to", "box"], {"VRAMSCOPE_QUIET": "1"})]
            for arguments, more in cases:
                with self.subTest(arguments=arguments, more=more):
                    done = self.run_vramscope(*arguments, str(script), **more)
                    self.assertEqual((done.returncode, done.stdout), (3, "done None\n"), done.stderr)
                    lines = 0 if "VRAMSCOPE_QUIET" in more else 1
                    self.assertEqual((done.stderr.count("Not recording"), done.stderr.count("\n")), (lines, lines))


if __name__ == "__main__":
    unittest.main()
