"""``python -m vramscope run [options] script.py …``: records a program without changing it."""

from __future__ import annotations

import argparse
import atexit
import importlib.util
import os
import runpy
import site
import sys

from . import __version__, _config, _log


def _parser():
    parser = argparse.ArgumentParser(prog="python -m vramscope", description="Watch a training job's GPU memory.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run", help="run a Python program and record its GPU memory", description="Run a program and record its GPU memory."
    )
    run.add_argument("--to", help=f"the server's address (default: {_config.DEFAULT_TO}, unless --out is given)")
    run.add_argument("--out", help="a file to write; {rank} and {pid} are replaced")
    run.add_argument("--ca-file", metavar="FILE", help="certificates to trust for an https address, instead of the system's")
    run.add_argument("--mode", choices=_config.MODES, default=None, help="how events are captured (default: auto)")
    run.add_argument("--stacks", choices=("python", "all", "none"), default=None, help="which frames stacks have (default: python)")
    run.add_argument("--context", choices=_config.CONTEXTS, default=None, help="which events have their own stack (default: alloc)")
    run.add_argument("--budget", default=None, help="the share of the time that mode budget may take (default: 0.01)")
    run.add_argument("--warn-at", default=None, metavar="SHARE", help="say when this share of the cached memory becomes unusable, such as 0.3")
    run.add_argument("--name", help="the recording's name")
    run.add_argument("--job", help="the name of the job that the process belongs to")
    run.add_argument("-m", dest="module", action="store_true", help="run a module, as with python -m")
    run.add_argument("program", help="the script, or the module with -m")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
    commands.add_parser("build", help="compile the tracker now, for this Python's torch", description="Compile the tracker.")
    return parser


def _missing(options):
    """Returns why the program cannot be run, in one line, or None if it can."""
    program = options.program
    if not options.module:
        return None if os.path.exists(program) else f"No such file: {program}. Give a Python script, or -m MODULE."
    try:
        if importlib.util.find_spec(program) is not None:
            return None
    except ModuleNotFoundError as error:
        if not error.name or not (program + ".").startswith(error.name + "."):
            raise
    except ValueError:
        pass
    return f"No module named {program!r}. Give a module that python -m can run."


def _is_installed():
    """Returns whether the processes that this one starts read the package's .pth file. In a checkout the file exists but is
    not read."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sites = [*site.getsitepackages(), site.getusersitepackages()]
    places = [place for place in sys.path if place in sites or os.path.abspath(place) != own]
    return any(os.path.isfile(os.path.join(place, "vramscope.pth")) for place in places)


def _report_unused():
    from . import _agent

    agent = _agent.current()
    if isinstance(agent, _agent.Agent) and agent.state == "waiting":
        _log.log(
            "Nothing was recorded: the program did not use the GPU. "
            "Processes that it starts are recorded only if the package is installed, which it is not."
        )


def _run(options):
    for name in _config.VARIABLES:
        value = getattr(options, name, None)
        if value is not None:
            # Processes that the program starts inherit the options, if the package is installed.
            os.environ["VRAMSCOPE_" + name.upper()] = value
    if not os.environ.get("VRAMSCOPE_TO") and not os.environ.get("VRAMSCOPE_OUT"):
        os.environ["VRAMSCOPE_TO"] = _config.DEFAULT_TO
    sys.argv = [options.program, *options.arguments]
    if options.module:
        sys.path[0] = os.getcwd()
    missing = _missing(options)
    if missing is not None:
        print(f"vramscope: {missing}", file=sys.stderr)
        return 2
    from . import _agent

    try:
        config = _config.from_environment()
        if _agent.current() is None:
            _agent.attach(config)
    except Exception as error:  # The program must run without the recording.
        _log.log(f"Not recording: {error}")
        for name in ("VRAMSCOPE_TO", "VRAMSCOPE_OUT"):
            # With an installed package, the .pth file would try again and fail again.
            os.environ.pop(name, None)
    if not _is_installed():
        atexit.register(_report_unused)
    if options.module:
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(options.program))
        runpy.run_path(options.program, run_name="__main__")
    return 0


def _build():
    import torch

    from . import _build

    try:
        print(_build.build(torch, is_asked_for=True))
    except _build.BuildError as error:
        print(f"vramscope: Cannot build the tracker: {error}", file=sys.stderr)
        return 1
    return 0


def main(arguments=None):
    options = _parser().parse_args(arguments)
    return _run(options) if options.command == "run" else _build()


if __name__ == "__main__":
    sys.exit(main())
