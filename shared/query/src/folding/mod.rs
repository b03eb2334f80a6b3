//! Separates the user's own code from libraries, which most frames of a stack belong to.
//!
//! A stack with C++ frames has some fifty frames; a person wants five. Names decide: the table in `rules.rs`, and the
//! user's [`Overrides`] of it. Symbolizers differ in the file of a function, and often give none (`??`).
//!
//! ```text
//! frame ─► owner: the user's own code, or a library by name ─► the frame that represents a stack, and
//!                                                             which runs of the others fold
//! ```

mod overrides;
mod parts;
mod pattern;
mod rules;

use std::borrow::Cow;

pub use overrides::{Overrides, part_of};
pub use parts::{Part, fold, fold_where, names_text, run_text};
use rules::{Kind, NATIVE, PYTHON, Rule};

use crate::FrameText;
use trace::frames::{Frame, Symbols};
use trace::text::escaped;

/// How well a frame describes a stack; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A line of the user's own code.
    Own,
    /// A line of an installed package, which calls PyTorch.
    Package,
    /// A line of PyTorch's Python code.
    TorchPython,
    /// A function that the autograd engine called.
    Backward,
    /// The operator that was called.
    Operator,
    /// A line of Python that starts a program or a thread.
    Python,
    /// Any other C++ function.
    Cpp,
    /// The interpreter and the dispatcher, which are in every stack.
    Machinery,
}

/// Whose code a frame is, and how well it describes a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// How well it describes a stack.
    pub rank: Rank,
    /// The library; empty for the user's own code.
    pub library: Cow<'a, str>,
}

impl<'a> Owner<'a> {
    /// Returns whose code a frame is, by the table of rules and what a person wants otherwise.
    pub fn of(name: &'a str, filename: &'a str, overrides: &'a Overrides) -> Self {
        match overrides.of(name, filename) {
            Some(Ok(())) => Self { rank: Rank::Own, library: Cow::Borrowed("") },
            Some(Err(library)) => {
                let rank = if is_python_frame(name, filename) { Rank::Package } else { Rank::Cpp };
                Self { rank, library: Cow::Borrowed(library) }
            }
            None if is_python_frame(name, filename) => Self::of_python(filename),
            None => Self::of_native(name, filename),
        }
    }

    fn of_python(filename: &'a str) -> Self {
        let path = pattern::comparable(filename);
        let found = PYTHON.iter().find_map(|rule| Some((rule.kind, rule.pattern.rest(&path)?.len())));
        let Some((kind, rest)) = found else { return Self { rank: Rank::Own, library: Cow::Borrowed("") } };
        let rank = match kind {
            Kind::Package => Rank::Package,
            Kind::PyTorch | Kind::Dispatcher => Rank::TorchPython,
            Kind::Python | Kind::Cpp | Kind::Cuda => Rank::Python,
        };
        let library = match kind {
            // The path as it is written has the length of the one that was compared.
            Kind::Package => package(filename.get(filename.len().saturating_sub(rest)..).unwrap_or_default()),
            _ => kind.library(),
        };
        Self { rank, library: Cow::Borrowed(library) }
    }

    fn of_native(name: &'a str, filename: &'a str) -> Self {
        let bare = without_arguments(name);
        let found = NATIVE.iter().find(|Rule { pattern, .. }| pattern.is_native(bare, filename)).map(|rule| rule.kind);
        // The unwinder found no function.
        let is_unknown = matches!(bare.trim_start_matches('_'), "" | "??" | "start" | "<unwind unsupported>");
        let rank = match found {
            _ if is_unknown => Rank::Machinery,
            Some(Kind::Dispatcher | Kind::Python | Kind::Cpp) => Rank::Machinery,
            _ if is_backward(name) => Rank::Backward,
            _ if is_operator(name) => Rank::Operator,
            _ => Rank::Cpp,
        };
        Self { rank, library: Cow::Borrowed(found.unwrap_or(Kind::Cpp).library()) }
    }
}

/// Returns the library that a frame belongs to by the table of rules; empty for the user's own code.
pub fn library_of(name: &str, filename: &str) -> String {
    Owner::of(name, filename, &Overrides::default()).library.into_owned()
}

/// Returns the name of the package at the beginning of a path: `einops` for `einops/layers.py` and `einops.py`.
fn package(rest: &str) -> &str {
    let mut names = rest.split(['/', '\\']).filter(|name| !name.is_empty());
    let name = names.next().unwrap_or("a package");
    // An egg is a folder or an archive named `einops-0.8-py3.11.egg`, with the package in it.
    let name = if name.ends_with(".egg") { names.next().unwrap_or(name) } else { name };
    name.strip_suffix(".py").unwrap_or(name)
}

/// Returns whether a file is Python source (or generated Python, such as `<string>` or `<eval_with_key>.12`).
pub fn is_python(filename: &str) -> bool {
    filename.ends_with(".py")
        || filename.starts_with('<')
        || filename.ends_with(".pyx")
        || filename.ends_with(".ipynb")
        // A cell of a notebook may have a name without suffix.
        || filename.contains("/.ipykernel/")
}

/// Returns whether a frame is one of Python: commands such as `torchrun` are files without suffix.
fn is_python_frame(name: &str, filename: &str) -> bool {
    is_python(filename) || matches!(name, "<module>" | "<lambda>" | "<listcomp>" | "<dictcomp>" | "<genexpr>")
}

/// Returns the frame that represents a stack of texts: a line of the user's own code, if there is one.
pub fn best_frame(stack: &[FrameText]) -> Option<&FrameText> {
    stack.iter().find(|frame| frame.is_call_site).or(stack.first())
}

/// Returns whether a C++ function is the entry of an operator, other than one that only allocates another's result.
fn is_operator(name: &str) -> bool {
    let operator = name.strip_prefix("at::_ops::").filter(|rest| rest.contains("::call("));
    operator.is_some_and(|rest| !rest.starts_with("empty") && !rest.starts_with("resize_"))
}

/// Returns whether a C++ function is a node of the backward graph, rather than one of its helpers.
fn is_backward(name: &str) -> bool {
    let function = name.strip_prefix("torch::autograd::generated::");
    function.is_some_and(|function| !function.starts_with("details::"))
}

/// Returns a C++ function's name without its arguments.
fn without_arguments(name: &str) -> &str {
    // `(anonymous namespace)::`, `operator()` and `decltype(auto)` contain brackets too.
    let open = name.match_indices('(').map(|(i, _)| i).find(|&i| {
        let (before, after) = name.split_at(i);
        !before.ends_with("operator") && !after.starts_with("(anonymous namespace)") && !after.starts_with("(auto)")
    });
    open.filter(|&i| i > 0).and_then(|i| name.get(..i)).unwrap_or(name)
}

/// Returns a function's name without its C++ arguments and without the namespace of backward operators.
pub fn short_name<'a>(name: &'a str, filename: &str) -> &'a str {
    if is_python(filename) {
        return name;
    }
    let bare = without_arguments(name);
    // `MmBackward0::apply`
    bare.strip_prefix("torch::autograd::generated::").unwrap_or(bare)
}

/// Formats a frame's location as `dir/file.py:123`; empty if the file is unknown.
pub fn short_location(symbols: &Symbols, frame: Frame) -> String {
    // A hidden character that is shown has a backslash, which is no part of the path.
    let filename = symbols.unshown(frame.filename);
    // Where symbols are missing, the unwinder gives a library with an offset in place of a source with a line.
    if filename.is_empty() || filename == "??" || filename.contains(".so") {
        return String::new();
    }
    let cut = filename.rmatch_indices(['/', '\\']).nth(1).map_or(0, |(i, _)| i + 1);
    let short = escaped(filename.get(cut..).unwrap_or(&filename));
    if frame.line == 0 { short.into_owned() } else { format!("{short}:{}", frame.line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, filename: &str, want: &str) {
        assert_eq!(library_of(name, filename), want, "{name} {filename}");
    }

    #[test]
    fn the_users_own_files_are_in_no_library() {
        for filename in [
            "/home/me/train.py",
            "train.py",
            "D:\\Dev\\project\\model.py",
            "/Users/me/project/model.py",
            // Names that look like a library's.
            "/home/me/torch_project/nn/modules/model.py",
            "/home/me/torch/train.py",
            "/home/me/site-packages-demo/train.py",
            "/home/me/my-packages/train.py",
            "/home/me/lib/python/train.py",
            "/home/me/python3-course/lib/train.py",
            "/home/me/pytorch/examples/train.py",
            "C:\\Users\\me\\anaconda3\\work\\train.py",
            // Code that was typed in.
            "<string>",
            "<stdin>",
            "<ipython-input-12-5a6b7c>",
            "/tmp/ipykernel_2954515/1531601865.py",
            "/root/.ipykernel/1234/command-5678-1",
            // An editable install.
            "/home/me/src/transformers/src/transformers/modeling_utils.py",
            "/home/me/kernels/op.pyx",
        ] {
            check("f", filename, "");
        }
    }

    #[test]
    fn files_of_pytorch_are_in_torch() {
        for filename in [
            "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py",
            "/home/brian/Documents/torch/lib/python3.10/site-packages/torch/_tensor.py",
            "/usr/lib/python3/dist-packages/torch/_tensor.py",
            "C:\\Users\\me\\AppData\\Local\\Programs\\Python\\Python310\\lib\\site-packages\\torch\\_ops.py",
            "D:\\Dev\\.venv\\Lib\\site-packages\\torch\\functional.py",
            "/src/pytorch/torch/nn/modules/linear.py",
            "/opt/pytorch/pytorch/torch/special/__init__.py",
            "/home/me/checkout/torch/optim/adam.py",
            "torch/optim/adam.py",
            "/tmp/torchinductor_me/ey/cey3bxvupp5khpeneyf5nlsg5v7wzvb4bszbp4rrx2b4elwmolwu.py",
            "/cache/ey/cey3bxvupp5khpeneyf5nlsg5v7wzvb4bszbp4rrx2b4elwmolwu.py",
            "/home/me/torch_compile_debug/run_1/torchinductor/model__0/output_code.py",
            "<eval_with_key>.12",
        ] {
            check("f", filename, "torch");
        }
    }

    #[test]
    fn files_of_python_are_in_python() {
        for filename in [
            "<frozen runpy>",
            "<frozen importlib._bootstrap>",
            "<decorator-gen-12>",
            "<__array_function__ internals>",
            "/usr/lib/python3.12/threading.py",
            "/usr/lib64/python3.9/contextlib.py",
            "/venv/lib/python3.13t/threading.py",
            "/home/brian/Documents/torch/lib/python3.10/threading.py",
            "/home/me/.pyenv/versions/3.11.7/lib/python3.11/runpy.py",
            "/home/me/miniconda3/envs/dl/lib/python3.12/threading.py",
            "/home/me/.local/share/uv/python/cpython-3.12.3-linux-x86_64-gnu/lib/python3.12/runpy.py",
            "/Library/Frameworks/Python.framework/Versions/3.11/lib/python3.11/threading.py",
            "/opt/homebrew/Cellar/python@3.11/3.11.7/Frameworks/Python.framework/Versions/3.11/lib/python3.11/runpy.py",
            "C:\\Users\\me\\AppData\\Local\\Programs\\Python\\Python310\\lib\\threading.py",
            "C:\\Users\\me\\anaconda3\\envs\\gnn\\Lib\\threading.py",
            "C:\\ProgramData\\miniconda3\\lib\\runpy.py",
            "C:\\Users\\me\\.pyenv\\pyenv-win\\versions\\3.11.7\\Lib\\runpy.py",
            "C:\\Program Files\\WindowsApps\\PythonSoftwareFoundation.Python.3.11_3.11.2544.0_x64__qbz5n2\\Lib\\runpy.py",
            "/opt/app/python311.zip/runpy.py",
        ] {
            check("f", filename, "Python");
        }
        check("<module>", "/venv/bin/torchrun", "Python");
        check("<module>", "C:\\venv\\Scripts\\accelerate", "Python");
        check("<module>", "/home/me/bin/train.py", "");
    }

    #[test]
    fn a_package_is_named_by_its_folder_or_module() {
        for (filename, want) in [
            ("/venv/lib/python3.11/site-packages/einops/layers/torch.py", "einops"),
            ("/home/me/.local/lib/python3.10/site-packages/typing_extensions.py", "typing_extensions"),
            ("/usr/lib/python3/dist-packages/numpy/core/_methods.py", "numpy"),
            ("/venv/lib/python3.11/site-packages/triton/runtime/jit.py", "triton"),
            ("/venv/lib/python3.11/site-packages/torchvision/models/resnet.py", "torchvision"),
            ("D:\\Dev\\.venv\\Lib\\site-packages\\Einops\\einops.py", "Einops"),
            ("/w/__pypackages__/3.11/lib/rich/console.py", "rich"),
            ("/root/.pex/installed_wheels/12ab/rich-13.0-py3-none-any.whl/rich/console.py", "rich"),
            ("/venv/lib/python3.11/site-packages/apex-0.1-py3.11.egg/apex/amp.py", "apex"),
            ("/home/me/.vscode-server/extensions/ms-python.debugpy-2024/bundled/libs/debugpy/runner.py", "debugpy"),
        ] {
            check("f", filename, want);
        }
    }

    #[test]
    fn cpp_functions_are_never_the_users_own() {
        for (name, filename, want) in [
            ("torch::unwind::unwind()", "??", "torch"),
            ("c10::impl::wrap_kernel_functor_unboxed_<…>::call(…)", "RegisterCUDA_0.cpp", "torch"),
            ("at::_ops::empty_strided::redispatch(c10::DispatchKeySet)", "??", "torch"),
            ("at::(anonymous namespace)::wrapper_CUDA__empty_strided(…)", "RegisterCUDA_0.cpp", "torch"),
            ("void at::native::fill<float>(at::Tensor&)", "", "torch"),
            ("void dispatch_cutlassB<float, at::native::_efficient_attention_backward(int)>(int)", "", "torch"),
            ("(anonymous namespace)::THPFunction_apply(_object*, _object*)", "python_function.cpp", "torch"),
            ("??", "/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so", "torch"),
            ("_PyEval_EvalFrameDefault", "/src/Python-3.11.7/Python/ceval.c", "Python"),
            ("_PyObject_MakeTpCall.localalias", "", "Python"),
            ("slot_nb_add", "", "Python"),
            ("method_vectorcall_VARARGS_KEYWORDS", "/src/Python-3.11.7/Objects/descrobject.c", "Python"),
            ("f", "/usr/local/python/versions/3/lib/libpython3.11.so.1.0", "Python"),
            ("__libc_start_main_impl", "./csu/../csu/libc-start.c", "C++"),
            ("execute_native_thread_routine", "/gcc/libstdc++-v3/src/c++11/thread.cc", "C++"),
            ("_start", "??", "C++"),
            ("??", "", "C++"),
            ("", "", "C++"),
            ("cudaMallocAsync", "/usr/local/cuda/lib64/libcudart.so.12", "CUDA"),
            ("cublasCreate_v2", "??", "CUDA"),
            // The argument is PyTorch's; the function is not.
            ("nca2d_cuda(at::Tensor const&)", "??", "C++"),
            ("format::write(char*)", "??", "C++"),
        ] {
            check(name, filename, want);
        }
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
}
