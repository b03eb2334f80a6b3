"""Makes small values true where no kernel runs.

On the driver without a GPU, device memory is host memory and kernels do nothing. Every operation still runs as it would on a
GPU, so that the allocator sees exactly what it would see there; then, if its CUDA tensors are small, its CPU kernel computes
the result on the very same bytes. So flags, masks, lengths and counters are what they are on a GPU.

- A tensor is *small* if it and its storage have at most `SMALL` bytes, or as whole numbers `WHOLE`; what is larger is never
  computed, and a small part of it counts as zeros.
- A value is *true* if it follows from small values that the program gave. It is *made up* if a large tensor or an operation
  without a CPU kernel took part. Made-up values start as zero (those of `all` and `isfinite` as true) and are computed with
  like true ones, so that a flag with one made-up part still ends a loop; of made-up numbers, NaN and infinity become zero.
- Random numbers of small tensors come from a generator of their own. Gradients that are made up are finite.
- Large tensors on the CPU may be *blank*: their memory is not written, because nothing depends on its values.

Here is which function runs an operation. `storages` knows which values are true, `computing` makes them so, `choices` knows
how much of large masks is set, and `copies`, `randoms` and `sizes` each run one kind of operation. Imports torch, so it is
imported only after the program has done so.
"""

import re

import torch

from . import collectives, operations
from .choices import Choices
from .computing import Computing
from .copies import Copies
from .randoms import Randoms
from .sizes import Sizes
from .sparse import Sparse
from .storages import Storages, clear_free_memory, cuda_device, is_small, most

Tensor = torch.Tensor

EMPTY = re.compile(r"aten::(new_)?empty(_like|_permuted|_strided)?$")

CHECKED = re.compile(r"aten::(_?linalg_|_?cholesky|_?lu_|lstsq|geqrf|_?svd|_fft_)")
"""Operations of libraries that are not there; most read from the device whether they succeeded."""

DECIDING = re.compile(r"aten::(normal|linalg_eig|linalg_matrix_exp|_to_sparse)$")
"""Operations whose kernels decide by values that they computed by other operations, such as whether all are finite."""

OVERWRITING = ("aten::zero_", "aten::fill_", "aten::random_")
"""Operations that do not read what they write over; neither do those that are given tensors for their results."""


class Values:
    """Makes small values true. Counts in `readbacks` what the program reads from the device."""

    def __init__(self, readbacks):
        self._readbacks = readbacks
        self._storages = storages = Storages()
        self._computing = computing = Computing(storages)
        self._randoms = Randoms(storages, computing)
        self._choices = Choices(storages)
        self._sizes = Sizes(storages, computing, self._choices, readbacks)
        self._kept = None
        self.has_convolved = False
        """Whether a convolution ran on a device: cuDNN would have taken a workspace for it."""
        self._copies = Copies(storages, computing, readbacks)
        self._by_name = {
            "aten::_local_scalar_dense": self._item,
            "aten::convolution": self._convolution,
            "aten::equal": self._compare,
            "aten::allclose": self._compare,
            "aten::_ctc_loss": self._ctc_loss,
            "aten::_amp_foreach_non_finite_check_and_unscale_": self._unscale_,
            "aten::linalg_matrix_exp": self._matrix_exp,
            **self._copies.handlers(),
            **Sparse(storages, readbacks).handlers(),
        }

    def start(self):
        """Makes values true from now on, in all threads."""
        self._kept = operations.intercept(self._watched)
        self._randoms.start()

    def launched(self, arguments):
        """A kernel was launched past PyTorch's operations."""
        self._storages.launched(arguments)

    def _watched(self, op):
        """Returns what runs an operation and keeps notes on it, or None if it is left alone."""
        handler = self._handler(op)
        return None if handler is None else self._choices.watch(op, handler)

    def _handler(self, op):
        """Returns what runs an operation, or None."""
        name = op.name
        if not name.startswith("aten::"):
            return collectives.Handler(self._storages, op).run
        if DECIDING.match(name):
            op.run = operations.opened(op)
        returns = op.returns
        is_writing = op.is_writing()
        if not is_writing and returns and all(r.alias_info is not None for r in returns):
            return None
        if not is_writing or name.endswith("_"):
            handler = self._by_name.get(name) or self._randoms.handler(op) or self._sizes.handler(op)
            if handler is not None:
                return handler
        if is_writing:
            return _Writing(self._computing, op).run
        if EMPTY.match(name):
            return self._empty
        return self._checked if CHECKED.match(name) else self._computing.fresh

    def _empty(self, op, args, kwargs):
        out = op.run(*args, **kwargs)
        if is_small(out):
            # Nobody gave it a value. As a true zero, it is true once it was written piece by piece.
            self._storages.clear(out)
        return out

    def _item(self, op, args, kwargs):
        tensor = args[0]
        if tensor.is_cuda:
            is_true = self._storages.is_true((tensor,))
            self._readbacks.count("item", not is_true)
            given = None if is_true else self._readbacks.given()
            if given is not None or is_true is None:
                return torch.full((), given or 0, dtype=tensor.dtype).item()
        return op.run(*args, **kwargs)

    def _convolution(self, op, args, kwargs):
        self.has_convolved = self.has_convolved or args[0].is_cuda
        return self._computing.fresh(op, args, kwargs)

    def _compare(self, op, args, kwargs):
        if not args[0].is_cuda:
            return op.run(*args, **kwargs)
        done = self._computing.compute(op, args, kwargs)
        is_true = done is not None and done[1]
        self._readbacks.count(op.name.partition("::")[2], not is_true)
        given = None if is_true else self._readbacks.given()
        if given is not None:
            return bool(given)
        return args[0].shape == args[1].shape if done is None else done[0]

    def _unscale_(self, op, args, kwargs):
        """Leaves the flag as it is, which is zero, where gradients are made up."""
        op.run(*args, **kwargs)
        if args[0] and args[0][0].is_cuda:
            self._computing.compute(op, args, kwargs)

    def _ctc_loss(self, op, args, kwargs):
        lengths = [one for one in args[2:4] if isinstance(one, Tensor) and not one.is_cuda]
        if len(lengths) == 2 and args[0].is_cuda:
            # Called from outside PyTorch, this kernel refuses lengths that are not on the device.
            return torch.ops.aten._ctc_loss.default(*args[:2], *(one.tolist() for one in lengths), *args[4:], **kwargs)
        return self._computing.fresh(op, args, kwargs)

    def _matrix_exp(self, op, args, kwargs):
        """Reads the norm of one matrix: the larger it is, the more terms are added up, and the more memory is needed."""
        with self._copies.infinite():
            return self._computing.fresh(op, args, kwargs)

    def _checked(self, op, args, kwargs):
        """Runs an operation of a library that is not there, which may read success from new memory that no kernel wrote."""
        if cuda_device(args) is None:
            return op.run(*args, **kwargs)
        clear_free_memory()
        try:
            return self._computing.fresh(op, args, kwargs)
        except RuntimeError:
            result = self._computing.moved(op, args, kwargs)
            if result is None:
                raise
            return result


class _Writing:
    """Finds the tensors that an operation writes into."""

    def __init__(self, computing, op):
        self._computing = computing
        self._places = [
            (number, a.name) for number, a in enumerate(op.arguments) if a.alias_info is not None and a.alias_info.is_write
        ]
        # Then nothing else is returned either.
        self._is_first_only = len(self._places) == 1 and self._places[0][0] == 0 and len(op.returns) == 1
        self._is_first_only = self._is_first_only and str(op.arguments[0].type) == "Tensor"
        self._is_overwriting = op.name in OVERWRITING or not op.name.endswith("_")

    def run(self, op, args, kwargs):
        if self._is_first_only:
            first = args[0]
            if first.layout is not torch.strided or first.nbytes > most(first) and first.is_cuda:
                return op.run(*args, **kwargs)
        written = []
        for number, name in self._places:
            one = args[number] if number < len(args) else kwargs.get(name)
            if isinstance(one, Tensor):
                written.append(one)
            elif one is not None:
                written += one
        return self._computing.write(op, args, kwargs, written, self._is_overwriting)
