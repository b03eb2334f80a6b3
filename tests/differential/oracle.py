"""Both sides of a comparison: PyTorch itself in its environment, and this allocator through `vramscope replay`."""

import json
import os
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Real:
    """One process that keeps PyTorch loaded; `run` returns a script's result.

    A script that PyTorch can't start with gives `{"refused": text}`, one that ends the process `{"crashed": status}`.
    """

    def __init__(self, environment):
        self.folder = tempfile.TemporaryDirectory(prefix="differential-")
        self.source, self.target = (pathlib.Path(self.folder.name) / n for n in ("in.json", "out.json"))
        # PyTorch warns on stderr of every failed mapping.
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self.process = subprocess.Popen(environment.command(HERE / "warm.py"), env=environment.variables(), **pipes)
        hello = self.process.stdout.readline().split()
        if not hello or hello[1].split("+")[0] != environment.version:
            raise SystemExit(f"PyTorch {environment.version} does not start; delete {environment.folder} to make it again")

    def run(self, script, heap=0):
        """Returns the result of a script; another `heap` than 0 lays out PyTorch's own objects differently."""
        self.source.write_text(json.dumps(script))
        return self.run_file(self.source, heap)

    def run_file(self, path, heap=0):
        self.target.unlink(missing_ok=True)
        self.process.stdin.write(f"{path}\t{self.target}\t{heap}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise SystemExit("The process that keeps PyTorch loaded has ended")
        return json.loads(self.target.read_text()) if answer == "ok" else {"crashed": answer}

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


class Ours:
    """This allocator; `run` returns `{"refused": text}` for exit code 2 and `{"crashed": ...}` for any other failure."""

    def __init__(self, vramscope, torch):
        self.command = [str(vramscope), "replay", "-", "--torch", torch]
        self.environment = dict(os.environ, RUST_BACKTRACE="0")

    def run(self, script):
        return self.run_text(json.dumps(script).encode())

    def run_text(self, text):
        try:
            ended = subprocess.run(self.command, input=text, capture_output=True, timeout=300, env=self.environment)
        except subprocess.TimeoutExpired:
            return {"crashed": "no answer in 300 seconds"}
        said = ended.stderr.decode(errors="replace").strip()
        if ended.returncode == 2:
            return {"refused": said}
        if ended.returncode != 0:
            panic = said.find("panicked at")
            return {"crashed": f"exit code {ended.returncode}: {' '.join(said[max(panic, 0) :].split())[:300]}"}
        try:
            return json.loads(ended.stdout)
        except ValueError as error:
            return {"crashed": f"its output is not JSON: {error}"}
