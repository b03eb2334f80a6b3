#!/usr/bin/env python3
"""Writes PyTorch's results for settings strings: `shared/allocator/tests/fixtures/settings/RELEASE.jsonl`.

    settings_results.py --torch 2.11 [--strings FILE.jsonl] > RESULTS.jsonl
    settings_results.py --torch 2.11 --check                  compares the release's stored results with new ones

The strings are those of another release's results; without --strings, of the release's own. It makes the environment of
the release first (`environment.py`). `shared/allocator/tests/allocator/settings.rs` describes the form of a line and compares this project's
parser with the results.
"""

import argparse
import json
import os
import resource
import subprocess
import sys

# The settings' name in a snapshot that repeats the string itself.
ECHO = "PYTORCH_CUDA_ALLOC_CONF"
CRASH, UNSET = "crash", "unset"


def settings():
    """Returns the settings in force, in the order of a snapshot."""
    import torch

    return list(torch.cuda.memory._snapshot()["allocator_settings"].items())


def failure(error):
    from execute import first_line

    return f"{type(error).__name__}: {first_line(error)}"


def while_running(strings):
    """Applies strings one after the other. Returns the error of each, and the settings afterwards."""
    import torch

    torch.cuda.init()
    errors = []
    for text in strings:
        try:
            torch.cuda.memory._set_allocator_settings(text)
            errors.append(None)
        except Exception as error:
            errors.append(failure(error))
    return errors, settings()


def at_start(text):
    """Starts CUDA with a string in the environment. Returns the error and the settings, one of them `None`."""
    import torch
    from execute import variables

    os.environ.update(variables({"config": text}, torch.__version__))
    try:
        torch.cuda.init()
        return None, settings()
    except Exception as error:
        return failure(error), None


def in_child(work, *arguments):
    """Returns the result of `work` in a forked child, which has not used CUDA yet; `None` if it ends the process."""
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.close(receiver)
            with os.fdopen(sender, "w") as pipe:
                pipe.write(json.dumps(work(*arguments)))
            os._exit(0)
        finally:
            # No teardown: PyTorch's may hang in a forked child.
            os._exit(1)
    os.close(sender)
    with os.fdopen(receiver) as pipe:
        text = pipe.read()
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return json.loads(text) if ended == 0 else None


def changes(now, base):
    """Returns the settings that differ from `base`, without the string itself."""
    return {name: value for (name, value), before in zip(now, base) if [name, value] != before and name != ECHO}


def row(strings, base):
    """Returns the line of some strings."""
    ran = in_child(while_running, strings)
    errors, changed = (CRASH, {}) if ran is None else (ran[0], changes(ran[1], base))
    if "\0" in strings[0]:
        # An environment cannot hold it.
        return [strings, errors, changed, UNSET]
    started = in_child(at_start, strings[0])
    if started is None:
        return [strings, errors, changed, CRASH]
    error, now = started
    at_the_start = changes(now, base) if error is None else changed
    # The start has the first string only.
    is_same = at_the_start == changed and (error is not None or len(strings) == 1)
    return [strings, errors, changed, error] + ([] if is_same else [at_the_start])


def inside():
    """Runs in the environment: reads lists of strings from standard input, and prints all lines of the results."""
    import torch.cuda.memory  # noqa: F401

    answers = os.fdopen(os.dup(1), "w")
    # PyTorch warns of some settings.
    os.dup2(2, 1)
    base = in_child(settings)
    with answers:
        for line in (base, *(row(strings, base) for strings in json.load(sys.stdin))):
            answers.write(json.dumps(line, separators=(",", ":")) + "\n")


def main():
    from environment import HERE, ROOT, Environment

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--strings")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    stored = ROOT / "shared/allocator/tests/fixtures/settings" / f"{arguments.torch}.jsonl"
    with open(arguments.strings or stored, encoding="utf-8") as file:
        strings = [json.loads(line)[0] for line in list(file)[1:]]
    environment = Environment(arguments.torch)
    # Its messages must not be among the results.
    output, sys.stdout = sys.stdout, sys.stderr
    environment.make()
    command = environment.command(HERE / "settings_results.py", "--inside")
    options = {"env": environment.variables(), "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    results = subprocess.run(command, input=json.dumps(strings).encode(), check=True, **options).stdout.decode()
    if not arguments.check:
        output.write(results)
        return
    pairs = list(zip(stored.read_text(encoding="utf-8").splitlines(), results.splitlines(), strict=True))
    different = [(old, new) for old, new in pairs if json.loads(old) != json.loads(new)]
    for old, new in different:
        output.write(f"stored {old}\nnow    {new}\n")
    output.write(f"{len(pairs) - len(different)} of {len(pairs)} lines are equal\n")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    inside() if sys.argv[1:] == ["--inside"] else main()
