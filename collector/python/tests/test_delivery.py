"""Messages about the delivery to the server, without torch."""

import os
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
ONE_AWAY = {**AWAY, "sent_events": 2, "undelivered": 1}
THERE = {"is_connected": True, "trouble": None}
REFUSED = {"is_connected": False, "refused": "The token\n\x1b[31mis wrong.", "sent_events": 1200, "undelivered": 1200}
NOT_THERE = f"Cannot reach the server ({TO}/: Connection refused). Events are kept for it"
WRONG = f"{TO}: The token [31mis wrong."


def _place():
    return next((place for place in _library.candidates() if place.is_file()), None)


needs_library = unittest.skipUnless(_place(), "build it: cargo build -p pluggable")


class FakeLibrary:
    """A library whose statistics are the items of a list, one after another."""

    def __init__(self, *turns):
        self.turns = list(turns)

    def stats(self):
        return self.turns.pop(0)


class LinesTest(unittest.TestCase):
    def lines(self, turns, result, out=None, reason=None, seconds=0.1):
        messages, refusals = [], []
        delivery = _delivery.Delivery(FakeLibrary(*turns), TO, out, messages.append, refusals.append)
        delivery._what, delivery._reason = "every event", reason
        for turn in range(len(turns)):
            delivery.look(turn * seconds)
        delivery.end(result)
        return messages, refusals

    def test_a_full_disk_is_reported_once_and_so_is_its_end(self):
        full = {**THERE, "full_disk": "/data/run.vramscope: the disk is full"}
        messages, _ = self.lines([THERE, full, full, THERE, THERE], {"sent_events": 5, "undelivered": 0})
        self.assertEqual(
            messages[1:],
            [
                "/data/run.vramscope: the disk is full. Make room: events that have none are left out and counted.",
                "The disk has room again.",
            ],
        )

    def test_each_change_is_reported_once(self):
        whole = {"sent_events": 5, "undelivered": 0}
        recording = f"Recording to {TO}: every event"
        lost = f"{TO} received 0 events; 5 were not delivered ({TO}/: Connection refused)."
        cases = [
            # The library's statistics in turn, its result; the messages.
            ([None, {"is_connected": False}, THERE, THERE], whole, [recording]),
            ([AWAY] * 5, AWAY, [NOT_THERE + ".", lost]),
            ([AWAY] * 3 + [THERE] * 3, whole, [NOT_THERE + ".", recording]),
            # The publisher tries another way at once.
            ([AWAY, THERE], whole, [recording]),
            # There were no statistics while it ran.
            ([], whole, [f"Recorded to {TO}: every event"]),
            ([], AWAY, [lost]),
            ([], ONE_AWAY, [f"{TO} received 1 event; 1 was not delivered ({TO}/: Connection refused)."]),
            ([THERE, AWAY], {**AWAY, "sent_events": 2005}, [recording, lost.replace("received 0", "received 2,000")]),
            ([THERE], None, [recording, "The recording's end may be missing: time ran out before it was written and sent."]),
        ]
        for turns, result, want in cases:
            with self.subTest(want=want):
                self.assertEqual(self.lines(turns, result), (want, []))

    def test_a_silent_server_is_unreachable_after_a_while(self):
        messages, _ = self.lines([{"is_connected": False}] * 4, {}, seconds=0.7)
        self.assertEqual(messages[0], f"Cannot reach the server ({TO}: no answer yet). Events are kept for it.")

    def test_a_refusal_ends_the_recording_and_is_one_printable_line(self):
        messages, refusals = self.lines([REFUSED], REFUSED)
        end = f"{TO} received 0 events; 1,200 were not delivered (The token [31mis wrong)."
        self.assertEqual((messages, refusals), (["Recording stopped: " + WRONG, end], [WRONG]))
        messages, _ = self.lines([REFUSED], REFUSED, out="a.vramscope")
        self.assertEqual(messages[0], "Sending stopped: " + WRONG)

    def test_a_wrong_token_is_named_with_the_ways_to_give_one(self):
        wrong = {**REFUSED, "refused": "the token is missing or wrong", "cause": "token"}
        advice = "the token is missing or wrong. Set VRAMSCOPE_TOKEN, or pass token= to attach()"
        messages, refusals = self.lines([wrong], wrong)
        end = f"{TO} received 0 events; 1,200 were not delivered ({advice})."
        self.assertEqual((messages, refusals), ([f"Recording stopped: {TO}: {advice}.", end], [f"{TO}: {advice}."]))

    def test_a_server_that_answers_is_not_called_unreachable(self):
        quota = {**AWAY, "trouble": "the token has 1 live session, which is its quota.", "cause": "refusal"}
        for stats, want in [
            ({**AWAY, "cause": "connection"}, NOT_THERE + "."),
            ({**AWAY, "cause": "certificate"}, NOT_THERE.replace("reach", "trust") + "."),
            (quota, "The server refused the session: the token has 1 live session, which is its quota. Events are kept for it."),
        ]:
            self.assertEqual(self.lines([stats] * 2, {})[0][0], want)

    def test_a_file_beside_the_server_is_named(self):
        self.assertEqual(self.lines([THERE], {}, out="/a")[0], [f"Recording to {TO} and /a: every event"])
        messages = self.lines([AWAY] * 2, {}, out="/a", reason="no compiler")[0]
        self.assertEqual(messages[:2], [NOT_THERE + " and written to /a.", "every event (no compiler)"])


@needs_library
class LibraryTest(unittest.TestCase):
    def setUp(self):
        self.library = _library.Library(_place())

    def test_addresses_are_parsed_as_people_write_them(self):
        cases = [("127.0.0.1:7070", "http://127.0.0.1:7070"), ("http://box/", "http://box:80"), ("https://box", "https://box:443")]
        for written, want in cases:
            self.assertEqual(self.library.address(written), want)
        for written, word in (("https://me:secret@box:1", "token"), ("box", "https://HOST:PORT"), ("http://box:0", "port")):
            with self.assertRaises(_config.ConfigError) as caught:
                self.library.address(written)
            self.assertIn(word, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))

    def record(self, to):
        """Records a hundred events. Returns the messages, the result, and the final message."""
        messages, first = [], threading.Event()

        def log(line):
            messages.append(line)
            first.set()

        device = {"number": 0, "name": "none", "capacity": 1 << 30}
        self.library.start({"to": to, "devices": [device], "flush_millis": 10})
        delivery = _delivery.Delivery(self.library, to, None, log)
        delivery.start("every event")
        for at in range(100):
            self.library._event(0, _library.CODES["alloc"], 4096 * (at + 1), 512, 0, 0, 0, 0, 0)
        self.assertTrue(first.wait(5), "there was no message")
        result = self.library.finish(200)
        return messages, result, delivery.end(result)

    def test_without_a_server_the_loss_is_reported(self):
        with socket.socket() as taken:
            # The port is bound, but nothing listens.
            taken.bind(("127.0.0.1", 0))
            to = f"http://127.0.0.1:{taken.getsockname()[1]}"
            messages, result, line = self.record(to)
        self.assertEqual((len(messages), result["undelivered"]), (2, 100))
        self.assertRegex(messages[0], rf"^Cannot reach the server \({to}/: Connection refused.*\)\. Start one with `vramscope serve`. Events are kept")
        self.assertRegex(line, rf"^{to} received 0 events; 100 were not delivered \({to}/: Connection refused.*\)\.$")
        self.assertEqual(messages[1], line)


class CommandTest(unittest.TestCase):
    def run_vramscope(self, *arguments, **more):
        return subprocess.run(
            [sys.executable, "-m", "vramscope", "run", *arguments],
            env={"PYTHONPATH": str(HERE.parent), **more},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_a_missing_program_is_refused_as_by_python(self):
        for arguments in (["nope.py"], ["-m", "nope"], ["-m", "json.nope.x"]):
            with self.subTest(arguments=arguments):
                plain = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
                done = self.run_vramscope("--out", os.devnull, *arguments, VRAMSCOPE_QUIET="1")
                self.assertEqual((done.returncode, done.stdout, done.stderr), (plain.returncode, "", plain.stderr))

    def test_an_invalid_destination_never_stops_the_job(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "job.py"
            script.write_text("import os, sys\nprint('done', os.environ.get('VRAMSCOPE_TO'))\nsys.exit(3)\n")
            cases = [(["--to", "ftp://box"], {}), (["--budget", "no"], {})]
            cases += [([], {"VRAMSCOPE_LIBRARY": "/nowhere.so"}), (["--to", "box"], {"VRAMSCOPE_QUIET": "1"})]
            for arguments, more in cases:
                with self.subTest(arguments=arguments, more=more):
                    done = self.run_vramscope(*arguments, str(script), **more)
                    self.assertEqual((done.returncode, done.stdout), (3, "done None\n"), done.stderr)
                    lines = 0 if "VRAMSCOPE_QUIET" in more else 1
                    self.assertEqual((done.stderr.count("Not recording"), done.stderr.count("\n")), (lines, lines))


if __name__ == "__main__":
    unittest.main()
