"""Runs PyTorch's operations through functions in Python. Imports torch, so it is imported only after the program has done so.

A `TorchDispatchMode` would be the usual way, but PyTorch then allocates otherwise than without one: its backward pass adds
gradients up out of place while a mode is on (`isTensorSubclassLike`), and every view costs 7 µs. So the functions stand in the
dispatcher itself, as kernels of the key `BackendSelect`: below autograd, autocast and tensor subclasses, right above a
device's own kernels, in all threads, and unseen by `torch.compile`. What a kernel calls itself goes past them.
"""

import warnings

import torch

_KEY = torch._C.DispatchKey.BackendSelect

_INSIDE = "TESTING_ONLY_GenericMode"
"""A key that nothing uses: it takes the place of `BackendSelect` for what kernels call."""

_INSIDE_KEY = torch._C._parse_dispatch_key(_INSIDE)
_TRACING = torch._C.DispatchKey.PythonDispatcher
_SetExcluded = torch._C._SetExcludeDispatchKeyGuard
_set_excluded = torch._C._dispatch_tls_set_dispatch_key_excluded
_set_included = torch._C._dispatch_tls_set_dispatch_key_included
_is_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded
_is_included = torch._C._dispatch_tls_is_dispatch_key_included
_BELOW = torch._C._dispatch_keyset_full_after(_KEY)
_META, _META_KEYS = torch.device("meta"), torch._C.DispatchKeySet(torch._C.DispatchKey.Meta)
_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key

_STRIDED, _CONTIGUOUS = (None, torch.strided), (None, torch.contiguous_format)
_current_device = torch._C._cuda_getDevice
_MAKERS = {kind: getattr(torch._C._dynamo.guards, f"_empty_strided_{kind}", None) for kind in ("cuda", "cpu")}

NAMESPACES = ("aten", "c10d", "_c10d_functional")

LEFT_OUT = (
    "aten::is_pinned",
    "aten::_pin_memory",
    "aten::record_stream",
    "aten::resize_",
    "aten::resize_as_",
    "aten::set_",
    "aten::_reshape_alias",
    "aten::_resize_output_",
    "aten::_sparse",
    "aten::sparse",
    "aten::_unsafe_view",
    "aten::empty_quantized",
    "aten::_empty_affine_quantized",
    "aten::_empty_per_channel_affine_quantized",
    "aten::q_",
    "aten::quantize",
    "aten::mkldnn",
    "aten::_nested",
    "aten::_version",
    "aten::sym_",
)
"""Beginnings of names of operations that compute no values, or whose tensors are not plain."""


READING = "aten::_local_scalar_dense"
"""Is run on the CPU for each parameter by optimizers that count steps there."""

ALSO_INSIDE = ("aten::_coalesce",)
"""Operations that are run through their handlers also where a kernel calls them."""


class Operation:
    """One operation. `run` is what it does by itself; inside a handler it does not come back to one.

    It is not taken from `torch.ops`: what is found there, `torch.compile` takes for something that the program uses."""

    def __init__(self, name):
        base, _, overload = name.partition(".")
        schema = torch._C._get_schema(base, overload)
        self.name, self.arguments, self.returns = schema.name, schema.arguments, schema.returns
        self.run, _, tags = torch._C._get_operation_overload(base, overload)
        self.tags = set(tags)
        self.is_random = torch.Tag.nondeterministic_seeded in self.tags
        self.redispatch = torch._C._dispatch_find_schema_or_throw(base, overload).redispatch_boxed

    def is_writing(self):
        return any(a.alias_info is not None and a.alias_info.is_write for a in self.arguments)

    def named(self, args, kwargs):
        """Returns the arguments by name."""
        given = {a.name: a.default_value for a in self.arguments if a.has_default_value()}
        given.update((a.name, value) for a, value in zip(self.arguments, args))
        given.update(kwargs)
        return given


def intercept(choose):
    """Runs operations through `choose(operation)`: a `handler(operation, args, kwargs)`, or None.

    Returns what must be kept as long as it should last."""
    libraries = {name: torch.library.Library(name, "IMPL") for name in NAMESPACES}
    libraries["_"] = torch._C._dispatch_library("IMPL", "_", _INSIDE)
    libraries["_"].fallback_fallthrough()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Kernels of this key are replaced on purpose.
        for name in torch._C._dispatch_get_all_op_names():
            namespace = name.partition("::")[0]
            if namespace not in NAMESPACES:
                continue
            is_made = _has_kernel(name, "BackendSelect") and name != "aten::_to_copy"
            is_left_out = name.startswith(LEFT_OUT) or not _is_wanted(name)
            if is_left_out and not is_made:
                continue
            try:
                operation = Operation(name)
            except RuntimeError:
                continue
            if is_made:
                _make_inside(libraries[namespace], name, operation)
            handler = None if is_left_out else choose(operation)
            if handler is not None:
                _handle(libraries[namespace], name, operation, handler)
    return libraries


def _make_inside(library, name, operation):
    """With `BackendSelect` left out, nothing else would find the device of what is made of nothing."""
    operation.run = _on_device(operation)
    make = MAKING.get(name)
    library.impl(name.partition("::")[2], operation.run if make is None else make(operation.run), _INSIDE)


def _handle(library, name, operation, handler):
    rest = name.partition("::")[2]
    kernel = _reading(operation, handler) if name == READING else _kernel(operation, handler)
    library.impl(rest, kernel, "BackendSelect")
    if name in ALSO_INSIDE:
        operation.run = closed(operation)  # By its name, it would come back here.
        library.impl(rest, _kernel(operation, handler, True), _INSIDE)


def _is_wanted(name):
    """Returns whether a device has a kernel of an operation; others are done by several operations."""
    return name in ALSO_INSIDE or not _has_kernel(name, "CompositeImplicitAutograd") and any(
        _has_kernel(name, key) for key in ("CUDA", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
    )


def _kernel(operation, handler, is_inside=False):
    """Returns what runs an operation through a handler. `is_inside`: where a kernel calls it."""
    redispatch = operation.redispatch

    def kernel(*args, **kwargs):
        first = _first_tensor(args)
        is_tensor = first is not None
        if (first.is_meta if is_tensor else kwargs.get("device") == _META) or _is_included(_TRACING):
            # Python's own kernels need the key for what they call, and while `torch.compile` traces, it finds them itself.
            keys = torch._C._dispatch_keys(first) & _BELOW if is_tensor else _keys_of_device(kwargs)
            try:
                return redispatch(_META_KEYS if is_tensor and first.is_meta else keys, *args, **kwargs)
            except RuntimeError as error:
                if "Unable to cast" not in str(error):  # Where PyTorch gives a number for a tensor, only `run` takes it.
                    raise
        # Not by guards, which take twice the time.
        _set_excluded(_KEY, True)
        _set_included(_INSIDE_KEY, True)
        try:
            if _is_excluded(_INSIDE_KEY):  # As where a tensor subclass runs the operations on what it holds.
                with _SetExcluded(_INSIDE_KEY, False):
                    return handler(operation, args, kwargs)
            return handler(operation, args, kwargs)
        finally:
            if not is_inside:
                _set_included(_INSIDE_KEY, False)
                _set_excluded(_KEY, False)

    return kernel


def _reading(operation, handler):
    """Returns what runs an operation that reads a tensor, through a handler where it is not on the CPU."""
    through, redispatch = _kernel(operation, handler), operation.redispatch

    def kernel(tensor):
        if tensor.is_cpu and not _is_included(_TRACING):
            return redispatch(torch._C._dispatch_keys(tensor) & _BELOW, tensor)
        return through(tensor)

    return kernel


def _first_tensor(args):
    """Returns the first tensor of the arguments: a number may come before it, as in `2**tensor`."""
    for one in args:
        if isinstance(one, list) and one:
            one = one[0]
        if isinstance(one, torch.Tensor):
            return one
    return None


def _on_device(operation):
    redispatch = operation.redispatch

    def kernel(*args, **kwargs):
        return redispatch(_keys_of_device(kwargs), *args, **kwargs)

    return kernel


def _empty(run):
    """Returns what makes empty tensors for kernels, past the dispatcher where it can."""

    def kernel(size, **kwargs):
        make = _maker(kwargs)
        if make is None:
            return run(size, **kwargs)
        strides, stride = [], 1
        for one in reversed(size):
            strides.append(stride)
            stride *= one or 1
        strides.reverse()
        return make(tuple(size), tuple(strides), kwargs["dtype"])

    return kernel


def _empty_strided(run):
    """Returns what makes empty tensors with strides for kernels, past the dispatcher where it can."""

    def kernel(size, stride, **kwargs):
        make = _maker(kwargs)
        return run(size, stride, **kwargs) if make is None else make(tuple(size), tuple(stride), kwargs["dtype"])

    return kernel


def _maker(kwargs):
    """Returns what makes a tensor as most are, on the device that is current and in the usual order; None for others."""
    get = kwargs.get
    device = get("device")
    if device is None or get("dtype") is None or get("pin_memory"):
        return None
    if get("layout") not in _STRIDED or get("memory_format") not in _CONTIGUOUS:
        return None
    kind, index = device.type, device.index
    return _MAKERS.get(kind) if index is None or kind == "cuda" and index == _current_device() else None


MAKING = {"aten::empty.memory_format": _empty, "aten::empty_strided": _empty_strided}
"""What kernels make most tensors with."""


def closed(operation):
    """Returns what runs an operation's kernel; what that calls does not come to handlers."""
    redispatch = operation.redispatch

    def kernel(*args, **kwargs):
        return redispatch(torch._C._dispatch_keys(_first_tensor(args)) & _BELOW, *args, **kwargs)

    return kernel


def opened(operation):
    """Returns what runs an operation's kernel so that what that calls comes to handlers: it decides by what they return."""
    run = closed(operation)

    def kernel(*args, **kwargs):
        with _SetExcluded(_KEY, False), _SetExcluded(_INSIDE_KEY, True):
            try:
                return run(*args, **kwargs)
            finally:
                _set_included(_INSIDE_KEY, True)  # The last operation inside has left the key.

    return kernel


_device_keys = {}


def _keys_of_device(kwargs):
    """Returns the keys of an operation that makes a tensor of nothing."""
    device, layout = kwargs.get("device"), kwargs.get("layout")
    kind = "cpu" if device is None else device.type
    found = _device_keys.get((kind, layout))
    if found is None:
        name = {"meta": "Meta", "privateuseone": "PrivateUse1"}.get(kind, kind.upper())
        if layout not in (None, torch.strided):
            name = ("Sparse" if layout is torch.sparse_coo else "SparseCsr") + name
        found = _device_keys[kind, layout] = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name))
    return found


def flat(values):
    """Returns what lists hold, and the lists in them."""
    found = []
    for one in values:
        if isinstance(one, (list, tuple)):
            found += flat(one)
        else:
            found.append(one)
    return found
