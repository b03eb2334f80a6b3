"""How programs are started under the agent, and how they end. Needs no torch."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from vramscope import _config, _server

JOB = HERE / "launch_job.py"


def python(*arguments, cwd=None, **variables):
    """Runs Python with the package on its path, without what the person who runs the tests has set."""
    found = {name: value for name, value in os.environ.items() if not name.startswith("VRAMSCOPE_")}
    found.update({"PYTHONPATH": str(HERE.parent), **variables})
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=found, capture_output=True, text=True, timeout=60, check=False
    )


class Launching(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_with(self, *arguments, **variables):
        return python("-m", "vramscope", "run", "--out", os.devnull, *arguments, **variables)

    def test_a_program_runs_as_under_plain_python(self):
        for flags in ([], ["-O", "-X", "utf8"]):
            with self.subTest(flags=flags):
                words = [str(JOB), self.folder.name, "--lr", "3"]
                plain = python(*flags, *words)
                run = python(*flags, "-m", "vramscope", "run", "--out", os.devnull, *words)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(json.loads(run.stdout), json.loads(plain.stdout))
                self.assertEqual(json.loads(run.stdout)["frames"][0], ["launch_job.py", "<module>"])

    def test_a_module_runs_as_under_plain_python(self):
        words = ["-m", "launch_job", self.folder.name, "-m"]
        plain = python(*words, cwd=HERE)
        run = self.run_with(*words, cwd=HERE)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout), json.loads(plain.stdout))

    def test_the_exit_code_and_the_traceback_are_the_programs(self):
        script = pathlib.Path(self.folder.name) / "fails.py"
        for text, code, frames in (("import sys; sys.exit(3)", 3, 0), ("def f(): raise ValueError\nf()", 1, 2), ("import os; os.kill(os.getpid(), 15)", -15, 0)):
            with self.subTest(text=text):
                script.write_text(text)
                run = self.run_with(str(script))
                self.assertEqual((run.returncode, run.stderr.count('File "')), (code, frames), run.stderr)

    def test_a_sitecustomize_of_the_environment_still_runs(self):
        site = pathlib.Path(self.folder.name)
        (site / "sitecustomize.py").write_text("import builtins; builtins.seen = True")
        script = site / "job.py"
        script.write_text("import sys; print(seen, any(place.endswith('_site') for place in sys.path))")
        run = self.run_with(str(script), PYTHONPATH=os.pathsep.join([str(site), str(HERE.parent)]))
        self.assertEqual(run.stdout, "True False\n")

    def test_the_variables_count_once_although_the_line_is_read_twice(self):
        line = (HERE.parent / "vramscope.pth").read_text()
        code = f"{line}{line}import sys; from vramscope import _hook; print(len(_hook._waiting))"
        self.assertEqual(python("-c", code, VRAMSCOPE_TO="1").stdout, "1\n")


class Servers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.environ = {"XDG_STATE_HOME": folder.name}
        self.folder = _server.folder(self.environ)
        self.folder.mkdir(parents=True, mode=0o700)

    def serve(self, answer):
        """Answers every connection, as a server or as something else would. Returns the address."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def run():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

        threading.Thread(target=run, daemon=True).start()
        return "http://127.0.0.1:%d" % listener.getsockname()[1]

    def put(self, name, address, started_us, host=None, **more):
        of = {"address": address, "pid": 1, "host": host or socket.gethostname(), "started_us": started_us, **more}
        (self.folder / name).write_text(json.dumps(of))

    def test_the_newest_server_that_answers_is_found(self):
        self.assertIsNone(_server.find(self.environ))
        ok = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n"
        old = self.serve(ok)
        self.put("1.json", old, 1)
        closed = socket.create_server(("127.0.0.1", 0))
        self.put("2.json", "http://127.0.0.1:%d" % closed.getsockname()[1], 2)
        closed.close()
        self.put("3.json", self.serve(b"HTTP/1.1 404 Not Found\r\n\r\n"), 3)
        self.put("4.json", self.serve(ok), 4, host="another machine")
        self.put("5.json", "http://192.0.2.1:7070", 5)
        (self.folder / "6.json").write_text("{")
        self.assertEqual(_server.find(self.environ), old)

    def test_a_variable_is_stronger_than_a_server_that_runs(self):
        found = self.serve(b"HTTP/1.1 200 OK\r\n\r\nok\n")
        self.put("1.json", found, 1)
        for to, wanted in (("", found), ("1", found), ("http://box:1", "http://box:1")):
            self.assertEqual(_server.default({**self.environ, "VRAMSCOPE_TO": to}), wanted)
        self.assertEqual(_config.from_environment({**self.environ, "VRAMSCOPE_TO": "1"}).to, found)

    def test_the_token_of_a_server_that_made_one_is_found_and_its_secret_is_left_alone(self):
        found = self.serve(b"HTTP/1.1 200 OK\r\n\r\nok\n")
        self.put("1.json", found, 1, secret="secret", token="made")
        self.put("2.json", "http://127.0.0.1:1", 2, secret="secret")
        environ = {**self.environ, "VRAMSCOPE_TOKEN": "variable"}
        for to, wanted in ((found, "made"), (found + "/", "made"), (found.replace("127.0.0.1", "localhost"), "variable"),
                           ("http://127.0.0.1:1", "variable"), ("https://box:1", "variable"), (None, "variable")):
            self.assertEqual(_server.token(to, environ), wanted, to)
        self.assertIsNone(_server.token("http://127.0.0.1:1", self.environ))
        with mock.patch.dict(os.environ, environ):
            self.assertEqual([_config.Config().token, _config.Config(token="mine").token], ["made", "mine"])
        self.assertEqual(_config.from_environment({**environ, "VRAMSCOPE_TO": "1"}).token, "made")
        self.assertEqual(_config.from_environment({**environ, "VRAMSCOPE_TO": "http://box:1"}).token, "variable")

    @unittest.skipUnless(hasattr(os, "geteuid"), "this system has no such permissions")
    def test_a_folder_or_a_file_that_others_could_change_is_not_used(self):
        found = self.serve(b"HTTP/1.1 200 OK\r\n\r\nok\n")
        self.put("1.json", found, 1, token="made")
        for mode, text in ((0o755, "chmod 700"), (0o720, "chmod 700")):
            self.folder.chmod(mode)
            with mock.patch("vramscope._log.log") as log:
                self.assertIsNone(_server.find(self.environ))
            self.assertIn(text, log.call_args[0][0])
            self.assertIsNone(_server.token(found, self.environ))
        self.folder.chmod(0o700)
        (self.folder / "1.json").chmod(0o622)
        self.assertIsNone(_server.find(self.environ))
        (self.folder / "1.json").chmod(0o600)
        self.assertEqual(_server.find(self.environ), found)
        self.folder.rename(self.folder.with_name("elsewhere"))
        self.folder.symlink_to(self.folder.with_name("elsewhere"))
        with mock.patch("vramscope._log.log") as log:
            self.assertIsNone(_server.find(self.environ))
        self.assertIn("has to be a folder", log.call_args[0][0])

    def test_without_a_server_the_usual_address_is_tried(self):
        self.assertEqual(_server.default(self.environ), "http://127.0.0.1:7070")


if __name__ == "__main__":
    unittest.main()
