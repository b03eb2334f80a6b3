"""Watch a training job's GPU memory while it runs.

    import vramscope
    vramscope.attach("http://127.0.0.1:7070")

Or without changing the program: ``python -m vramscope run train.py``, or set the variable ``VRAMSCOPE_TO``. Importing this
package has no effect, and it never imports torch before the program does.
"""

from __future__ import annotations

import contextlib
import itertools
import sys

__version__ = "0.1.0"
__all__ = [
    "Monitor",
    "attach",
    "detach",
    "diff",
    "mark",
    "oom_guard",
    "predict",
    "record",
    "retry_on_oom",
    "share",
    "span",
    "step",
    "use_allocator",
]

_steps = itertools.count()


def attach(to=None, out=None, **options):
    """Records this process's GPU memory from now on. Returns the `Agent`.

    - `to`: a server's address. If `out` is not given either, the default is the variable ``VRAMSCOPE_TO``, or else your newest
      server on this machine, or ``http://127.0.0.1:7070``.
    - `out`: a file to write, ending in ``.vramscope``. Both may be given.
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
    - `end_seconds`: the time to deliver the rest at the end (10; at most 2 to a server that never answered).

    If this process is already recorded, for example by ``vramscope watch``, its agent is returned and the arguments have no
    effect. If CUDA is not initialised yet, recording starts when it is. Raises an error if an argument is invalid or the
    library is missing. Later errors are printed to standard error and never stop the job.
    """
    from . import _agent, _config

    return _agent.attach(_config.of("attach", to=to, out=out, **options))


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
    if name == "PredictError":
        from ._prediction import PredictError

        return PredictError
    if name == "DiffError":
        from ._diff import DiffError

        return DiffError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def record(path, *, on_oom=None, **options):
    """Records this process's GPU memory into a file, without a server: ``with vramscope.record("run.vramscope"):``, or as a
    decorator of a function.

    - `path`: the file. ``{rank}`` and ``{pid}`` are replaced, and ``{n}`` by the number of the use: without it, a decorated
      function that is called again writes over the file.
    - `on_oom`: True or a number keeps the last 100,000 events of each device, or that many, in PyTorch's own history, and
      writes the file only when memory runs out, as a snapshot with these events. An entry takes about 0.4 KiB.
    - `options`: those of `attach`, without `on_oom`.

    All threads of the process are recorded. The file is complete when the block ends, also by an error, which is raised
    untouched. The object's ``path`` is then the written file, or None. Inside another recording of this process, the block
    runs, nothing is written, and a line says so; the same holds if the GPU is not used. Raises an error if an argument is
    invalid, the folder does not exist, or the native library is missing, which `on_oom` does not need.
    """
    from . import _record

    return _record.Record(path, on_oom=on_oom, **options)


def oom_guard(on_oom=None, *, out="oom-{pid}-{n}.pickle", history=100_000, program=None):
    """Tells why, if the GPU's memory runs out: ``with vramscope.oom_guard():``, or as a decorator of a function.

    It writes what led to the error to a file and prints what ``vramscope doctor`` says about it. The file is this process's
    recording if that has one, and else a snapshot with PyTorch's last events. All errors are raised untouched, unless
    `on_oom` returns True.

    - `on_oom`: a function that receives a `Failure`: ``message``, ``path``, ``verdict``. If it returns True, the error is
      dropped together with the tensors of the calls that failed, the cache is emptied, and the program continues after the
      block. Variables of the function with the block itself stay.
    - `out`: the snapshot's name, with ``{pid}`` and the number ``{n}``, or None for no file. A process writes at most ten.
    - `history`: how many events of each device PyTorch keeps, about 0.4 KiB each, from the first guard until the process
      ends; 0 for none. A history that the program keeps itself is used as it is.
    - `program`: the path of the program ``vramscope``. Without the program there is no verdict, and a line says so.
    """
    from . import _oom

    return _oom.Guard(on_oom, out=out, history=history, program=program)


def retry_on_oom(
    sizes,
    factor=0.5,
    times=3,
    *,
    on_oom=None,
    out="oom-{pid}-{n}.pickle",
    history=100_000,
    program=None,
    in_many_ranks=False,
):
    """Decorates a function so that it is called again with less if the GPU's memory runs out.

        @vramscope.retry_on_oom(sizes="batch", factor=0.5, times=3)
        def train(data, batch=64): ...

    Each failure is reported as `oom_guard` does. Then the tensors that the failed call holds are dropped, the cache is
    emptied, and the function is called with smaller sizes. Every other error is raised untouched. After the last call, or if
    nothing can be smaller, its own error is raised.

    - `sizes`: the name of the argument that becomes smaller, or several names. Each is a number; an integer stays one, and
      is at least 1.
    - `factor`: what sizes are multiplied by. `times`: how many further calls are made at most.
    - `on_oom`: a function that receives each `Failure`: ``message``, ``path``, ``verdict``, ``sizes`` and ``next_sizes``.
    - `out`, `history`, `program`: as for `oom_guard`.
    - `in_many_ranks`: call again also if `torch.distributed` has several ranks. The others do not know of it: their
      collective operations have to match by themselves.

    The function must be one that can be called again: what it has changed before it failed, such as gradients, stays. Each
    call begins with the sizes that it is given; the function's attribute ``sizes`` has those that worked last. Generators
    and coroutines are refused with a `TypeError`.
    """
    from . import _oom

    return _oom.Retry(sizes, factor, times, on_oom, out, history, program, in_many_ranks)


def load_ipython_extension(ipython):
    """Adds the magic ``%%vramscope`` to a notebook: ``%load_ext vramscope``."""
    from .integrations import notebook

    notebook.load(ipython)


def __dir__():
    return sorted(__all__)


def detach():
    """Ends the recording of this process, if there is one. Returns its final counts, or None."""
    from . import _agent

    agent = _agent.current()
    return agent.detach() if agent is not None else None


def diff(before, after=None, *, at=None, device=None, map=None, fail_if=(), force=False, program=None):
    """Compares two runs, and returns what changed: the dict that ``vramscope diff --json`` prints. As a text, it is one sentence:
    ``print(vramscope.diff("before.pickle", "after.pickle"))``.

    - `before`, `after`: a file (a snapshot, a recording or, as the first, a baseline), or a snapshot as
      ``torch.cuda.memory._snapshot()`` returns it. Without `after`, two moments of one run are compared.
    - `at`: the moment of both, or a pair of two: ``"peak"``, ``"end"``, ``"step:12"`` (its peak), ``"step-end:12"``,
      ``"event:1000"``, ``"time:12.5"`` (seconds) or ``"mark:NAME"``. The default is the peak of the last step that both have
      whole, or else of the run; and of one run, the peaks of its second and of its last whole step.
    - `device`: its number in the files. `map`: beginnings of paths in the first run, each with what it is in the second.
    - `fail_if`: rules such as ``"peak+2%"``; ``is_tripped`` of the result tells whether one is broken.
    - `force`: compares what can't be compared, too. `program`: the path of the program ``vramscope``.

    Raises `vramscope.DiffError` if the runs can't be read or compared.
    """
    from . import _diff

    return _diff.diff(before, after, at, device, map, fail_if, force, program)


def predict(script, *arguments, program=None, **options):
    """Runs a script, or a function without arguments, without a GPU, and returns what memory it needs: a `dict` that is, as a
    text, its sentence.

    - `script`: a path, with its `arguments`; or a function at the top of a module.
    - `card`, `capacity`: the card that it should fit on, such as ``"H100-80GB"``, or an amount of memory, such as ``"80GiB"``.
    - `fail_if_over`: the share of the memory that it may need, such as 0.9; `found.fits` says whether it keeps to it.
    - `world_size`, `rank`: run as one rank, or as several one after the other, of so many.
    - `vary`: ``"batch_size=1..256"`` looks for the largest that fits (`found["largest"]`).
    - `program`: the path of the program ``vramscope``. All other options are those of ``vramscope predict --help``.

    Raises `vramscope.PredictError` if nothing can be predicted, or if the program fails for another reason than memory.
    """
    from . import _prediction

    return _prediction.predict(script, arguments, program, options)


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
    ring = sys.modules.get("vramscope._ring")
    if ring is not None:
        ring.mark(name, stage)


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
