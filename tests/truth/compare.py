"""Prediction beside truth, and where they differ."""

import dataclasses
import json
import pickle
import subprocess
import tempfile

import settings

# What is compared, by the name that `vramscope whatif` gives it.
NUMBERS = (
    "peak_reserved",
    "peak_allocated",
    "peak_active",
    "reserved_end",
    "segments_end",
    "device_allocs",
    "device_frees",
    "retries",
    "ooms",
)


@dataclasses.dataclass
class Row:
    """One job under one setting in one release."""

    release: str
    job: str
    setting: str
    has_stacks: bool
    predicted: dict
    # What PyTorch counted, at the end or where the prediction stops.
    true: dict
    # Where the run differs from the recorded one, in words; empty if it goes through.
    ending: str
    different: list

    @property
    def is_equal(self):
        return not self.different


def predict(vramscope, snapshot, release, case, memory):
    """Returns what `vramscope whatif` says: the run under the settings of the case, and its self-check."""
    capacity = case["capacity"] or memory or case["total"]
    command = [vramscope, "whatif", snapshot, "--torch", release, "--json", "--conf", case["conf"], "--capacity", str(capacity)]
    if case["fraction"] is not None:
        command += ["--fraction", str(case["fraction"])]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {ended.stderr.strip()}")
    answer = json.loads(ended.stdout)
    return answer["runs"][1], answer["selfcheck"]


def requests_up_to(entries, event):
    """The requests for memory up to an event of the history, which is one."""
    return sum(entry["action"] in ("alloc", "oom") for entry in entries[: event + 1])


def truth_where_it_stops(case, predicted, entries):
    """Returns what PyTorch counted where the prediction stops, and in words why it stops there."""
    number = requests_up_to(entries, predicted["stopped_at"])
    if predicted["stopped_why"] == "failed":
        failures = case["failures"]
        true = failures[predicted["ooms"] - 1] if len(failures) >= predicted["ooms"] else None
        if true is not None and true["served"] + true["ooms"] != number:
            true = None
        return true, f"request {number:,} fails"
    return case["marks"].get(str(number)), f"request {number:,}, which failed, is served"


def compare(vramscope, folder, job, release, has_stacks):
    """Yields a row for each setting that a job was run under."""
    found = json.loads((folder / f"{job}.json").read_text())
    snapshot = folder / (f"{job}.pickle" if has_stacks else f"{job}.bare.pickle")
    entries = pickle.loads(snapshot.read_bytes())["device_traces"][0]
    recorded = found["cases"][0]
    for case in found["cases"]:
        predicted, check = predict(vramscope, snapshot, release, case, found["memory"])
        stop = predicted["stopped_at"]
        true, ending = (case["end"], "") if stop is None else truth_where_it_stops(case, predicted, entries)
        different = []
        if true is None:
            true, different = case["end"], ["where it stops"]
        elif stop is None and case["has_failed"] != recorded["has_failed"]:
            different = ["where it stops"]
        elif stop is None and any(true[name] != recorded["end"][name] for name in ("served", "requested")):
            different = ["what it asks for"]
        different += [name for name in NUMBERS if predicted[name] != true[name]]
        if check["first_difference"] is not None:
            different.append("self-check")
        yield Row(release, job, case["name"], has_stacks, predicted, true, ending, different)
