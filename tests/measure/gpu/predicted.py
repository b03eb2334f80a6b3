#!/usr/bin/env python3
"""What `vramscope predict` says of programs without a GPU, beside what they needed on one.

    predicted.py --list
    predicted.py --measure OUT.json [--job NAME]... [--program PROGRAM]                     (with a GPU)
    predicted.py [OUT.json] [--job NAME]... [--program PROGRAM] [--card NAME] [--table FILE]    (without one)

The programs are in `predicted_jobs.py`. `--measure` runs each in processes of its own: with all of the GPU, recorded; then with
3 % less and 3 % more than the smallest capacity that `whatif` names for that recording, where the driver refuses what is more, as
in `remedy.py`. OUT.json is written after each job, and keeps what it has of others. Nothing else may use the GPU meanwhile.

Without `--measure`, each is predicted, and a table tells how far that is from what was measured, which is `predicted.json` unless
another file is named. It fits a capacity if that is no less than what `predict` says it needs. Exits with 1 if a prediction is
outside of the limits, or if a job that was measured can't be predicted. One that was not measured has only its prediction.
"""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import remedy
from remedy import MIB, ask, pages

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "predicted_jobs.py"
KEPT = HERE / "predicted.json"
COUNTERS = {**remedy.COUNTERS, "peak_requested": "requested_bytes.all.peak"}
LIMITS = {"allocated": 0.01, "reserved": 0.02}
"""How far a prediction may be from what was measured."""
CLOSE = 0.01
"""How far a capacity is from what is needed, at least, for a prediction to be judged by it: what CUDA takes while a program runs
is not in it."""
CARD = "H100-80GB"
"""What they are predicted for, unless something was measured on another device."""


def run(name, capacity, out):
    """Runs a job in this process, with at most `capacity` bytes if it isn't 0. Prints what it came to as JSON."""
    import torch

    import predicted_jobs

    agent, why = None, None
    if out:
        import vramscope

        agent = vramscope.attach(out=out, stacks="python")
    predicted_jobs.begin()
    if capacity:
        import device

        device.Device().set_capacity(capacity)
    start = time.monotonic()
    try:
        predicted_jobs.JOBS[name]()
    except Exception as error:
        # Where memory is short, libraries fail in their own words.
        if not capacity:
            raise
        why = f"{type(error).__name__}: {str(error).strip().split('. If reserved')[0]}"
    torch.cuda.synchronize()
    seconds, stats = time.monotonic() - start, torch.cuda.memory_stats()
    free, total = torch.cuda.mem_get_info()
    found = {key: stats[counter] for key, counter in COUNTERS.items()}
    if agent:
        agent.detach()
    beside = None if capacity else total - free - torch.cuda.memory_reserved()
    about = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "seconds": round(seconds, 1)}
    print(json.dumps({**about, "beside_pytorch": beside, **found, "why": why}))


def in_process(name, capacity=0, out=None):
    """Runs a job in a process of its own. Returns what it came to; of one that failed, the last line of its error."""
    environment = {**os.environ, "VRAMSCOPE_QUIET": "1"}
    if capacity:
        # What the driver loads while the job runs would otherwise come out of the capacity.
        environment["CUDA_MODULE_LOADING"] = "EAGER"
    command = [sys.executable, __file__, "--inside", name, str(capacity), str(out or "")]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return {"error": last_line(done.stderr) or f"the process ended with {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def last_line(text):
    """Returns the last line that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def measured(name, program):
    """Measures a job on this machine's GPU. Returns what is kept of it."""
    with tempfile.TemporaryDirectory() as folder:
        recording = pathlib.Path(folder) / "whole.vramscope"
        found = {"date": datetime.date.today().isoformat(), **in_process(name, out=recording)}
        if "error" in found:
            return found
        smallest = ask(program, "whatif", recording, "--json")["runs"][-1]["smallest_capacity"]
    found["limited"] = []
    for share in (0.97, 1.03):
        capacity = pages(int(share * smallest))
        limited = in_process(name, capacity)
        why = limited.get("error") or limited["why"]
        told = {key: limited[key] for key in ("peak_reserved", "retries") if key in limited}
        found["limited"].append({"capacity": capacity, "fits": why is None, "why": why, **told})
    return found


def measure(out, names, program):
    """Measures jobs, and writes what was found."""
    kept = json.loads(out.read_text()) if out.exists() else {}
    for name in names:
        print(f"{name}:", end=" ", flush=True)
        kept[name] = measured(name, program)
        out.write_text(json.dumps(kept, indent=1) + "\n")
        row = kept[name]
        if "error" in row:
            print(row["error"])
            continue
        limited = ", ".join(f"{one['capacity'] / MIB:,.0f} MiB {'fits' if one['fits'] else 'fails'}" for one in row["limited"])
        sizes = f"allocated {row['peak_allocated'] / MIB:,.0f} MiB, reserved {row['peak_reserved'] / MIB:,.0f} MiB"
        print(f"{sizes}; {limited}; {row['seconds']} s", flush=True)


def predicted(name, program, card):
    """Predicts a job. Returns what it needs, or the error that it ended with."""
    command = [program, "predict", "--json", "--whole", "--card", card, "--python", sys.executable, str(PROGRAMS), name]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return {"error": last_line(done.stderr) or f"the program ended with {done.returncode}"}
    error = next((process["error"] for process in answer["processes"] if process["error"]), None)
    if error or done.returncode != 0:
        return {"error": " ".join((error or last_line(done.stderr)).split())}
    memory = answer["processes"][0]["memory"][0]
    return {"allocated": memory["peak_allocated"], "reserved": memory["peak_reserved"], "needs": answer["needs"]}


def fits(found, row):
    """Returns a description of the runs with limited memory, and whether the prediction is right about all of them."""
    told, right = [], True
    for one in row.get("limited", ()):
        if abs(one["capacity"] / found["needs"] - 1) < CLOSE:
            continue
        is_right = (found["needs"] <= one["capacity"]) == one["fits"]
        told.append(f"{'fits' if one['fits'] else 'fails'} at {one['capacity'] / MIB:,.0f}: {'right' if is_right else '**wrong**'}")
        right &= is_right
    return ", ".join(told), right


def table_row(name, found, row):
    """Returns the cells of a job, and whether its prediction is within the limits."""
    if "error" in found:
        return [name, f"can't be predicted: {shortened(found['error'])}", *[""] * 6], row is None or "error" in row
    cells, right = [name], True
    for what, limit in LIMITS.items():
        cells.append(f"{found[what] / MIB:,.0f}")
        if row is None or "error" in row:
            cells += ["", ""]
            continue
        apart = found[what] / row[f"peak_{what}"] - 1
        is_within = abs(apart) <= limit
        cells += [f"{row[f'peak_{what}'] / MIB:,.0f}", f"{100 * apart:+.2f} %" if is_within else f"**{100 * apart:+.2f} %**"]
        right &= is_within
    told, fits_right = fits(found, row or {})
    told = f"not measured: {shortened(row['error'])}" if row and "error" in row else told
    return [*cells, f"{found['needs'] / MIB:,.0f}", told], right and fits_right


def shortened(error):
    """Returns an error for a cell of a table."""
    return (error if len(error) <= 160 else error[:159] + "…").replace("|", "\\|")


def predict(kept, names, options):
    """Prints the table. Returns whether all predictions are within the limits."""
    head = ["job", "allocated, predicted", "measured", "", "reserved, predicted", "measured", "", "needs", "with less and with more"]
    lines = [f"| {' | '.join(head)} |", "|---|--:|--:|--:|--:|--:|--:|--:|---|"]
    print("\n".join(lines), flush=True)
    right = True
    for name in names:
        row = kept.get(name)
        devices = [one["device"] for one in (row or {}, *kept.values()) if "device" in one]
        card = options.card or (devices[0] if devices else CARD)
        cells, is_right = table_row(name, predicted(name, options.program, card), row)
        right &= is_right
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if options.table:
        options.table.write_text("\n".join(lines) + "\n")
    return right


def main():
    import predicted_jobs

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kept", nargs="?", type=pathlib.Path, default=KEPT, metavar="OUT.json")
    parser.add_argument("--measure", type=pathlib.Path, metavar="OUT.json")
    parser.add_argument("--job", action="append", choices=predicted_jobs.JOBS, metavar="NAME")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--program", default="vramscope")
    parser.add_argument("--card")
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    names = options.job or list(predicted_jobs.JOBS)
    if options.list:
        for name, job in predicted_jobs.JOBS.items():
            print(f"{name:20} {(job.__doc__ or '').strip().splitlines()[0]}")
        return 0
    if options.measure:
        measure(options.measure, names, options.program)
        return 0
    return 0 if predict(json.loads(options.kept.read_text()), names, options) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        run(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        sys.exit(main())
