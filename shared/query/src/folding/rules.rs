//! The table that tells libraries from a program's own code.
//!
//! A frame of Python is the user's own unless a rule of [`PYTHON`] matches its file. A frame of C++ is a library's even
//! if no rule matches: its file, if known at all, is named as on the machine that built it. The first matching rule
//! counts.

use super::pattern::Pattern::{self, FileStart, FunctionPart, FunctionStart, Hashed, Path, Script};

/// What a library frame is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// PyTorch, in Python or C++.
    PyTorch,
    /// PyTorch's dispatcher, unwinder and allocator, which are in every stack.
    Dispatcher,
    /// CUDA and its libraries.
    Cuda,
    /// The C and C++ runtime, and C++ code that nothing is known about.
    Cpp,
    /// The interpreter and the standard library.
    Python,
    /// An installed package. Its name is the part of the path behind the pattern.
    Package,
}

impl Kind {
    /// Returns the name of the library that frames of this kind are counted as; empty for a package, which has its own.
    pub(super) fn library(self) -> &'static str {
        match self {
            Self::PyTorch | Self::Dispatcher => "torch",
            Self::Cuda => "CUDA",
            Self::Cpp => "C++",
            Self::Python => "Python",
            Self::Package => "",
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// What it matches.
    pub(super) pattern: Pattern,
    /// What matching frames are part of.
    pub(super) kind: Kind,
}

const fn rule(kind: Kind, pattern: Pattern) -> Rule {
    Rule { pattern, kind }
}

/// The rules for files of Python. Paths of Windows are compared in lower case.
pub(super) static PYTHON: &[Rule] = &[
    // Installed PyTorch, and functorch, which is a part of it.
    rule(Kind::PyTorch, Path("site-packages/torch")),
    rule(Kind::PyTorch, Path("dist-packages/torch")),
    rule(Kind::PyTorch, Path("site-packages/functorch")),
    rule(Kind::PyTorch, Path("site-packages/torchgen")),
    // A source checkout, and a wheel that is imported without being installed.
    rule(Kind::PyTorch, Path("pytorch/torch")),
    rule(Kind::PyTorch, Path("torch-*.whl/torch")),
    // A checkout under another name, by files that only PyTorch has: `torch` alone may be a folder of the user's.
    rule(Kind::PyTorch, Path("torch/nn/modules")),
    rule(Kind::PyTorch, Path("torch/nn/functional.py")),
    rule(Kind::PyTorch, Path("torch/nn/init.py")),
    rule(Kind::PyTorch, Path("torch/nn/parameter.py")),
    rule(Kind::PyTorch, Path("torch/nn/parallel")),
    rule(Kind::PyTorch, Path("torch/nn/utils")),
    rule(Kind::PyTorch, Path("torch/nn/attention")),
    rule(Kind::PyTorch, Path("torch/_dynamo")),
    rule(Kind::PyTorch, Path("torch/_functorch")),
    rule(Kind::PyTorch, Path("torch/_higher_order_ops")),
    rule(Kind::PyTorch, Path("torch/_inductor")),
    rule(Kind::PyTorch, Path("torch/_library")),
    rule(Kind::PyTorch, Path("torch/_ops.py")),
    rule(Kind::PyTorch, Path("torch/_prims*")),
    rule(Kind::PyTorch, Path("torch/_refs")),
    rule(Kind::PyTorch, Path("torch/_decomp")),
    rule(Kind::PyTorch, Path("torch/_subclasses")),
    rule(Kind::PyTorch, Path("torch/_tensor.py")),
    rule(Kind::PyTorch, Path("torch/_utils.py")),
    rule(Kind::PyTorch, Path("torch/_compile.py")),
    rule(Kind::PyTorch, Path("torch/amp")),
    rule(Kind::PyTorch, Path("torch/autograd")),
    rule(Kind::PyTorch, Path("torch/cuda")),
    rule(Kind::PyTorch, Path("torch/distributed")),
    rule(Kind::PyTorch, Path("torch/functional.py")),
    rule(Kind::PyTorch, Path("torch/fx")),
    rule(Kind::PyTorch, Path("torch/jit")),
    rule(Kind::PyTorch, Path("torch/multiprocessing")),
    rule(Kind::PyTorch, Path("torch/optim")),
    rule(Kind::PyTorch, Path("torch/overrides.py")),
    rule(Kind::PyTorch, Path("torch/serialization.py")),
    rule(Kind::PyTorch, Path("torch/utils/_*")),
    rule(Kind::PyTorch, Path("torch/utils/checkpoint.py")),
    rule(Kind::PyTorch, Path("torch/utils/data")),
    rule(Kind::PyTorch, Path("torch/__init__.py")),
    // What torch.compile and torch.fx generate, and call from a line of the user's.
    rule(Kind::PyTorch, Path("torchinductor_*")),
    rule(Kind::PyTorch, Path("torch_compile_debug")),
    rule(Kind::PyTorch, FileStart("<eval_with_key>")),
    rule(Kind::PyTorch, Hashed),
    // Installed packages: pip, Debian, PDM, and wheels and eggs that are imported as they are.
    rule(Kind::Package, Path("site-packages")),
    rule(Kind::Package, Path("dist-packages")),
    rule(Kind::Package, Path("__pypackages__/#/lib")),
    rule(Kind::Package, Path("*.whl")),
    rule(Kind::Package, Path("*.egg")),
    // Debuggers run the program from outside of its environment.
    rule(Kind::Package, Path("bundled/libs")),
    rule(Kind::Package, Path("plugins/python/helpers")),
    rule(Kind::Package, Path("plugins/python-ce/helpers")),
    // Code that packages generate: decorator, attrs, NumPy, beartype, Triton's launchers.
    rule(Kind::Python, FileStart("<decorator-gen-")),
    rule(Kind::Python, FileStart("<attrs generated ")),
    rule(Kind::Python, FileStart("<__array_function__ ")),
    rule(Kind::Python, FileStart("<@beartype(")),
    rule(Kind::Python, Path(".triton/cache")),
    // The standard library on Linux and macOS, in environments too; of a framework, Homebrew, pyenv, conda and uv.
    rule(Kind::Python, FileStart("<frozen ")),
    rule(Kind::Python, Path("lib/python#")),
    rule(Kind::Python, Path("lib64/python#")),
    rule(Kind::Python, Path("lib/pypy#")),
    rule(Kind::Python, Path("python#.zip")),
    // The same on Windows: the installer, uv, the store, and conda.
    rule(Kind::Python, Path("python#/lib")),
    rule(Kind::Python, Path("cpython-*/lib")),
    rule(Kind::Python, Path("pyenv-win/versions/#/lib")),
    rule(Kind::Python, Path("pythonsoftwarefoundation.python.*/lib")),
    rule(Kind::Python, Path("anaconda3/lib")),
    rule(Kind::Python, Path("miniconda3/lib")),
    rule(Kind::Python, Path("miniforge3/lib")),
    rule(Kind::Python, Path("mambaforge/lib")),
    rule(Kind::Python, Path("anaconda3/envs/*/lib")),
    rule(Kind::Python, Path("miniconda3/envs/*/lib")),
    rule(Kind::Python, Path("miniforge3/envs/*/lib")),
    rule(Kind::Python, Path("mambaforge/envs/*/lib")),
    rule(Kind::Python, Path(".conda/envs/*/lib")),
    // Commands that pip installs, such as `torchrun`: they start the program.
    rule(Kind::Python, Script("bin")),
    rule(Kind::Python, Script("sbin")),
    rule(Kind::Python, Script("scripts")),
    rule(Kind::Python, Script("condabin")),
];

/// The rules for C++ functions. Names are compared without arguments, and starts of names without leading underscores.
pub(super) static NATIVE: &[Rule] = &[
    // The unwinder, the dispatcher, the allocator's entry points, and wrappers around every operator.
    rule(Kind::Dispatcher, FunctionPart("torch::unwind")),
    rule(Kind::Dispatcher, FunctionPart("torch::CapturedTraceback")),
    rule(Kind::Dispatcher, FunctionPart("gather_with_cpp")),
    rule(Kind::Dispatcher, FunctionPart("c10::Dispatcher")),
    rule(Kind::Dispatcher, FunctionPart("c10::impl::")),
    rule(Kind::Dispatcher, FunctionPart("c10::KernelFunction")),
    rule(Kind::Dispatcher, FunctionPart("c10::BoxedKernel")),
    rule(Kind::Dispatcher, FunctionPart("CUDACachingAllocator::")),
    rule(Kind::Dispatcher, FunctionPart("XPUCachingAllocator::")),
    rule(Kind::Dispatcher, FunctionPart("::redispatch")),
    rule(Kind::Dispatcher, FunctionPart("wrapper_CUDA_")),
    rule(Kind::Dispatcher, FunctionPart("wrapper_XPU_")),
    rule(Kind::Dispatcher, FunctionPart("wrapper_Composite")),
    rule(Kind::Dispatcher, FunctionPart("make_boxed_from_unboxed")),
    rule(Kind::Dispatcher, FunctionPart("TypeError_to_NotImplemented_")),
    rule(Kind::Dispatcher, FunctionPart("c10::intrusive_ptr")),
    // The interpreter, by the files of its sources and by its functions, which often have no file.
    rule(Kind::Python, Path("Objects/*.c")),
    rule(Kind::Python, Path("Python/*.c")),
    rule(Kind::Python, Path("Python/*.h")),
    rule(Kind::Python, Path("Modules/*.c")),
    rule(Kind::Python, Path("Include/object.h")),
    rule(Kind::Python, Path("Include/internal/pycore_*")),
    rule(Kind::Python, Path("Include/cpython")),
    rule(Kind::Python, Path("ceval.c")),
    rule(Kind::Python, Path("libpython#*")),
    rule(Kind::Python, Path("bin/python*")),
    rule(Kind::Python, FunctionStart("Py_")),
    rule(Kind::Python, FunctionStart("PyEval")),
    rule(Kind::Python, FunctionStart("PyObject_")),
    rule(Kind::Python, FunctionStart("PyVectorcall_")),
    rule(Kind::Python, FunctionStart("PyRun_")),
    rule(Kind::Python, FunctionStart("PyMethod_")),
    rule(Kind::Python, FunctionStart("PyCMethod_")),
    rule(Kind::Python, FunctionStart("PyType_")),
    rule(Kind::Python, FunctionStart("PyNumber_")),
    rule(Kind::Python, FunctionStart("PyCFunction_")),
    rule(Kind::Python, FunctionStart("PyFunction_")),
    rule(Kind::Python, FunctionStart("PyFrame_")),
    rule(Kind::Python, FunctionStart("PyThread_")),
    rule(Kind::Python, FunctionStart("PyUnicode_")),
    rule(Kind::Python, FunctionStart("PyTuple_")),
    rule(Kind::Python, FunctionStart("PyDescr_")),
    rule(Kind::Python, FunctionStart("PyErr_")),
    rule(Kind::Python, FunctionStart("PyInit_")),
    rule(Kind::Python, FunctionStart("pymain_")),
    rule(Kind::Python, FunctionStart("pyrun_")),
    rule(Kind::Python, FunctionStart("pythread_")),
    rule(Kind::Python, FunctionStart("run_mod")),
    rule(Kind::Python, FunctionStart("run_eval_code_obj")),
    rule(Kind::Python, FunctionStart("method_vectorcall")),
    rule(Kind::Python, FunctionStart("vectorcall_")),
    rule(Kind::Python, FunctionStart("cfunction_")),
    rule(Kind::Python, FunctionStart("slot_tp_")),
    rule(Kind::Python, FunctionStart("slot_nb_")),
    rule(Kind::Python, FunctionStart("slot_sq_")),
    rule(Kind::Python, FunctionStart("type_call")),
    rule(Kind::Python, FunctionStart("object_vacall")),
    rule(Kind::Python, FunctionStart("subtype_dealloc")),
    rule(Kind::Python, FunctionStart("dict_dealloc")),
    rule(Kind::Python, FunctionStart("frame_dealloc")),
    rule(Kind::Python, FunctionStart("tupledealloc")),
    rule(Kind::Python, FunctionStart("list_dealloc")),
    // Where programs and threads start, in the C and C++ runtime.
    rule(Kind::Cpp, Path("csu")),
    rule(Kind::Cpp, Path("libc.so*")),
    rule(Kind::Cpp, Path("libstdc++.so*")),
    rule(Kind::Cpp, FunctionStart("start_thread")),
    rule(Kind::Cpp, FunctionStart("clone")),
    rule(Kind::Cpp, FunctionStart("libc_start")),
    rule(Kind::Cpp, FunctionStart("libc_init")),
    rule(Kind::Cpp, FunctionStart("execute_native_thread_routine")),
    rule(Kind::Cpp, FunctionPart("std::_Function_handler")),
    rule(Kind::Cpp, FunctionPart("std::error_code::default_error_condition")),
    // The rest of PyTorch: its namespaces, also in what templates are instantiated for, its C functions and libraries.
    rule(Kind::PyTorch, FunctionPart("at::")),
    rule(Kind::PyTorch, FunctionPart("c10::")),
    rule(Kind::PyTorch, FunctionPart("torch::")),
    rule(Kind::PyTorch, FunctionPart("caffe2::")),
    rule(Kind::PyTorch, FunctionPart("THP")),
    rule(Kind::PyTorch, FunctionPart("THCP")),
    rule(Kind::PyTorch, FunctionStart("dynamo_")),
    rule(Kind::PyTorch, Path("libtorch*")),
    rule(Kind::PyTorch, Path("libc10*")),
    // CUDA and the libraries above it.
    rule(Kind::Cuda, Path("libcu*")),
    rule(Kind::Cuda, Path("libnccl*")),
    rule(Kind::Cuda, FunctionStart("cuda")),
    rule(Kind::Cuda, FunctionStart("cublas")),
    rule(Kind::Cuda, FunctionStart("cudnn")),
    rule(Kind::Cuda, FunctionStart("nccl")),
    rule(Kind::Cuda, FunctionStart("cutlass::")),
];
