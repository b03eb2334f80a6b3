//! The call sites of the operations that workloads consist of, as PyTorch's recorder sees them: the allocator, the ATen
//! function, the module of `torch.nn` or the node of the backward pass.
//!
//! File and function names are PyTorch's; nothing here is run. The names of a program's own functions are in the
//! program.

use super::call_site::{Call, Piece, Site};

/// Returns a path within the `torch` package.
macro_rules! torch {
    ($path:literal) => {
        concat!("/opt/venv/lib/python3.12/site-packages/torch/", $path)
    };
}

/// Adds the frames that every call of a module goes through.
macro_rules! module {
    ($($frame:expr),+ $(,)?) => {
        &[
            $($frame,)+
            ("_call_impl", torch!("nn/modules/module.py"), 1786),
            ("_wrapped_call_impl", torch!("nn/modules/module.py"), 1775),
        ]
    };
}

/// Puts the allocator's frames in front of the ATen function that called it.
macro_rules! kernel {
    ($($name:literal),+ $(,)?) => {
        &[
            ("c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long, CUstream_st*)", "CUDACachingAllocator.cpp", 0),
            ("c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)", "CUDACachingAllocator.cpp", 0),
            $(($name, "??", 0),)+
        ]
    };
}

pub(super) use {module, torch};

// Modules of torch.nn.
pub(super) const LINEAR: Piece = module![("forward", torch!("nn/modules/linear.py"), 134)];
pub(super) const LAYER_NORM: Piece =
    module![("layer_norm", torch!("nn/functional.py"), 2929), ("forward", torch!("nn/modules/normalization.py"), 229),];
pub(super) const EMBEDDING: Piece =
    module![("embedding", torch!("nn/functional.py"), 2567), ("forward", torch!("nn/modules/sparse.py"), 192)];
pub(super) const GELU: Piece = module![("forward", torch!("nn/modules/activation.py"), 816)];
pub(super) const CROSS_ENTROPY: Piece = &[("cross_entropy", torch!("nn/functional.py"), 3494)];

// ATen functions, as the C++ unwinder names them.
pub(super) const ADDMM: Piece = kernel![
    "at::native::addmm_out_cuda_impl(at::Tensor&, at::Tensor const&, at::Tensor const&)",
    "at::_ops::linear::call(at::Tensor const&, at::Tensor const&, std::optional<at::Tensor> const&)"
];
pub(super) const NATIVE_LAYER_NORM: Piece = kernel![
    "at::native::layer_norm_cuda(at::Tensor const&, c10::ArrayRef<long>, double)",
    "at::_ops::native_layer_norm::call(at::Tensor const&, c10::ArrayRef<long>, double)"
];
pub(super) const FLASH: Piece = kernel![
    "pytorch_flash::mha_fwd(at::Tensor const&, at::Tensor const&, at::Tensor const&, bool)",
    "at::_ops::_scaled_dot_product_flash_attention::call(at::Tensor const&, at::Tensor const&, at::Tensor const&)"
];
pub(super) const GELU_KERNEL: Piece = kernel![
    "at::native::structured_gelu_out_cuda::impl(at::Tensor const&)",
    "at::_ops::gelu::call(at::Tensor const&, c10::basic_string_view<char>)"
];
pub(super) const ADD: Piece = kernel![
    "at::native::structured_ufunc_add_CUDA::impl(at::Tensor const&, at::Tensor const&)",
    "at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&, c10::Scalar const&)"
];
pub(super) const GATHER: Piece = kernel![
    "at::native::index_select_out_cuda_impl(at::Tensor&, at::Tensor const&)",
    "at::_ops::embedding::call(at::Tensor const&, at::Tensor const&)"
];
pub(super) const CAT: Piece = kernel![
    "at::native::structured_cat_out_cuda::impl(c10::IListRef<at::Tensor> const&, long)",
    "at::_ops::cat::call(c10::IListRef<at::Tensor> const&, long)"
];
pub(super) const COPY: Piece = kernel![
    "at::native::_to_copy(at::Tensor const&, std::optional<c10::ScalarType>)",
    "at::_ops::to_dtype_layout::call(at::Tensor const&, std::optional<c10::ScalarType>)"
];
pub(super) const LOG_SOFTMAX: Piece = kernel![
    "at::native::structured_log_softmax_cuda_out::impl(at::Tensor const&, long)",
    "at::_ops::_log_softmax::call(at::Tensor const&, long, bool)"
];
pub(super) const NLL_LOSS: Piece = kernel![
    "at::native::structured_nll_loss_forward_out_cuda::impl(at::Tensor const&)",
    "at::_ops::nll_loss_forward::call(at::Tensor const&, at::Tensor const&)"
];
pub(super) const EMPTY: Piece = kernel![
    "at::detail::empty_cuda(c10::ArrayRef<long>, c10::ScalarType)",
    "at::_ops::empty_memory_format::call(c10::ArrayRef<long>)"
];
pub(super) const FOREACH: Piece = kernel![
    "at::native::foreach_tensor_sqrt_cuda(c10::ArrayRef<at::Tensor>)",
    "at::_ops::_foreach_sqrt::call(c10::ArrayRef<at::Tensor>)"
];
pub(super) const FOREACH_NORM: Piece = kernel![
    "at::native::foreach_tensor_norm_cuda(c10::ArrayRef<at::Tensor>)",
    "at::_ops::_foreach_norm_Scalar::call(c10::ArrayRef<at::Tensor>)"
];

/// The thread that runs the backward pass, which has no Python frames.
pub(super) const ENGINE: Piece = &[
    ("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)", "??", 0),
    ("torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)", "engine.cpp", 0),
    ("torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)", "engine.cpp", 0),
    ("torch::autograd::python::PythonEngine::thread_init(int)", "python_engine.cpp", 0),
    ("execute_native_thread_routine", "thread.cc", 104),
    ("start_thread", "./nptl/pthread_create.c", 447),
    ("__clone3", "../sysdeps/unix/sysv/linux/x86_64/clone3.S", 78),
];

/// A backward function: its gradient kernel and the autograd node.
macro_rules! backward {
    ($kernel:literal, $node:literal) => {
        &[kernel![$kernel], &[($node, "??", 0)]]
    };
}

// Operations of the forward pass.
pub(super) const LINEAR_OP: Site = &[ADDMM, LINEAR];
pub(super) const LAYER_NORM_OP: Site = &[NATIVE_LAYER_NORM, LAYER_NORM];
pub(super) const GELU_OP: Site = &[GELU_KERNEL, GELU];
pub(super) const EMBEDDING_OP: Site = &[GATHER, EMBEDDING];
pub(super) const FLASH_OP: Site = &[FLASH];
pub(super) const ADD_OP: Site = &[ADD];
pub(super) const CAT_OP: Site = &[CAT];
pub(super) const COPY_OP: Site = &[COPY];
pub(super) const EMPTY_OP: Site = &[EMPTY];
pub(super) const LOG_SOFTMAX_OP: Site = &[LOG_SOFTMAX, CROSS_ENTROPY];
pub(super) const LOGITS_FLOAT_OP: Site = &[COPY, CROSS_ENTROPY];
pub(super) const NLL_LOSS_OP: Site = &[NLL_LOSS, CROSS_ENTROPY];
pub(super) const MATMUL_OP: Site = &[kernel![
    "at::native::baddbmm_out_cuda_impl(at::Tensor const&, at::Tensor const&, at::Tensor const&)",
    "at::_ops::bmm::call(at::Tensor const&, at::Tensor const&)"
]];
pub(super) const SOFTMAX_OP: Site = &[
    kernel![
        "at::native::structured_softmax_cuda_out::impl(at::Tensor const&, long, bool)",
        "at::_ops::softmax_int::call(at::Tensor const&, long, std::optional<c10::ScalarType>)"
    ],
    &[("softmax", torch!("nn/functional.py"), 2142)],
];
pub(super) const DROPOUT_OP: Site = &[
    kernel![
        "at::native::native_dropout_cuda(at::Tensor const&, double, std::optional<bool>)",
        "at::_ops::native_dropout::call(at::Tensor const&, double, std::optional<bool>)"
    ],
    module![("dropout", torch!("nn/functional.py"), 1425), ("forward", torch!("nn/modules/dropout.py"), 73)],
];
pub(super) const CONV_OP: Site = &[
    kernel![
        "at::native::cudnn_convolution(at::Tensor const&, at::Tensor const&, c10::ArrayRef<long>)",
        "at::_ops::convolution::call(at::Tensor const&, at::Tensor const&, std::optional<at::Tensor> const&)"
    ],
    module![("_conv_forward", torch!("nn/modules/conv.py"), 549), ("forward", torch!("nn/modules/conv.py"), 554)],
];
pub(super) const CONV_WORKSPACE: Site = &[
    kernel![
        "at::native::raw_cudnn_convolution_forward_out(at::Tensor const&, at::Tensor const&, at::Tensor const&)",
        "at::_ops::cudnn_convolution::call(at::Tensor const&, at::Tensor const&, c10::ArrayRef<c10::SymInt>)"
    ],
    module![("_conv_forward", torch!("nn/modules/conv.py"), 549), ("forward", torch!("nn/modules/conv.py"), 554)],
];
pub(super) const BATCH_NORM_OP: Site = &[
    kernel![
        "at::native::cudnn_batch_norm(at::Tensor const&, at::Tensor const&)",
        "at::_ops::cudnn_batch_norm::call(at::Tensor const&, at::Tensor const&)"
    ],
    module![("batch_norm", torch!("nn/functional.py"), 2822), ("forward", torch!("nn/modules/batchnorm.py"), 193)],
];

// Operations of models with gated MLPs, RMSNorm and experts.

// Operations of the backward pass, without the frames of the engine that calls them.
pub(super) const LOSS_BACKWARD: Site =
    backward!["at::native::log_softmax_backward_cuda_out(at::Tensor const&)", "LogSoftmaxBackward0::apply"];
pub(super) const CAST_BACKWARD: Site =
    backward!["at::native::_to_copy(at::Tensor const&, std::optional<c10::ScalarType>)", "ToCopyBackward0::apply"];
pub(super) const INPUT_GRADIENT: Site =
    backward!["at::native::structured_mm_out_cuda::impl(at::Tensor const&)", "AddmmBackward0::apply"];
pub(super) const WEIGHT_GRADIENT: Site = backward![
    "at::native::structured_mm_out_cuda::impl(at::Tensor const&, at::Tensor const&)",
    "AddmmBackward0::apply"
];
pub(super) const BIAS_GRADIENT: Site =
    backward!["at::native::structured_sum_out::impl(at::Tensor const&)", "AddmmBackward0::apply"];
pub(super) const GELU_BACKWARD: Site =
    backward!["at::native::structured_gelu_backward_out_cuda::impl(at::Tensor const&)", "GeluBackward0::apply"];
pub(super) const NORM_BACKWARD: Site =
    backward!["at::native::layer_norm_backward_cuda(at::Tensor const&)", "NativeLayerNormBackward0::apply"];
pub(super) const ATTENTION_BACKWARD: Site =
    backward!["pytorch_flash::mha_bwd(at::Tensor const&)", "ScaledDotProductFlashAttentionBackward0::apply"];
pub(super) const EMBEDDING_BACKWARD: Site =
    backward!["at::native::embedding_dense_backward_cuda(at::Tensor const&)", "EmbeddingBackward0::apply"];

pub(super) const SOFTMAX_BACKWARD: Site =
    backward!["at::native::structured_softmax_backward_cuda_out::impl(at::Tensor const&)", "SoftmaxBackward0::apply"];
pub(super) const CONV_BACKWARD: Site =
    backward!["at::native::cudnn_convolution_backward_input(at::Tensor const&)", "ConvolutionBackward0::apply"];
pub(super) const CONV_WEIGHT_GRADIENT: Site =
    backward!["at::native::cudnn_convolution_backward_weight(at::Tensor const&)", "ConvolutionBackward0::apply"];
pub(super) const BATCH_NORM_BACKWARD: Site =
    backward!["at::native::cudnn_batch_norm_backward(at::Tensor const&)", "CudnnBatchNormBackward0::apply"];
/// The frames of a checkpointed segment while it is recomputed.
pub(super) const RECOMPUTE: &[Call] =
    &[("backward", torch!("utils/checkpoint.py"), 311), ("apply", torch!("autograd/function.py"), 311)];

// Set-up and optimizer.
pub(super) const MODULE_TO: Piece = &[
    ("convert", torch!("nn/modules/module.py"), 1369),
    ("_apply", torch!("nn/modules/module.py"), 957),
    ("_apply", torch!("nn/modules/module.py"), 928),
    ("to", torch!("nn/modules/module.py"), 1376),
];
pub(super) const PARAMETER_OP: Site = &[COPY, MODULE_TO];
pub(super) const ADAMW: Piece = &[
    ("_multi_tensor_adamw", torch!("optim/adam.py"), 713),
    ("adamw", torch!("optim/adam.py"), 978),
    ("step", torch!("optim/adam.py"), 248),
    ("_use_grad", torch!("optim/optimizer.py"), 79),
    ("wrapper", torch!("optim/optimizer.py"), 517),
];
pub(super) const ADAMW_STATE: Piece = &[
    ("zeros_like", torch!("_refs/__init__.py"), 5061),
    ("_init_group", torch!("optim/adam.py"), 180),
    ("step", torch!("optim/adam.py"), 236),
    ("_use_grad", torch!("optim/optimizer.py"), 79),
    ("wrapper", torch!("optim/optimizer.py"), 517),
];
pub(super) const MOMENTUM_OP: Site = &[EMPTY, ADAMW_STATE];
pub(super) const DENOMINATOR_OP: Site = &[FOREACH, ADAMW];
pub(super) const SGD_STATE_OP: Site = &[
    &[("clone", "??", 0)],
    &[
        ("_multi_tensor_sgd", torch!("optim/sgd.py"), 451),
        ("step", torch!("optim/sgd.py"), 128),
        ("wrapper", torch!("optim/optimizer.py"), 517),
    ],
];
pub(super) const CLONE_OP: Site = &[kernel![
    "at::native::clone(at::Tensor const&, std::optional<c10::MemoryFormat>)",
    "at::_ops::clone::call(at::Tensor const&, std::optional<c10::MemoryFormat>)"
]];

pub(super) const DROP: Piece = &[
    ("c10::cuda::CUDACachingAllocator::Native::local_raw_delete(void*)", "CUDACachingAllocator.cpp", 0),
    ("c10::StorageImpl::~StorageImpl()", "??", 0),
    ("THPVariable_dealloc(_object*)", "python_variable.cpp", 0),
];
/// The call site of a tensor that Python frees when its last reference goes.
pub(super) const DROPPED: Site = &[DROP];
/// The call site of a saved tensor that the backward pass frees after using it.
pub(super) const RELEASED: Site = &[&[
    ("c10::cuda::CUDACachingAllocator::Native::local_raw_delete(void*)", "CUDACachingAllocator.cpp", 0),
    ("c10::StorageImpl::~StorageImpl()", "??", 0),
    ("torch::autograd::SavedVariable::reset_data()", "saved_variable.cpp", 0),
]];
/// The call site of cached memory that is released.
pub(super) const EMPTY_CACHE: Site = &[&[
    (
        "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::emptyCache(std::pair<unsigned long, unsigned long>)",
        "CUDACachingAllocator.cpp",
        0,
    ),
    ("THCPModule_emptyCache(_object*, _object*)", "Module.cpp", 0),
    ("empty_cache", torch!("cuda/memory.py"), 222),
]];
