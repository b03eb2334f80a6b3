"""What `vramscope doctor` says of a snapshot, as far as it speaks of leaks."""

import dataclasses
import json
import re
import subprocess

# A line in a sentence, such as jobs/training.py:33.
PLACE = re.compile(r"[\w./-]+\.py:\d+")


@dataclasses.dataclass
class Answer:
    # The lines that are said to leak, in the order of the findings; None for a finding that names no line.
    lines: list
    # Whether the verdict is a leak.
    is_verdict: bool
    headline: str

    @property
    def text(self):
        if self.lines:
            return self.lines[0] or "a leak without a line"
        return self.headline if self.is_verdict else "no leak"

    def is_right_for(self, job):
        if not job.leaks:
            return not self.lines and not self.is_verdict
        return bool(self.lines) and self.lines[0] in {f"{job.place}:{line}" for line in job.answers}

    def others(self, job):
        """Lines that are said to leak, and are not marked."""
        marked = {f"{job.place}:{line}" for line in job.lines}
        return [str(line) for line in self.lines[1:] if line not in marked]


def ask(program, snapshot):
    command = [str(program), "doctor", str(snapshot), "--json", "--fail-on", "never"]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {ended.stderr.strip()}")
    (device,) = json.loads(ended.stdout)["files"][0]["devices"]
    lines = []
    for finding in device["findings"]:
        if finding["code"] == "leak":
            place = PLACE.search(finding["message"])
            lines.append(place and place[0])
    verdict = device["verdict"]
    is_verdict = verdict["cause"] == "leak" or verdict["headline"].startswith("Growing")
    return Answer(lines, is_verdict, verdict["headline"])
