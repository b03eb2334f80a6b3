//! Separates a program's own frames from those of the interpreter and the dispatcher, which are in every stack.
//!
//! A stack with C++ frames has some fifty frames; a person wants five. The rules use names only: symbolizers differ in
//! the file of a function, and often give none (`??`).

use std::borrow::Cow;

use crate::frames::{Frame, FrameId, Symbols};
use crate::index::Index;
use crate::query::FrameText;

/// Substrings of function names of the unwinder, the dispatcher, the allocator's own entry points and thread starts.
const MACHINERY: [&str; 18] = [
    "torch::unwind",
    "torch::CapturedTraceback",
    "gather_with_cpp",
    "c10::Dispatcher",
    "c10::impl::",
    "c10::KernelFunction",
    "c10::BoxedKernel",
    "CUDACachingAllocator::",
    "XPUCachingAllocator::",
    "::redispatch(",
    "wrapper_CUDA_",
    "wrapper_XPU_",
    "wrapper_Composite",
    "make_boxed_from_unboxed",
    "TypeError_to_NotImplemented_",
    "std::_Function_handler",
    "std::error_code::default_error_condition",
    "c10::intrusive_ptr",
];

/// Prefixes of function names of the C interpreter and of the C library below it.
const INTERPRETER: [&str; 22] = [
    "PyEval_",
    "PyObject_",
    "PyVectorcall_",
    "PyRun_",
    "PyMethod_",
    "PyType_",
    "PyNumber_",
    "PyCFunction_",
    "PyFunction_",
    "Py_",
    "pymain_",
    "pyrun_",
    "run_mod",
    "run_eval_code_obj",
    "method_vectorcall",
    "cfunction_",
    "slot_tp_",
    "type_call",
    "object_vacall",
    "start_thread",
    "clone",
    "execute_native_thread_routine",
];

/// Folders of CPython's own sources.
const INTERPRETER_SOURCES: [&str; 6] =
    ["/Objects/", "/Python/", "/Modules/", "/Include/internal/pycore_", "/Include/cpython/", "/csu/"];

/// Folders and files of PyTorch's Python package, which identify it outside `site-packages`.
const TORCH_PARTS: [&str; 22] = [
    "nn/",
    "_dynamo/",
    "_functorch/",
    "_higher_order_ops/",
    "_inductor/",
    "_library/",
    "_ops.py",
    "_prims",
    "_refs/",
    "_tensor.py",
    "_utils.py",
    "amp/",
    "autograd/",
    "cuda/",
    "distributed/",
    "functional.py",
    "fx/",
    "multiprocessing/",
    "optim/",
    "overrides.py",
    "utils/",
    "__init__.py",
];

/// Returns whether a frame belongs to the interpreter or the dispatcher rather than to a program.
pub fn is_internal(name: &str, filename: &str) -> bool {
    if is_python(filename) {
        // Calls from a module to its own `forward` add two frames a module. The others start a Python program.
        return filename.starts_with("<frozen")
            || matches!(name, "_wrapped_call_impl" | "_call_impl") && filename.ends_with("torch/nn/modules/module.py");
    }
    // CPython marks its private functions with one leading underscore.
    let bare = name.strip_prefix('_').unwrap_or(name);
    bare.is_empty()
        || bare == "??"
        || bare == "start"
        || bare.starts_with("_libc_start")
        || bare.starts_with("_libc_init")
        || INTERPRETER.iter().any(|start| bare.starts_with(start))
        || filename.ends_with("ceval.c")
        || INTERPRETER_SOURCES.iter().any(|folder| filename.contains(folder))
        || MACHINERY.iter().any(|part| name.contains(part))
}

/// Returns whether a file is Python source (or generated Python, such as `<string>` or `<eval_with_key>.12`).
pub fn is_python(filename: &str) -> bool {
    filename.ends_with(".py") || filename.starts_with('<') || filename.ends_with(".pyx") || filename.ends_with(".ipynb")
}

/// Returns whether a Python file is the user's own: neither PyTorch's nor the standard library's.
fn is_own(filename: &str) -> bool {
    const GENERATED: [&str; 2] = ["<frozen", "<eval_with_key>"];
    // Generated code is called from a line of the user's further out.
    let is_generated = GENERATED.iter().any(|start| filename.starts_with(start)) || filename.contains("torchinductor_");
    if !is_python(filename) || is_generated {
        return false;
    }
    let path: Cow<'_, str> =
        if filename.contains('\\') { filename.replace('\\', "/").into() } else { Cow::Borrowed(filename) };
    if let Some((_, package)) = path.rsplit_once("-packages/") {
        return !package.starts_with("torch/");
    }
    let after_torch = path.strip_prefix("torch/").or_else(|| path.rsplit_once("/torch/").map(|(_, rest)| rest));
    if after_torch.is_some_and(|rest| TORCH_PARTS.iter().any(|part| rest.starts_with(part))) {
        return false;
    }
    // `/usr/lib/python3.12/threading.py`
    !path.rsplit_once("/lib/python").is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// How well a frame describes a stack; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A line of the user's own code.
    Own,
    /// Any other line of Python.
    Python,
    /// A function that the autograd engine called.
    Backward,
    /// The operator that was called.
    Operator,
    /// Any other C++ function that is not internal.
    Cpp,
    Machinery,
}

impl Rank {
    fn of(name: &str, filename: &str) -> Self {
        if is_own(filename) {
            Self::Own
        } else if is_python(filename) {
            Self::Python
        } else if name.starts_with("torch::autograd::generated::") {
            Self::Backward
        } else if is_operator(name) {
            Self::Operator
        } else if is_internal(name, filename) {
            Self::Machinery
        } else {
            Self::Cpp
        }
    }
}

/// Finds the frame that describes a stack best. Each distinct frame is ranked once.
#[derive(Debug, Default)]
pub struct BestFrames {
    ranks: Vec<Rank>,
}

impl Index<&Symbols> for BestFrames {
    fn extend(&mut self, symbols: &Symbols) {
        let rank = |i| {
            let frame = symbols.frame(FrameId(i));
            Rank::of(&symbols.text(frame.name), &symbols.text(frame.filename))
        };
        self.ranks.extend((self.ranks.len() as u32..symbols.frame_count() as u32).map(rank));
    }

    fn bytes(&self) -> usize {
        self.ranks.capacity() * size_of::<Rank>()
    }
}

impl BestFrames {
    /// Returns the innermost of the best frames of a stack: a line of the user's own code, if there is one. `None` for
    /// the empty stack.
    pub fn frame(&self, stack: &[FrameId]) -> Option<FrameId> {
        stack.iter().copied().min_by_key(|id| self.ranks.get(id.0 as usize).copied().unwrap_or(Rank::Machinery))
    }
}

/// Returns the innermost of the best frames of a stack of texts.
pub fn best_frame(stack: &[FrameText]) -> Option<&FrameText> {
    stack.iter().min_by_key(|frame| Rank::of(&frame.name, &frame.filename))
}

/// Returns whether a C++ function is the entry of an operator, other than one that only allocates another's result.
fn is_operator(name: &str) -> bool {
    let operator = name.strip_prefix("at::_ops::").filter(|rest| rest.contains("::call("));
    operator.is_some_and(|rest| !rest.starts_with("empty") && !rest.starts_with("resize_"))
}

/// Returns a function's name without its C++ arguments and without the namespace of backward operators.
pub fn short_name<'a>(name: &'a str, filename: &str) -> &'a str {
    if is_python(filename) {
        return name;
    }
    // `(anonymous namespace)::` and `operator()` contain brackets too.
    let open = name.match_indices('(').map(|(i, _)| i).find(|&i| {
        let (before, after) = name.split_at(i);
        !before.ends_with("operator") && !after.starts_with("(anonymous namespace)")
    });
    let bare = open.filter(|&i| i > 0).and_then(|i| name.get(..i)).unwrap_or(name);
    // `MmBackward0::apply`
    bare.strip_prefix("torch::autograd::generated::").unwrap_or(bare)
}

/// Formats a frame's location as `dir/file.py:123`; empty if the file is unknown.
pub fn short_location(symbols: &Symbols, frame: Frame) -> String {
    let filename = symbols.text(frame.filename);
    if filename.is_empty() || filename == "??" {
        return String::new();
    }
    let cut = filename.rmatch_indices(['/', '\\']).nth(1).map_or(0, |(i, _)| i + 1);
    let short = filename.get(cut..).unwrap_or(&filename);
    if frame.line == 0 { short.to_owned() } else { format!("{short}:{}", frame.line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_frames_are_recognized() {
        let internal = [
            ("torch::unwind::unwind()", "??"),
            ("c10::impl::wrap_kernel_functor_unboxed_<…>::call(…)", "RegisterCUDA_0.cpp"),
            ("at::_ops::empty_strided::redispatch(c10::DispatchKeySet)", "??"),
            ("at::(anonymous namespace)::wrapper_CUDA__empty_strided(…)", "RegisterCUDA_0.cpp"),
            ("_PyEval_EvalFrameDefault", "/src/Python-3.11.7/Python/ceval.c"),
            ("_PyObject_MakeTpCall", "??"),
            ("method_vectorcall_VARARGS_KEYWORDS", "/src/Python-3.11.7/Objects/descrobject.c"),
            ("__libc_start_main_impl", "./csu/../csu/libc-start.c"),
            ("_start", "??"),
            ("??", ""),
            ("", ""),
            ("_call_impl", "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py"),
            ("_run_code", "<frozen runpy>"),
        ];
        for (name, filename) in internal {
            assert!(is_internal(name, filename), "{name} {filename}");
        }
        let program = [
            ("forward", "/home/me/model.py"),
            ("_apply", "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py"),
            ("_call_impl", "/home/me/module.py"),
            ("at::native::linear(at::Tensor const&)", "??"),
            ("at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "??"),
            ("torch::autograd::Engine::thread_main(std::shared_ptr<…>)", "??"),
            ("PyEval_lookalike", "/home/me/model.py"),
        ];
        for (name, filename) in program {
            assert!(!is_internal(name, filename), "{name} {filename}");
        }
    }

    #[test]
    fn a_stack_of_texts_has_the_same_best_frame() {
        let frame = |name: &str, filename: &str| FrameText {
            name: name.to_owned(),
            filename: filename.to_owned(),
            line: 1,
            is_internal: is_internal(name, filename),
        };
        let stack = [
            frame("torch::unwind::unwind()", "??"),
            frame("at::_ops::mm::call(at::Tensor const&)", "??"),
            frame("linear", "/x/site-packages/torch/nn/functional.py"),
            frame("forward", "/home/me/model.py"),
            frame("main", "/home/me/train.py"),
        ];
        let told = |frames: &[FrameText]| best_frame(frames).map(|frame| frame.name.clone());
        assert_eq!(told(&stack).as_deref(), Some("forward"));
        assert_eq!(told(&stack[..3]).as_deref(), Some("linear"));
        assert_eq!(told(&stack[..2]).as_deref(), Some("at::_ops::mm::call(at::Tensor const&)"));
        assert_eq!(told(&[]), None);
    }

    #[test]
    fn short_names_have_no_cpp_arguments() {
        let cases = [
            ("at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "at::_ops::mm::call"),
            ("at::(anonymous namespace)::create_out(long)", "at::(anonymous namespace)::create_out"),
            ("torch::autograd::Node::operator()(int)", "torch::autograd::Node::operator()"),
            ("torch::autograd::generated::MmBackward0::apply()", "MmBackward0::apply"),
            ("_start", "_start"),
            ("(x)", "(x)"),
        ];
        for (name, want) in cases {
            assert_eq!(short_name(name, "??"), want);
        }
        assert_eq!(short_name("f(x)", "m.py"), "f(x)");
    }

    #[test]
    fn user_files_are_recognized() {
        for own in
            ["/home/me/train.py", "train.py", "/home/me/torch/train.py", "<string>", "/x/site-packages/apex/a.py"]
        {
            assert!(is_own(own), "{own}");
        }
        for other in [
            "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py",
            "/usr/lib/python3/dist-packages/torch/_tensor.py",
            "/src/pytorch/torch/nn/modules/linear.py",
            "torch/optim/adam.py",
            "C:\\Lib\\site-packages\\torch\\_ops.py",
            "/usr/lib/python3.12/threading.py",
            "<frozen runpy>",
            "<eval_with_key>.12",
            "/scratch/torchinductor_me/ey/cey3b.py",
            "memory.cpp",
            "??",
        ] {
            assert!(!is_own(other), "{other}");
        }
    }
}
