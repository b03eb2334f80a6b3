//! The call sites of the sample run: stacks put together from the frames that they share, innermost first.
//!
//! File and function names are those of a training script with PyTorch below it; nothing here is run.

use crate::workloads::snapshot_writer::Frame;

/// A stack as pieces that follow one another, innermost first.
pub(super) type Site = &'static [&'static [Frame]];

/// All frames of a site.
pub(super) fn frames(site: Site) -> Vec<Frame> {
    site.concat()
}

/// A path within the `torch` package.
macro_rules! torch {
    ($path:literal) => {
        concat!("/opt/venv/lib/python3.12/site-packages/torch/", $path)
    };
}

/// What every call of a module runs through.
macro_rules! module {
    ($($frame:expr),+ $(,)?) => {
        &[
            $($frame,)+
            ("_call_impl", torch!("nn/modules/module.py"), 1786),
            ("_wrapped_call_impl", torch!("nn/modules/module.py"), 1775),
        ]
    };
}

/// The allocator itself and the ATen function that asked it.
macro_rules! kernel {
    ($($name:literal),+ $(,)?) => {
        &[
            ("c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long, CUstream_st*)", "CUDACachingAllocator.cpp", 0),
            ("c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)", "CUDACachingAllocator.cpp", 0),
            $(($name, "??", 0),)+
        ]
    };
}

type Piece = &'static [Frame];

// Where the program runs.
const MAIN: Piece = &[
    ("main", "/home/ada/gpt/train.py", 318),
    ("<module>", "/home/ada/gpt/train.py", 344),
    ("_run_code", "<frozen runpy>", 88),
    ("_run_module_as_main", "<frozen runpy>", 198),
];
const SETUP: Piece = &[("setup", "/home/ada/gpt/train.py", 91)];
const TRAIN: Piece = &[("train_step", "/home/ada/gpt/train.py", 176), ("train", "/home/ada/gpt/train.py", 233)];
const LOSS: Piece = &[("train_step", "/home/ada/gpt/train.py", 178), ("train", "/home/ada/gpt/train.py", 233)];
const UPDATE: Piece = &[("update", "/home/ada/gpt/train.py", 196), ("train", "/home/ada/gpt/train.py", 236)];
const CLIP: Piece = &[("update", "/home/ada/gpt/train.py", 194), ("train", "/home/ada/gpt/train.py", 236)];
const EVALUATE: Piece = &[
    ("evaluate", "/home/ada/gpt/evaluate.py", 57),
    ("decorate_context", torch!("utils/_contextlib.py"), 120),
    ("train", "/home/ada/gpt/train.py", 247),
];
const KEEP: Piece = &[
    ("evaluate", "/home/ada/gpt/evaluate.py", 61),
    ("decorate_context", torch!("utils/_contextlib.py"), 120),
    ("train", "/home/ada/gpt/train.py", 247),
];
const PREFETCH: Piece = &[
    ("_copy", "/home/ada/gpt/data.py", 132),
    ("__next__", "/home/ada/gpt/data.py", 118),
    ("train", "/home/ada/gpt/train.py", 229),
];

// What the model is made of.
const GPT: Piece = module![("forward", "/home/ada/gpt/model.py", 214)];
const GPT_BLOCKS: Piece = module![("forward", "/home/ada/gpt/model.py", 219)];
const GPT_NORM: Piece = module![("forward", "/home/ada/gpt/model.py", 220)];
const GPT_HEAD: Piece = module![("forward", "/home/ada/gpt/model.py", 221)];
const BLOCK_NORM_1: Piece = module![("forward", "/home/ada/gpt/model.py", 141)];
const BLOCK_ATTENTION: Piece = module![("forward", "/home/ada/gpt/model.py", 142)];
const BLOCK_NORM_2: Piece = module![("forward", "/home/ada/gpt/model.py", 143)];
const BLOCK_MLP: Piece = module![("forward", "/home/ada/gpt/model.py", 144)];
const ATTENTION_QKV: Piece = module![("forward", "/home/ada/gpt/model.py", 74)];
const ATTENTION_CACHE: Piece = module![("forward", "/home/ada/gpt/model.py", 79)];
const ATTENTION_SDPA: Piece = module![("forward", "/home/ada/gpt/model.py", 83)];
const ATTENTION_OUT: Piece = module![("forward", "/home/ada/gpt/model.py", 88)];
const MLP_UP: Piece = module![("forward", "/home/ada/gpt/model.py", 112)];
const MLP_GELU: Piece = module![("forward", "/home/ada/gpt/model.py", 113)];
const MLP_DOWN: Piece = module![("forward", "/home/ada/gpt/model.py", 114)];

// Modules of torch.nn.
const LINEAR: Piece = module![("forward", torch!("nn/modules/linear.py"), 134)];
const LAYER_NORM: Piece =
    module![("layer_norm", torch!("nn/functional.py"), 2929), ("forward", torch!("nn/modules/normalization.py"), 229),];
const EMBEDDING: Piece =
    module![("embedding", torch!("nn/functional.py"), 2567), ("forward", torch!("nn/modules/sparse.py"), 192)];
const GELU: Piece = module![("forward", torch!("nn/modules/activation.py"), 816)];
const CROSS_ENTROPY: Piece = &[("cross_entropy", torch!("nn/functional.py"), 3494)];

// ATen, as the C++ unwinder names it.
const ADDMM: Piece = kernel![
    "at::native::addmm_out_cuda_impl(at::Tensor&, at::Tensor const&, at::Tensor const&)",
    "at::_ops::linear::call(at::Tensor const&, at::Tensor const&, std::optional<at::Tensor> const&)"
];
const NATIVE_LAYER_NORM: Piece = kernel![
    "at::native::layer_norm_cuda(at::Tensor const&, c10::ArrayRef<long>, double)",
    "at::_ops::native_layer_norm::call(at::Tensor const&, c10::ArrayRef<long>, double)"
];
const FLASH: Piece = kernel![
    "pytorch_flash::mha_fwd(at::Tensor const&, at::Tensor const&, at::Tensor const&, bool)",
    "at::_ops::_scaled_dot_product_flash_attention::call(at::Tensor const&, at::Tensor const&, at::Tensor const&)"
];
const GELU_KERNEL: Piece = kernel![
    "at::native::structured_gelu_out_cuda::impl(at::Tensor const&)",
    "at::_ops::gelu::call(at::Tensor const&, c10::basic_string_view<char>)"
];
const ADD: Piece = kernel![
    "at::native::structured_ufunc_add_CUDA::impl(at::Tensor const&, at::Tensor const&)",
    "at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&, c10::Scalar const&)"
];
const GATHER: Piece = kernel![
    "at::native::index_select_out_cuda_impl(at::Tensor&, at::Tensor const&)",
    "at::_ops::embedding::call(at::Tensor const&, at::Tensor const&)"
];
const CAT: Piece = kernel![
    "at::native::structured_cat_out_cuda::impl(c10::IListRef<at::Tensor> const&, long)",
    "at::_ops::cat::call(c10::IListRef<at::Tensor> const&, long)"
];
const COPY: Piece = kernel![
    "at::native::_to_copy(at::Tensor const&, std::optional<c10::ScalarType>)",
    "at::_ops::to_dtype_layout::call(at::Tensor const&, std::optional<c10::ScalarType>)"
];
const LOG_SOFTMAX: Piece = kernel![
    "at::native::structured_log_softmax_cuda_out::impl(at::Tensor const&, long)",
    "at::_ops::_log_softmax::call(at::Tensor const&, long, bool)"
];
const NLL_LOSS: Piece = kernel![
    "at::native::structured_nll_loss_forward_out_cuda::impl(at::Tensor const&)",
    "at::_ops::nll_loss_forward::call(at::Tensor const&, at::Tensor const&)"
];
const EMPTY: Piece = kernel![
    "at::detail::empty_cuda(c10::ArrayRef<long>, c10::ScalarType)",
    "at::_ops::empty_memory_format::call(c10::ArrayRef<long>)"
];
const FOREACH: Piece = kernel![
    "at::native::foreach_tensor_sqrt_cuda(c10::ArrayRef<at::Tensor>)",
    "at::_ops::_foreach_sqrt::call(c10::ArrayRef<at::Tensor>)"
];
const FOREACH_NORM: Piece = kernel![
    "at::native::foreach_tensor_norm_cuda(c10::ArrayRef<at::Tensor>)",
    "at::_ops::_foreach_norm_Scalar::call(c10::ArrayRef<at::Tensor>)"
];

// The thread that runs the backward pass has no Python frames.
const ENGINE: Piece = &[
    ("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)", "??", 0),
    ("torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)", "engine.cpp", 0),
    ("torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)", "engine.cpp", 0),
    ("torch::autograd::python::PythonEngine::thread_init(int)", "python_engine.cpp", 0),
    ("execute_native_thread_routine", "thread.cc", 104),
    ("start_thread", "./nptl/pthread_create.c", 447),
    ("__clone3", "../sysdeps/unix/sysv/linux/x86_64/clone3.S", 78),
];

/// A backward function: its gradient kernel, the autograd node, the engine.
macro_rules! backward {
    ($kernel:literal, $node:literal) => {
        &[kernel![$kernel], &[($node, "??", 0)], ENGINE]
    };
}

// Set-up.
const MODULE_TO: Piece = &[
    ("convert", torch!("nn/modules/module.py"), 1369),
    ("_apply", torch!("nn/modules/module.py"), 957),
    ("_apply", torch!("nn/modules/module.py"), 928),
    ("to", torch!("nn/modules/module.py"), 1376),
];
pub(super) const PARAMETER: Site = &[COPY, MODULE_TO, SETUP, MAIN];
pub(super) const GRAPH_STATIC: Site =
    &[EMPTY, &[("capture", "/home/ada/gpt/sampler.py", 38), ("__init__", "/home/ada/gpt/sampler.py", 21)], SETUP, MAIN];
pub(super) const GRAPH_WARMUP: Site = &[
    ADDMM,
    LINEAR,
    &[("capture", "/home/ada/gpt/sampler.py", 44), ("__init__", "/home/ada/gpt/sampler.py", 21)],
    SETUP,
    MAIN,
];

// Input.
pub(super) const TOKENS: Site = &[COPY, PREFETCH, MAIN];
pub(super) const MASK: Site = &[EMPTY, &[("_mask", "/home/ada/gpt/data.py", 149)], PREFETCH, MAIN];

// Forward.
pub(super) const TOKEN_EMBEDDING: Site = &[GATHER, EMBEDDING, GPT, TRAIN, MAIN];
pub(super) const POSITION_ADD: Site = &[ADD, GPT, TRAIN, MAIN];
pub(super) const NORM_1: Site = &[NATIVE_LAYER_NORM, LAYER_NORM, BLOCK_NORM_1, GPT_BLOCKS, TRAIN, MAIN];
pub(super) const QKV: Site = &[ADDMM, LINEAR, ATTENTION_QKV, BLOCK_ATTENTION, GPT_BLOCKS, TRAIN, MAIN];
pub(super) const ATTENTION: Site = &[FLASH, ATTENTION_SDPA, BLOCK_ATTENTION, GPT_BLOCKS, TRAIN, MAIN];
pub(super) const PROJECTION: Site = &[ADDMM, LINEAR, ATTENTION_OUT, BLOCK_ATTENTION, GPT_BLOCKS, TRAIN, MAIN];
pub(super) const RESIDUAL_1: Site = &[ADD, BLOCK_ATTENTION, GPT_BLOCKS, TRAIN, MAIN];
pub(super) const NORM_2: Site = &[NATIVE_LAYER_NORM, LAYER_NORM, BLOCK_NORM_2, GPT_BLOCKS, TRAIN, MAIN];
pub(super) const UP: Site = &[ADDMM, LINEAR, MLP_UP, BLOCK_MLP, GPT_BLOCKS, TRAIN, MAIN];
pub(super) const ACTIVATION: Site = &[GELU_KERNEL, GELU, MLP_GELU, BLOCK_MLP, GPT_BLOCKS, TRAIN, MAIN];
pub(super) const DOWN: Site = &[ADDMM, LINEAR, MLP_DOWN, BLOCK_MLP, GPT_BLOCKS, TRAIN, MAIN];
pub(super) const RESIDUAL_2: Site = &[ADD, BLOCK_MLP, GPT_BLOCKS, TRAIN, MAIN];
pub(super) const FINAL_NORM: Site = &[NATIVE_LAYER_NORM, LAYER_NORM, GPT_NORM, TRAIN, MAIN];
pub(super) const LOGITS: Site = &[ADDMM, LINEAR, GPT_HEAD, TRAIN, MAIN];
pub(super) const LOGITS_FLOAT: Site = &[COPY, CROSS_ENTROPY, LOSS, MAIN];
pub(super) const LOG_PROBABILITIES: Site = &[LOG_SOFTMAX, CROSS_ENTROPY, LOSS, MAIN];
pub(super) const LOSS_VALUE: Site = &[NLL_LOSS, CROSS_ENTROPY, LOSS, MAIN];

// Backward.
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

// Optimizer.
const ADAMW: Piece = &[
    ("_multi_tensor_adamw", torch!("optim/adam.py"), 713),
    ("adamw", torch!("optim/adam.py"), 978),
    ("step", torch!("optim/adam.py"), 248),
    ("_use_grad", torch!("optim/optimizer.py"), 79),
    ("wrapper", torch!("optim/optimizer.py"), 517),
];
const ADAMW_STATE: Piece = &[
    ("zeros_like", torch!("_refs/__init__.py"), 5061),
    ("_init_group", torch!("optim/adam.py"), 180),
    ("step", torch!("optim/adam.py"), 236),
    ("_use_grad", torch!("optim/optimizer.py"), 79),
    ("wrapper", torch!("optim/optimizer.py"), 517),
];
pub(super) const MOMENTUM: Site = &[EMPTY, ADAMW_STATE, UPDATE, MAIN];
pub(super) const DENOMINATOR: Site = &[FOREACH, ADAMW, UPDATE, MAIN];
pub(super) const GRADIENT_NORM: Site = &[
    FOREACH_NORM,
    &[
        ("_get_total_norm", torch!("nn/utils/clip_grad.py"), 98),
        ("clip_grad_norm_", torch!("nn/utils/clip_grad.py"), 218),
        ("_no_grad_wrapper", torch!("nn/utils/clip_grad.py"), 38),
    ],
    CLIP,
    MAIN,
];

// Evaluation.
const GENERATE: Piece = &[("generate", "/home/ada/gpt/sampler.py", 83)];
pub(super) const CACHE: Site = &[CAT, ATTENTION_CACHE, BLOCK_ATTENTION, GPT_BLOCKS, GENERATE, EVALUATE, MAIN];
pub(super) const EVALUATION_HIDDEN: Site = &[ADDMM, LINEAR, MLP_UP, BLOCK_MLP, GPT_BLOCKS, GENERATE, EVALUATE, MAIN];
pub(super) const EVALUATION_LOGITS: Site = &[ADDMM, LINEAR, GPT_HEAD, GENERATE, EVALUATE, MAIN];
pub(super) const KEPT_SCORES: Site = &[COPY, &[("append", "/home/ada/gpt/evaluate.py", 33)], KEEP, MAIN];

/// Freed by Python when the last name goes.
pub(super) const DROPPED: Site = &[
    &[
        ("c10::cuda::CUDACachingAllocator::Native::local_raw_delete(void*)", "CUDACachingAllocator.cpp", 0),
        ("c10::StorageImpl::~StorageImpl()", "??", 0),
        ("THPVariable_dealloc(_object*)", "python_variable.cpp", 0),
    ],
    TRAIN,
    MAIN,
];
/// Freed by the backward pass once a saved tensor has been used.
pub(super) const RELEASED: Site = &[
    &[
        ("c10::cuda::CUDACachingAllocator::Native::local_raw_delete(void*)", "CUDACachingAllocator.cpp", 0),
        ("c10::StorageImpl::~StorageImpl()", "??", 0),
        ("torch::autograd::SavedVariable::reset_data()", "saved_variable.cpp", 0),
    ],
    ENGINE,
];
