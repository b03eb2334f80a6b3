"""Watch a training job's GPU memory while it runs.

    import vramscope
    vramscope.attach("http://127.0.0.1:7070")

Or without changing the program: ``python -m vramscope run train.py``, or set the variable ``VRAMSCOPE_TO``. Importing this
package has no effect, and it never imports torch before the program does.
"""

from __future__ import annotations

import contextlib
import itertools

__version__ = "0.1.0"
__all__ = ["Monitor", "attach", "detach", "mark", "share", "span", "step", "use_allocator"]

_steps = itertools.count()


def attach(to=None, out=None, **options):
    """Records this process's GPU memory from now on. Returns the `Agent`.

    - `to`: a server's address. If `out` is not given either, the default is the variable ``VRAMSCOPE_TO``, or else your newest
      server on this machine, or ``http://127.0.0.1:7070``.
    - `out`: a file to write. Both may be given.
    - `mode`: ``"auto"``, ``"events"`` (every event) or ``"budget"`` (within a share of the time).
    - `stacks`: ``"python"``, ``"all"`` (with C++ frames) or None.
    - `context`: ``"alloc"`` (a free has the stack of its allocation), ``"all"`` (its own stack) or ``"state"`` (stacks of
      existing blocks only).
    - `budget`: the share of the time that the mode *budget* may spend (0.01).
    - `stack_share`: the share of one thread's time for looking up stacks (0.05).
    - `history`: how many entries PyTorch keeps in the mode *budget* (10,000).
    - `name`, `job`: the names of the recording and of its job.
    - `warn_at`: prints a line when this share of the cached memory becomes unusable, for example 0.3 (see `Monitor`).
    - `token`: the server's access token. `library`: the native library's path.
    - `ca_file`: a file with the certificates to trust for an ``https://`` address, instead of the system's.

    - `end_seconds`: the time to deliver the rest at the end (10).

    If this process is already recorded, for example by ``vramscope watch``, its agent is returned and the arguments have no
    effect. If CUDA is not initialised yet, recording starts when it is. Raises an error if an argument is invalid or the
    library is missing. Later errors are printed to standard error and never stop the job.
    """
    from . import _agent, _config

    return _agent.attach(_config.Config(to=to, out=out, **options))


def use_allocator(to=None, out=None, **options):
    """Makes PyTorch allocate all CUDA memory with Vramscope's allocator. Returns the `Allocator`.

    Call it before CUDA is used. `to` is a server to send every event to, `out` a file to write it to; both are optional.
    Further options: `settings` (as in ``PYTORCH_CUDA_ALLOC_CONF``), `context` (for which events the Python stack is kept:
    ``"all"``, ``"alloc"``, ``"state"`` or ``"none"``), `history` (how many of the newest events snapshots show), `name`,
    `job`, `token`, `ca_file` and `library`.
    """
    from . import _allocator

    return _allocator.use_allocator(to, out, **options)


def __getattr__(name):
    # Imported when it is used, so that the package stays small where a variable loads it.
    if name == "Monitor":
        from ._monitor import Monitor

        return Monitor
    if name == "ShareError":
        from ._share import ShareError

        return ShareError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def detach():
    """Ends the recording of this process, if there is one. Returns its final counts, or None."""
    from . import _agent

    agent = _agent.current()
    return agent.detach() if agent is not None else None


def share(
    trace=None,
    server=None,
    token=None,
    expires="30d",
    password=None,
    *,
    name=None,
    public=False,
    ca_file=None,
    program=None,
):
    """Shares a trace on a server, and returns its link: a text with the further attribute ``delete_token``.

    - `trace`: a file (a snapshot or a recording), a snapshot as ``torch.cuda.memory._snapshot()`` returns it, or None for
      one of this process now.
    - `server`: the server's address. The default is that of this process's recording, or else that of `attach`.
    - `token`: a token with the role *share*; the default is the variable ``VRAMSCOPE_TOKEN``.
    - `expires`: when the link expires, such as ``"12h"`` or ``"30d"``, or None for never.
    - `password`: what the link asks for. `name`: the name of the link.
    - `public`: whether everybody who reaches the server may open the link; the server has to allow it.
    - `ca_file`: a file with the certificates to trust. `program`: the path of the program ``vramscope``.

    Names of users and hosts, home folders and attached texts are left out, as by ``vramscope push``. The call waits until the
    trace has been sent. Raises `vramscope.ShareError` if that fails.
    """
    from . import _share

    return _share.share(trace, server, token, expires, password, name, public, ca_file, program)


def mark(name):
    """Marks this moment. Does nothing if this process is not recorded."""
    _mark(name, 2)


def _mark(name, stage):
    from . import _agent

    agent = _agent.current()
    if agent is not None:
        agent.mark(name, stage)


def step(number=None):
    """Marks the start of a training step. Without a number, it counts the calls."""
    mark(f"step {next(_steps) if number is None else number}")


@contextlib.contextmanager
def span(name):
    """Marks the start and the end of a piece of work: ``with vramscope.span("forward"):``, or as a decorator."""
    _mark(name, 0)
    try:
        yield
    finally:
        _mark(name, 1)
