"""Makes small values true where no kernel runs. Imports torch, so it is imported only after the program has done so.

On the driver without a GPU, device memory is host memory and kernels do nothing. Every operation still runs as it would on a
GPU, so that the allocator sees exactly what it would see there; then, if its CUDA tensors are small, its CPU kernel computes
the result on the very same bytes. So flags, masks, lengths and counters are what they are on a GPU.

- A tensor is *small* if it and its storage have at most `SMALL` bytes; what is larger is never computed.
- A value is *true* if it follows from small values that the program gave. It is *made up* if a large tensor or an operation
  without a CPU kernel took part. Made-up values start as zero (those of `all` and `isfinite` as true) and are computed with
  like true ones, so that a flag with one made-up part still ends a loop; of made-up numbers, NaN and infinity become zero.
- Operations whose result's size depends on values do not run on the device, where they would read a count that no kernel
  wrote. On small tensors their CPU kernel decides. On others, the answer is the one that allocates most: every element is
  selected, and all are different. ``VRAMSCOPE_PREDICT_SELECTED`` is another share of selected elements, from 0 to 1.
- Random numbers of small tensors come from a generator of their own. Gradients that are made up are finite.
- Large random tensors on the CPU, such as parameters before they are moved, are not filled: they stay *blank*, unwritten
  memory. So do their copies and conversions, and copies from the CPU to large CUDA tensors are not made.
"""

import ctypes
import functools
import math
import os
import re

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from . import collectives, operations

SMALL = 64 << 10
"""The largest storage, in bytes, whose values are kept; the driver ignores larger writes."""

FEW = 1 << 10
"""The most bytes of made-up numbers that are computed with, other than integers and flags."""

BLANK = 1 << 20
"""The most bytes of a CPU tensor that is always written."""

CPU = torch.device("cpu")
Tensor = torch.Tensor

EMPTY = re.compile(r"aten::(new_)?empty(_like|_permuted|_strided)?$")
RANDOM = re.compile(r"aten::(normal|uniform|exponential|cauchy|log_normal|geometric|bernoulli)_$")
RANDOM_LIKE = re.compile(r"aten::randn?_like$")
RANDOM_MADE = re.compile(r"aten::randn?$")
INDEX = re.compile(r"aten::(_unsafe_)?index(_put|_put_|_put_impl_)?$|aten::_index_put_impl_$")

CHECKED = re.compile(r"aten::(_?linalg_|_?cholesky|_?lu_|lstsq|geqrf|_?svd|_fft_)")
"""Operations of libraries that are not there; most read from the device whether they succeeded."""

OVERWRITING = ("aten::zero_", "aten::fill_", "aten::random_")
"""Operations that do not read what they write over; neither do those that are given tensors for their results."""

MADE_UP_AS_ONE = ("aten::all", "aten::isfinite", "aten::isclose", "aten::isreal")
"""Operations whose made-up results are true: a program that finds its numbers broken stops."""


class Values:
    """Computes small values, and knows which values on the device are true. Counts in `readbacks` what the program reads."""

    def __init__(self, readbacks, selected=None):
        self._readbacks = readbacks
        self._selected = _share(os.environ.get("VRAMSCOPE_PREDICT_SELECTED")) if selected is None else selected
        self._known = {}  # Storage: [its weak reference, whether its bytes are true].
        self._most = 1 << 14
        self._blank = {}  # Storage on the CPU that was not written: its weak reference.
        self._most_blank = 1 << 10
        self._without_cpu_kernel = set()
        self._generator = torch.Generator().manual_seed(0)
        self._random_state = torch.Generator().manual_seed(1).get_state()
        self._kept = None
        self._special = {
            "aten::_local_scalar_dense": self._item,
            "aten::_to_copy": self._to_copy,
            "aten::copy_": self._copy_,
            "aten::clone": self._clone,
            "aten::equal": self._compare,
            "aten::allclose": self._compare,
            "aten::nonzero": self._nonzero,
            "aten::masked_select": self._masked_select,
            "aten::_unique": self._unique,
            "aten::_unique2": self._unique,
            "aten::unique_consecutive": self._unique,
            "aten::unique_dim": self._unique_dim,
            "aten::unique_dim_consecutive": self._unique_dim,
            "aten::repeat_interleave": self._repeat_interleave,
            "aten::bincount": self._bincount,
            "aten::_ctc_loss": self._ctc_loss,
            "aten::_amp_foreach_non_finite_check_and_unscale_": self._unscale_,
        }

    def start(self):
        """Makes values true from now on, in all threads."""
        self._kept = operations.intercept(self._handler)
        for name in ("trunc_normal_", "orthogonal_"):
            setattr(torch.nn.init, name, self._initializing(getattr(torch.nn.init, name)))

    def _initializing(self, real):
        """An initialisation that would try until it likes the numbers, or that takes long."""

        @functools.wraps(real)
        def initialize(tensor, *args, **kwargs):
            if tensor.device.type == "cpu" and tensor.is_floating_point() and tensor.nbytes > BLANK:
                with torch.no_grad():
                    return tensor.normal_()
            return real(tensor, *args, **kwargs)

        return initialize

    def _handler(self, op):
        """Returns what runs an operation, or None if it is left alone."""
        name = op.name
        if not name.startswith("aten::"):
            return collectives.Handler(self, op).run
        returns = op.returns
        is_writing = op.is_writing()
        if not is_writing and returns and all(r.alias_info is not None for r in returns):
            return None
        if name in self._special and (not is_writing or name.endswith("_")):
            return self._special[name]
        if INDEX.match(name) and (not is_writing or name.endswith("_")):
            return self._index
        if is_writing:
            return self._random_ if RANDOM.match(name) else _Writing(self, op).run
        for pattern, handler in ((EMPTY, self._empty), (RANDOM_LIKE, self._random_like), (RANDOM_MADE, self._random_made)):
            if pattern.match(name):
                return handler
        if torch.Tag.dynamic_output_shape in op.tags or torch.Tag.data_dependent_output in op.tags:
            return self._decided_by_values
        return self._checked if CHECKED.match(name) else self.fresh

    # What is known of storages.

    def state(self, tensor):
        """Returns [weak reference, is true] of a small CUDA tensor's storage, or None if the tensor is not small."""
        if tensor.layout is not torch.strided or tensor.nbytes > SMALL:
            return None
        storage = tensor.untyped_storage()
        state = self._known.get(storage._cdata)
        if state is None:
            size = storage.nbytes()
            if size > SMALL:
                return None
            # It was made out of sight, for example by compiled code: what its memory held before is no value.
            if size:
                ctypes.memset(storage.data_ptr(), 0, size)
            state = self._remember(storage, False)
        return state

    def _remember(self, storage, is_true):
        known = self._known
        if len(known) >= self._most:
            for key in [key for key, state in known.items() if state[0].expired()]:
                del known[key]
            self._most = max(1 << 14, 2 * len(known))
        # As long as the weak reference exists, no other storage has this address.
        state = known[storage._cdata] = [StorageWeakRef(storage), is_true]
        return state

    def _settle(self, tensor, is_true):
        """Takes the bytes of a small new CUDA tensor as they are."""
        storage = tensor.untyped_storage()
        state = self._known.get(storage._cdata)
        if state is None:
            self._remember(storage, is_true)
        else:
            state[1] = is_true

    def settle_written(self, tensor, is_true):
        """Something was written into a storage: it is true if that is, and it was before or is written as a whole."""
        storage = tensor.untyped_storage()
        state = self._known.get(storage._cdata)
        if state is not None:
            state[1] = is_true and (state[1] or tensor.nbytes >= storage.nbytes())

    def make_up(self, tensor, byte=0):
        """Gives a new small CUDA tensor a made-up value, unless it is a view of another tensor."""
        storage = tensor.untyped_storage()
        state = self._known.get(storage._cdata)
        if state is not None:
            state[1] = False
            return
        size = storage.nbytes()
        if size <= SMALL:
            if size:
                ctypes.memset(storage.data_ptr(), 0, size)
            self._remember(storage, False)
            if byte:
                alias(tensor).fill_(byte)

    def is_true(self, tensors):
        """Returns whether the values of CUDA tensors are true (True), made up but there (False), or not there (None)."""
        result = True
        for tensor in tensors:
            state = self.state(tensor)
            if state is None:
                return None
            result = result and state[1]
        return result

    def launched(self, arguments):
        """A kernel was launched past PyTorch's operations: what it may have written is made up."""
        for one in arguments:
            if _is_small(one):
                state = self.state(one)
                if state is not None:
                    state[1] = False

    # Computing.

    def compute(self, op, args, kwargs, overwritten=()):
        """Returns (result of the CPU kernel on the same bytes, whether it is true), or None if it can't be computed.

        The values of the tensors `overwritten` do not count for the truth."""
        found = []
        args = [_on_cpu(a, found) for a in args]
        kwargs = {name: _on_cpu(a, found) for name, a in kwargs.items()}
        is_true = True
        for tensor in found:
            state = self.state(tensor)
            if state is None:
                return None
            if not state[1] and not any(tensor is one for one in overwritten):
                is_true = False
        if not is_true and any(one.nbytes > FEW and one.is_floating_point() for one in found):
            return None
        key = (op.run, found[0].dtype if found else kwargs.get("dtype"))
        if key in self._without_cpu_kernel:
            return None
        try:
            args = [_aliases(a) for a in args]
            kwargs = {name: _aliases(a) for name, a in kwargs.items()}
            return self._call(op, args, kwargs), is_true
        except Exception as error:  # Also where a GPU's kernel would fail without a word, as with an index too large.
            if isinstance(error, NotImplementedError) or "not implemented" in str(error):
                self._without_cpu_kernel.add(key)
            return None

    def _call(self, op, args, kwargs):
        """Runs an operation on the CPU, without effect on the program's random numbers."""
        function = SUBSTITUTES.get(op.name, op.run)
        if torch.Tag.nondeterministic_seeded not in op.tags or function is not op.run:
            return function(*args, **kwargs)
        if any(a.name == "generator" for a in op.arguments):
            return function(*args, **dict(kwargs, generator=self._generator))
        kept = torch.default_generator.get_state()
        torch.default_generator.set_state(self._random_state)
        try:
            return function(*args, **kwargs)
        finally:
            self._random_state = torch.default_generator.get_state()
            torch.default_generator.set_state(kept)

    def _fill(self, outs, results, is_true):
        """Writes results of the CPU into the small new tensors that the operation returned."""
        for out, result in zip(outs, results):
            if not _is_small(out):
                continue
            if not isinstance(result, Tensor) or result.shape != out.shape:
                self.make_up(out)
                continue
            if not is_true and result.is_floating_point():
                result = torch.nan_to_num(result, 0.0, 0.0, 0.0)
            alias(out).copy_(result)
            self._settle(out, is_true)

    # Operations of every kind.

    def fresh(self, op, args, kwargs):
        """Runs an operation that returns new tensors."""
        out = op.run(*args, **kwargs)
        # Most are large: nothing more is asked of them.
        if type(out) is Tensor:
            if out.nbytes > SMALL or not out.is_cuda:
                return out
        elif type(out) not in (tuple, list) or not _has_small(out):
            return out
        outs = operations.flat((out,))
        done = None
        if all(not isinstance(one, Tensor) or one.nbytes <= SMALL or not one.is_cuda for one in outs):
            done = self.compute(op, args, kwargs)
        if done is None:
            byte = 1 if op.name in MADE_UP_AS_ONE else 0
            for one in outs:
                if _is_small(one):
                    self.make_up(one, byte)
        else:
            results = operations.flat((done[0],))
            self._fill(outs, results + [None] * (len(outs) - len(results)), done[1])
        return out

    def write(self, op, args, kwargs, written, is_overwriting=False):
        """Runs an operation that writes into the tensors `written`, and may return new ones too."""
        has_small = False
        for one in written:
            if one.nbytes <= SMALL:
                if one.is_cuda:
                    has_small = True
            elif self._blank and len(written) == 1 and one.device.type == "cpu" and self._is_blank(one):
                if all(not isinstance(a, Tensor) or a.is_floating_point() for a in args):
                    return one
        out = op.run(*args, **kwargs)
        news = []
        if type(out) is tuple:
            news = [(number, one) for number, one in enumerate(out) if _is_small(one) and not any(one is w for w in written)]
        if not has_small and not news:
            return out
        done = None
        if all(one.nbytes <= SMALL for one in written):
            done = self.compute(op, args, kwargs, written if is_overwriting else ())
        is_true = done is not None and done[1]
        for one in written:
            if one.is_cuda and self.state(one) is not None:
                if done is not None and not is_true and one.is_floating_point():
                    torch.nan_to_num(alias(one), 0.0, 0.0, 0.0, out=alias(one))
                self.settle_written(one, is_true)
        for number, one in news:
            if done is None:
                self.make_up(one)
            else:
                self._fill((one,), (done[0][number],), is_true)
        return out

    def _checked(self, op, args, kwargs):
        """Runs an operation of a library that is not there, which may read success from new memory that no kernel wrote."""
        if _cuda_device(args) is None:
            return op.run(*args, **kwargs)
        _clear_free_memory()
        try:
            return self.fresh(op, args, kwargs)
        except RuntimeError:
            result = self._moved_answer(op, args, kwargs)
            if result is None:
                raise
            return result

    def _empty(self, op, args, kwargs):
        out = op.run(*args, **kwargs)
        if _is_small(out):
            # Nobody gave it a value. As a true zero, it is true once it was written piece by piece.
            self.make_up(out)
            self._settle(out, True)
        return out

    def _item(self, op, args, kwargs):
        tensor = args[0]
        if tensor.is_cuda:
            is_true = self.is_true((tensor,))
            self._readbacks.count("item", not is_true)
            if is_true is None:
                return torch.zeros((), dtype=tensor.dtype).item()
        return op.run(*args, **kwargs)

    def _compare(self, op, args, kwargs):
        if not args[0].is_cuda:
            return op.run(*args, **kwargs)
        done = self.compute(op, args, kwargs)
        self._readbacks.count(_short(op), done is None or not done[1])
        return args[0].shape == args[1].shape if done is None else done[0]

    def _unscale_(self, op, args, kwargs):
        """Leaves the flag as it is, which is zero, where gradients are made up."""
        op.run(*args, **kwargs)
        if args[0] and args[0][0].is_cuda:
            self.compute(op, args, kwargs)

    def _ctc_loss(self, op, args, kwargs):
        lengths = [one for one in args[2:4] if isinstance(one, Tensor) and not one.is_cuda]
        if len(lengths) == 2 and args[0].is_cuda:
            # Called from outside PyTorch, this kernel refuses lengths that are not on the device.
            return torch.ops.aten._ctc_loss.default(*args[:2], *(one.tolist() for one in lengths), *args[4:], **kwargs)
        return self.fresh(op, args, kwargs)

    # Copies.

    def _to_copy(self, op, args, kwargs):
        source, device = args[0], kwargs.get("device")
        if source.is_cuda:
            if device is not None and device.type == "cpu":
                return self._to_cpu(op, args, kwargs)
            return self.fresh(op, args, kwargs)
        if source.device.type != "cpu" or source.layout is not torch.strided:
            return op.run(*args, **kwargs)
        is_to_cuda = device is not None and device.type == "cuda"
        size = source.numel() * (kwargs.get("dtype") or source.dtype).itemsize
        if is_to_cuda and size > SMALL or self._is_blank(source) and (device is None or device.type == "cpu"):
            # The same memory, without the work of a conversion and of a copy that the driver would ignore.
            named = {name: kwargs[name] for name in ("dtype", "device", "memory_format") if kwargs.get(name) is not None}
            if is_to_cuda:
                return torch.empty_like(source, **named)
            return self._set_blank(torch.empty_like(source, pin_memory=bool(kwargs.get("pin_memory")), **named))
        out = op.run(*args, **kwargs)
        if is_to_cuda and _is_small(out):
            alias(out).copy_(source)
            self._settle(out, True)
        return out

    def _to_cpu(self, op, args, kwargs):
        source = args[0]
        if source.layout is not torch.strided:
            return op.run(*args, **kwargs)
        is_true = self.is_true((source,))
        self._readbacks.count("copy to the CPU", not is_true)
        if is_true is None and source.is_contiguous() and not kwargs.get("pin_memory") and source.nbytes > BLANK:
            return self._set_blank(torch.empty_like(source, dtype=kwargs.get("dtype"), device=CPU))
        out = op.run(*args, **kwargs)
        return out.zero_() if is_true is None else out.copy_(alias(source))

    def _copy_(self, op, args, kwargs):
        to, source = args[0], args[1]
        if to.is_cuda:
            if source.is_cuda:
                return self.write(op, args, kwargs, (to,), True)
            if to.nbytes > SMALL and to.is_contiguous() and (to.dtype is not source.dtype or not source.is_contiguous()):
                return to  # Only the conversion on the CPU would take time.
            op.run(*args, **kwargs)
            if source.device.type == "cpu" and self.state(to) is not None:
                alias(to).copy_(source)
                self.settle_written(to, True)
            return to
        if source.is_cuda and to.device.type == "cpu":
            is_true = self.is_true((source,))
            self._readbacks.count("copy to the CPU", not is_true)
            if is_true is not None or to.nbytes <= BLANK or not source.is_contiguous() or to.dtype is not source.dtype:
                op.run(*args, **kwargs)
                if to.nbytes <= BLANK:
                    to.zero_() if is_true is None else to.copy_(alias(source))
            return to
        if self._blank and to.is_floating_point() and self._is_blank(to):
            return to
        return op.run(*args, **kwargs)

    def _clone(self, op, args, kwargs):
        source = args[0]
        if self._blank and self._is_blank(source):
            return self._set_blank(torch.empty_like(source, memory_format=kwargs.get("memory_format")))
        return self.fresh(op, args, kwargs)

    # Random numbers on the CPU.

    def _is_blank(self, tensor):
        return tensor.nbytes > BLANK and tensor.device.type == "cpu" and tensor.untyped_storage()._cdata in self._blank

    def _set_blank(self, tensor):
        blank, storage = self._blank, tensor.untyped_storage()
        if len(blank) >= self._most_blank:
            for key in [key for key, reference in blank.items() if reference.expired()]:
                del blank[key]
            self._most_blank = max(1 << 10, 2 * len(blank))
        blank[storage._cdata] = StorageWeakRef(storage)
        return tensor

    def _random_(self, op, args, kwargs):
        tensor = args[0]
        if tensor.is_cuda:
            return self.write(op, args, kwargs, (tensor,), True)
        if tensor.device.type == "cpu" and tensor.nbytes > BLANK and tensor.is_floating_point():
            return self._set_blank(tensor)
        return op.run(*args, **kwargs)

    def _random_like(self, op, args, kwargs):
        like = args[0]
        device, dtype = kwargs.get("device") or like.device, kwargs.get("dtype") or like.dtype
        if device.type == "cpu" and like.numel() * dtype.itemsize > BLANK:
            return self._set_blank(torch.empty_like(like, **kwargs))
        return self.fresh(op, args, kwargs)

    def _random_made(self, op, args, kwargs):
        device, dtype = kwargs.get("device") or CPU, kwargs.get("dtype") or torch.get_default_dtype()
        if device.type == "cpu" and math.prod(args[0]) * dtype.itemsize > BLANK:
            named = {name: kwargs[name] for name in ("dtype", "layout", "device", "pin_memory") if name in kwargs}
            return self._set_blank(torch.empty(args[0], **named))
        return self.fresh(op, args, kwargs)

    # Operations whose results' sizes depend on values.

    def _decided_by_values(self, op, args, kwargs):
        result = self._answer(op, args, kwargs)
        return self.fresh(op, args, kwargs) if result is None else result

    def _answer(self, op, args, kwargs):
        """Returns what the CPU kernel says, in CUDA tensors; None if the inputs are large or the kernel is missing."""
        if _cuda_device(args) is None:
            return op.run(*args, **kwargs)
        found = []
        _on_cpu([*args, *kwargs.values()], found)
        is_true = self.is_true(found)
        result = self._moved_answer(op, args, kwargs)
        self._readbacks.count(_short(op), result is None or not is_true)
        return result

    def _moved_answer(self, op, args, kwargs):
        done = self.compute(op, args, kwargs)
        if done is None:
            return None
        (result, is_true), device = done, _cuda_device(args)
        if isinstance(result, (list, tuple)):
            return tuple(self._moved(one, device, is_true) for one in result)
        return self._moved(result, device, is_true)

    def _moved(self, result, device, is_true):
        if not isinstance(result, Tensor):
            return result
        out = torch.empty_strided(result.size(), result.stride(), dtype=result.dtype, device=device)
        if out.nbytes <= SMALL:
            alias(out).copy_(result)
            self._settle(out, is_true)
        return out

    def _some(self, size, like, dtype=torch.int64, byte=0):
        """Returns a CUDA tensor with made-up values."""
        out = torch.empty(size, dtype=dtype, device=like.device)
        if out.nbytes <= SMALL:
            self.make_up(out, byte)
        return out

    def _count(self, number):
        return math.ceil(number * self._selected)

    def _nonzero(self, op, args, kwargs):
        result = self._answer(op, args, kwargs)
        if result is None:
            # In columns, like the kernel's.
            result = self._some((args[0].dim(), self._count(args[0].numel())), args[0]).t()
        return result

    def _masked_select(self, op, args, kwargs):
        result = self._answer(op, args, kwargs)
        if result is None:
            number = math.prod(torch.broadcast_shapes(args[0].shape, args[1].shape))
            result = self._some((self._count(number),), args[0], args[0].dtype)
        return result

    def _unique(self, op, args, kwargs):
        result = self._answer(op, args, kwargs)
        if result is None:
            given, tensor = op.named(args, kwargs), args[0]
            number = tensor.shape[given["dim"]] if given.get("dim") is not None else tensor.numel()
            values = tensor.shape if given.get("dim") is not None else (number,)
            result = self._distinct(tensor, values, number, tensor.shape, given)[: len(op.returns)]
        return result

    def _unique_dim(self, op, args, kwargs):
        result = self._answer(op, args, kwargs)
        if result is None:
            given, tensor = op.named(args, kwargs), args[0]
            number = tensor.shape[given["dim"]]
            result = self._distinct(tensor, tensor.shape, number, (number,), given)
        return result

    def _distinct(self, tensor, values, number, inverse, given):
        return (
            self._some(values, tensor, tensor.dtype),
            self._some(inverse if given.get("return_inverse") else (0,), tensor),
            self._some((number,) if given.get("return_counts") else (0,), tensor, byte=1),
        )

    def _repeat_interleave(self, op, args, kwargs):
        """Made-up numbers of repetitions are one each."""
        given = op.named(args, kwargs)
        repeats = given["repeats"]
        if not isinstance(repeats, Tensor) or not repeats.is_cuda:
            return op.run(*args, **kwargs)
        result = self._answer(op, args, kwargs)
        if result is None:
            number = given.get("output_size")
            result = self._some(repeats.shape if number is None else (number,), repeats)
        return result

    def _bincount(self, op, args, kwargs):
        """Made-up numbers are in the bins that the program asks for at least."""
        result = self._answer(op, args, kwargs)
        if result is None:
            given = op.named(args, kwargs)
            dtype = torch.int64 if given.get("weights") is None else given["weights"].dtype
            result = self._some((max(given.get("minlength") or 0, 1),), args[0], dtype)
        return result

    def _index(self, op, args, kwargs):
        """Masks become the indices that they select, of which the device would have had to tell the number."""
        tensor, indices = args[0], args[1]
        is_put = "put" in op.name
        if tensor.is_cuda and any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in indices):
            values, given = args[2] if is_put else None, []
            for index in indices:
                if index is None or index.dtype not in (torch.bool, torch.uint8):
                    given.append(index)
                else:
                    given += self._selected_by(index, values, tensor.device)
            args = (tensor, given, *args[2:])
        if is_put and op.name.endswith("_"):
            return self.write(op, args, kwargs, (tensor,))
        return self.fresh(op, args, kwargs)

    def _selected_by(self, mask, values, device):
        """Returns the indices that a mask selects, dimension by dimension."""
        if not mask.is_cuda:
            return [self._moved(one.contiguous(), device, True) for one in mask.nonzero().unbind(1)]
        is_true = self.is_true((mask,))
        self._readbacks.count("index by a mask", not is_true)
        if is_true is not None:
            found = self._moved(alias(mask).nonzero(), device, is_true)
        else:
            number = self._count(mask.numel())
            if values is not None and values.dim() and values.shape[0] != 1:
                number = values.shape[0]  # The program has as many values as its mask selects.
            found = self._some((mask.dim(), number), mask).t()
        return [found.select(1, i) for i in range(mask.dim())]


class _Writing:
    """Finds the tensors that an operation writes into."""

    def __init__(self, values, op):
        self._values = values
        self._places = [
            (number, a.name) for number, a in enumerate(op.arguments) if a.alias_info is not None and a.alias_info.is_write
        ]
        # Then nothing else is returned either.
        self._is_first_only = len(self._places) == 1 and self._places[0][0] == 0 and len(op.returns) == 1
        self._is_first_only = self._is_first_only and str(op.arguments[0].type) == "Tensor"
        self._is_overwriting = op.name in OVERWRITING or not op.name.endswith("_")

    def run(self, op, args, kwargs):
        if self._is_first_only and args[0].nbytes > SMALL and args[0].is_cuda:
            return op.run(*args, **kwargs)
        written = []
        for number, name in self._places:
            one = args[number] if number < len(args) else kwargs.get(name)
            if isinstance(one, Tensor):
                written.append(one)
            elif one is not None:
                written += one
        return self._values.write(op, args, kwargs, written, self._is_overwriting)


def alias(tensor):
    """Returns a CPU tensor with the bytes of a CUDA tensor."""
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    if not size:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
    kind = _byte_arrays.get(size)
    if kind is None:
        kind = _byte_arrays[size] = ctypes.c_char * size
    # Not a tensor of a storage: making one takes another operation, and its time.
    bytes_ = torch.frombuffer(kind.from_address(storage.data_ptr()), dtype=tensor.dtype, count=size // tensor.itemsize)
    bytes_ = bytes_.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    if tensor.is_neg():
        bytes_ = torch._neg_view(bytes_)
    return bytes_.conj() if tensor.is_conj() else bytes_


_byte_arrays = {}


def _clear_free_memory():
    """Writes zeros to PyTorch's small free blocks, which is what new memory has."""
    for segment in torch.cuda.memory_snapshot():
        if segment["segment_type"] == "small":
            address = segment["address"]
            for block in segment["blocks"]:
                if block["state"] == "inactive":
                    ctypes.memset(address, 0, block["size"])
                address += block["size"]


def _is_small(one):
    return isinstance(one, Tensor) and one.is_cuda and one.nbytes <= SMALL and one.layout is torch.strided


def _has_small(outs):
    for one in outs:
        if isinstance(one, Tensor):
            if one.nbytes <= SMALL and one.is_cuda:
                return True
        elif isinstance(one, (list, tuple)) and _has_small(one):
            return True
    return False


def _on_cpu(argument, found):
    """Collects CUDA tensors, and returns the argument with the CPU in place of devices."""
    if isinstance(argument, Tensor):
        if argument.is_cuda:
            found.append(argument)
    elif isinstance(argument, (list, tuple)):
        return [_on_cpu(one, found) for one in argument]
    elif isinstance(argument, torch.device):
        return CPU if argument.type == "cuda" else argument
    elif isinstance(argument, torch.Generator):
        return None
    return argument


def _aliases(argument):
    if isinstance(argument, Tensor):
        return alias(argument) if argument.is_cuda else argument
    if isinstance(argument, list):
        return [_aliases(one) for one in argument]
    return argument


def _cuda_device(args):
    for one in args:
        if isinstance(one, Tensor):
            if one.is_cuda:
                return one.device
        elif isinstance(one, (list, tuple)):
            device = _cuda_device(one)
            if device is not None:
                return device
    return None


def _short(op):
    return op.name.partition("::")[2].strip("_")


def _share(text):
    """Returns the number from 0 to 1 in a variable, or 1."""
    try:
        return min(max(float(text), 0.0), 1.0)
    except (TypeError, ValueError):
        return 1.0


def _flash(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
    return (_attention(query, key, value, None, is_causal, scale),)


def _efficient(query, key, value, bias=None, compute_log_sumexp=False, dropout_p=0.0, is_causal=False, *, scale=None):
    return (_attention(query, key, value, bias, is_causal, scale),)


def _attention(query, key, value, bias, is_causal, scale):
    scores = query.float() @ key.float().transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    if bias is not None:
        scores = scores + bias.float()
    return (scores.softmax(-1) @ value.float()).to(query.dtype)


SUBSTITUTES = {
    "aten::_scaled_dot_product_flash_attention": _flash,
    "aten::_scaled_dot_product_efficient_attention": _efficient,
}
"""What the CPU computes for operations that it does not have. Results that are missing are made up."""
