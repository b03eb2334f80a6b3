//! The call sites of the sample run: stacks put together from the frames that they share, innermost first.
//!
//! File and function names are those of a training script with PyTorch below it; nothing here is run.

use crate::workloads::call_site::{Piece, Site};
use crate::workloads::sites::{
    ADAMW, ADAMW_STATE, ADD, ADDMM, CAT, COPY, CROSS_ENTROPY, DROP, EMBEDDING, EMPTY, FLASH, FOREACH, FOREACH_NORM,
    GATHER, GELU, GELU_KERNEL, LAYER_NORM, LINEAR, LOG_SOFTMAX, MODULE_TO, NATIVE_LAYER_NORM, NLL_LOSS, module, torch,
};
pub(super) use crate::workloads::sites::{
    ATTENTION_BACKWARD, BIAS_GRADIENT, CAST_BACKWARD, EMBEDDING_BACKWARD, GELU_BACKWARD, INPUT_GRADIENT, LOSS_BACKWARD,
    NORM_BACKWARD, WEIGHT_GRADIENT,
};

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

// Set-up.
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

// Optimizer.
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
pub(super) const DROPPED: Site = &[DROP, TRAIN, MAIN];
