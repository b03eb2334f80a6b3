"""``python -m vramscope run [options] script.py …``: records a program without changing it."""

from __future__ import annotations

import argparse
import os
import site
import subprocess
import sys

from . import __version__, _config, _server


def _parser():
    parser = argparse.ArgumentParser(prog="python -m vramscope", description="Watch a training job's GPU memory.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run",
        help="run a Python program and record its GPU memory",
        description="Run a program and record its GPU memory. `vramscope watch` also starts a server if none runs, and prints the peak at the end.",
    )
    run.add_argument("--to", help="the server's address (default: your newest server on this machine, unless --out is given)")
    run.add_argument("--out", help="a file to write; {rank} and {pid} are replaced")
    run.add_argument("--ca-file", metavar="FILE", help="certificates to trust for an https address, instead of the system's")
    run.add_argument("--mode", choices=_config.MODES, default=None, help="how events are captured (default: auto)")
    run.add_argument("--stacks", choices=("python", "all", "none"), default=None, help="which frames stacks have (default: python)")
    run.add_argument("--context", choices=_config.CONTEXTS, default=None, help="which events have their own stack (default: alloc)")
    run.add_argument("--budget", default=None, help="the share of the time that mode budget may take (default: 0.01)")
    run.add_argument("--warn-at", default=None, metavar="SHARE", help="say when this share of the cached memory becomes unusable, such as 0.3")
    run.add_argument("--end-seconds", default=None, metavar="SECONDS", help="the time to deliver the rest at the end (default: 10)")
    run.add_argument("--name", help="the recording's name")
    run.add_argument("--job", help="the name of the job that the process belongs to")
    run.add_argument("-m", dest="module", action="store_true", help="run a module, as with python -m")
    run.add_argument("program", help="the script, or the module with -m")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
    commands.add_parser("build", help="compile the tracker now, for this Python's torch", description="Compile the tracker.")
    return parser


def _is_installed():
    """Returns whether new Python processes read the package's .pth file. In a checkout the file exists but is not read."""
    sites = [*site.getsitepackages(), site.getusersitepackages()]
    return any(os.path.isfile(os.path.join(place, "vramscope.pth")) for place in sites)


def environment(options, environ=os.environ):
    """Returns the environment in which Python, and every Python process that it starts, is recorded."""
    found = dict(environ)
    for name in _config.VARIABLES:
        value = getattr(options, name, None)
        if value is not None:
            found["VRAMSCOPE_" + name.upper()] = value
    if not found.get("VRAMSCOPE_TO") and not found.get("VRAMSCOPE_OUT"):
        found["VRAMSCOPE_TO"] = _server.default(found)
    if not _is_installed():
        package = os.path.dirname(os.path.abspath(__file__))
        places = [os.path.join(package, "_site"), os.path.dirname(package), found.get("PYTHONPATH")]
        found["PYTHONPATH"] = os.pathsep.join(place for place in places if place)
    # Told apart from a process that the program starts: only this one says that it recorded nothing.
    found["VRAMSCOPE_RUN_PID"] = str(os.getpid())
    return found


def _checked(environ):
    """Returns the environment, without what asks for a recording if that is not possible; says why, then."""
    from . import _library, _log

    try:
        config = _config.from_environment(environ)
        library = _library.Library(_library.find(config.library))
        if config.to is not None:
            library.address(config.to)
    except Exception as error:  # The program must run without the recording.
        _log.log(f"Not recording: {error}")
        unwanted = ("VRAMSCOPE_TO", "VRAMSCOPE_OUT", "VRAMSCOPE_RUN_PID")
        return {name: value for name, value in environ.items() if name not in unwanted}
    return environ


def _flags():
    """Returns the flags of this interpreter, such as -O, -u or -W, which are meant for the program."""
    words = getattr(sys, "orig_argv", None)  # Since Python 3.10.
    if words is None or "-m" not in words:
        return subprocess._args_from_interpreter_flags()
    return words[1 : words.index("-m")]


def _run(options):
    """Becomes Python with the program: the same process, without a frame or an import of this one."""
    command = [sys.executable, *_flags()]
    command += ["-m", options.program] if options.module else [options.program]
    command += options.arguments
    environ = _checked(environment(options))
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "nt":
        # There, exec returns to the shell at once.
        return subprocess.call(command, env=environ)
    os.execve(sys.executable, command, environ)


def _build():
    import torch

    from . import _build, _log

    try:
        print(_build.build(torch, is_asked_for=True))
    except _build.BuildError as error:
        print(f"vramscope: Cannot build the tracker: {_log.shown(str(error))}", file=sys.stderr)
        return 1
    return 0


def main(arguments=None):
    options = _parser().parse_args(arguments)
    return _run(options) if options.command == "run" else _build()


if __name__ == "__main__":
    sys.exit(main())
