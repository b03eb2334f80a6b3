"""``%load_ext vramscope`` and the magic ``%%vramscope`` for notebooks."""

from __future__ import annotations

import html
import itertools
import os
import pathlib
import tempfile
import urllib.request

from IPython import get_ipython
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

import vramscope

from .. import _agent, _program, _server, _share
from .._log import log
from ._picture import picture

PROBE_SECONDS = 0.5
"""How long a server may take to answer before the cell is recorded without it."""
SHARED_FOR = "7d"
"""How long the server keeps what a frame shows."""

_numbers = itertools.count(1)
_folder = None


def load(ipython):
    """Registers the magic."""
    ipython.register_magic_function(_magic, magic_kind="cell", magic_name="vramscope")


@magic_arguments("%%vramscope")
@argument("server", nargs="?", help="the server's address (default: that of the recording, VRAMSCOPE_TO, or a local one)")
@argument("--page", action="store_true", help="put the whole page into the notebook, which adds about 3 MiB to it")
@argument("--height", type=int, default=600, help="the height of the page in pixels (default: 600)")
@argument("--keep", metavar="FILE", help="write the recording to this file (default: one that ends with the kernel)")
def _magic(line, cell):
    """Runs the cell, records its GPU memory, and shows it below the cell.

    With a server that may be framed here (``vramscope serve --embed-origin`` and the notebook's address), that is its page,
    which shows a copy of the recording without names of users and hosts; otherwise a picture and the report.
    """
    options = parse_argstring(_magic, line)
    server, may_frame = _answering(options.server)
    own, agent = None, _agent.current()
    if agent is None:
        out = options.keep or _file()
        try:
            own = agent = vramscope.attach(to=server, out=out)
        except Exception as error:  # The cell runs in any case.
            log(f"Not recording: {error}")
    with vramscope.span("cell"):
        error, shown = _run(get_ipython(), cell)
    if own is not None:
        own.detach()
    if agent is not None:
        _show(agent, server, may_frame, options)
    if error is not None:
        # Shown here, below the picture, without the frames of this module.
        error._render_traceback_ = lambda: shown
        raise error


def _run(shell, cell):
    """Runs a cell. Returns its error, or None, and the lines of its traceback, which are not shown yet."""
    shown, show = [], shell._showtraceback
    shell._showtraceback = lambda _kind, _error, lines: shown.extend(lines)
    try:
        result = shell.run_cell(cell)
    finally:
        shell._showtraceback = show
    return result.error_before_exec or result.error_in_exec, shown


def _file():
    """Returns a new name in a folder that is deleted when the kernel ends."""
    global _folder
    if _folder is None:
        _folder = tempfile.TemporaryDirectory(prefix="vramscope-")
    return os.path.join(_folder.name, f"cell-{next(_numbers)}.vramscope")


def _answering(given):
    """Returns the address of a server that answers, or None, and whether other sites may frame its page."""
    agent = _agent.current()
    # An allocator of Vramscope's own records as well, but not as an agent.
    is_agent = agent is None or isinstance(agent, _agent.Agent)
    to = _share.server_of(given) if is_agent or given else _server.default()
    try:
        health, _ = _get(to, "/api/v1/health/live")
    except (OSError, ValueError) as error:
        if given:
            log(f"{given} does not answer ({error}); the cell is recorded without it.")
        return None, False
    if health != b"ok\n":
        return None, False
    try:
        policy = _get(to, "/?embed")[1].get("content-security-policy", "")
    except OSError:
        return to, False  # A server without a page.
    ancestors = policy.partition("frame-ancestors")[2].partition(";")[0].strip()
    return to, ancestors not in ("", "'none'")


def _get(to, path):
    """Returns a server's answer and its headers. It never goes through a proxy: the recording is not sent through one either."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(to.rstrip("/") + path, timeout=PROBE_SECONDS) as answer:
        return answer.read(1 << 20), answer.headers


def _show(agent, server, may_frame, options):
    path = _path(agent)
    lines, body = [], ""
    if server is not None and agent.session:
        url = f"{server.rstrip('/')}/#session={agent.session}"
        lines.append(f'<a href="{html.escape(url)}" target="_blank">{html.escape(url)}</a>')
    if path is None:
        text = "Recorded." if agent.session else "The GPU was not used."
        display({"text/plain": text, "text/html": _paragraph(lines or [text])}, raw=True)
        return
    if server is not None and may_frame:
        body = _frame(path, server, options.height)
    if not body and options.page:
        body = _page(path, options.height)
    report, why = _program.run("report", "--", path)
    text = report.partition("\n")[2].strip("\n") if report is not None else f"No report: {why}"
    if not body:
        body = f'{picture(path)}<pre style="white-space:pre-wrap">{html.escape(text)}</pre>'
    if _folder is None or not path.startswith(_folder.name):
        lines.append(html.escape(path))
    display({"text/plain": text, "text/html": _paragraph(lines) + body}, raw=True)


def _paragraph(lines):
    return f"<p>{'<br>'.join(lines)}</p>" if lines else ""


def _path(agent):
    """Returns the file of a recording, with everything so far, or None."""
    claim = getattr(agent, "_claim", None)
    if claim is None:
        return None
    if agent.state == "running":
        agent.flush()
    return claim.path if os.path.isfile(claim.path) else None


def _frame(path, server, height):
    """Returns a frame with the server's page, or an empty text if it takes no traces."""
    try:
        link = vramscope.share(path, server, expires=SHARED_FOR, name=f"notebook, {pathlib.PurePath(path).stem}")
    except vramscope.ShareError as error:
        log(f"The server does not show the recording here: {error}")
        return ""
    return f'<iframe src="{html.escape(link)}?embed" width="100%" height="{height}" style="border:0"></iframe>'


def _page(path, height):
    """Returns the page with the recording inside, or an empty text."""
    with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
        out = os.path.join(folder, "page.html")
        _, why = _program.run("export", "--out", out, "--", path)
        if not os.path.isfile(out):
            log(f"No page: {why}")
            return ""
        with open(out, encoding="utf-8") as file:
            inside = html.escape(file.read())
    return f'<iframe srcdoc="{inside}" width="100%" height="{height}" style="border:0"></iframe>'
