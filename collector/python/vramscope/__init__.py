"""Watch a training job's GPU memory while it runs.

    import vramscope
    vramscope.attach("http://127.0.0.1:7070")

or from outside, without a change to the program: ``python -m vramscope run train.py``, or the variable ``VRAMSCOPE_TO``
alone. Importing this package does nothing; torch is never imported by it before the program does so.
"""

from __future__ import annotations

import contextlib
import itertools

__version__ = "0.1.0"
__all__ = ["attach", "detach", "mark", "span", "step", "use_allocator"]

_steps = itertools.count()


def attach(to=None, out=None, **options):
    """Watches this process's GPU memory from now on; gives the `Agent`.

    `to` is a server's address (``http://127.0.0.1:7070`` when neither is given), `out` a file to write (both may be
    given). Where CUDA is not initialised yet, watching begins when it is.

    Further: `mode` (``auto``, ``events``: every event, ``budget``: within a share of the time), `stacks` (``python``,
    ``all`` with C++, None), `context` (``alloc``: a free has the stack of its allocation; ``all``: its own; ``state``:
    only what is reserved), `budget` (the share of the time that may be spent, 0.01), `stack_share` (the share of one
    thread that looking stacks up may take), `history` (entries that PyTorch keeps in the mode *budget*), `name`, `job`,
    `token`, `library` (the library's path).

    Raises where an argument can't be, the library is missing, or this process is watched already. What fails later is
    told on standard error and never stops the job.
    """
    from . import _agent, _config

    return _agent.attach(_config.Config(to=to, out=out, **options))


def use_allocator(to=None, out=None, **options):
    """Lets PyTorch take all CUDA memory from Vramscope's allocator; gives the `Allocator`. Before CUDA is used.

    `to` is a server to send every event to, `out` a file to write it to; either, both or none. Further: `settings` (as in
    ``PYTORCH_CUDA_ALLOC_CONF``), `context` (``all``, ``alloc``, ``state`` or ``none``: for which events the Python stack is
    kept), `history` (the newest events that snapshots show), `name`, `job`, `token`, `library`.
    """
    from . import _allocator

    return _allocator.use_allocator(to, out, **options)


def detach():
    """Ends watching, if this process is watched."""
    from . import _agent

    agent = _agent.current()
    return agent.detach() if agent is not None else None


def mark(name):
    """Marks this moment. Does nothing where nothing is watched."""
    from . import _agent

    agent = _agent.current()
    if agent is not None:
        agent.mark(name)


def step(number=None):
    """Marks the beginning of a training step; counts by itself when it is not told the number."""
    mark(f"step {next(_steps) if number is None else number}")


@contextlib.contextmanager
def span(name):
    """Marks the beginning and the end of a piece of work: ``with vramscope.span("forward"):`` or as a decorator."""
    from . import _agent

    agent = _agent.current()
    if agent is None:
        yield
        return
    agent.mark(name, 0)
    try:
        yield
    finally:
        agent.mark(name, 1)
