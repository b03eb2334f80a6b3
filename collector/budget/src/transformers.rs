//! What a step keeps if Hugging Face's Transformers computes the model, without `torch.compile`: the tensors that autograd
//! saves, operation by operation.
//!
//! The counts are those of Transformers 5 on PyTorch 2.11, read off with `torch.autograd.graph.saved_tensors_hooks`;
//! `collector/budget/TRUTH.md` compares them with recorded runs.

use super::lora::Matrix;
use super::method::{Attention, Checkpointing, Precision};
use super::model::Model;
use super::shape::{Block, Mlp, Norm};
use super::sum::Letter::{ActiveExperts, Batch, Ffn, Heads, Hidden, Layers, Rank, Seq, SharedExperts, Vocab};
use super::sum::{Letter, Sum};

/// The bytes of a 32-bit number.
const WIDE: u64 = 4;

/// The tensors that autograd keeps of one layer for each token.
pub(super) fn token_activations(model: &Model) -> Sum {
    let mut sum = Sum::default();
    let post = if model.details.has_post_norms { 2 } else { 0 };
    for _ in 0..model.block.norms() + post {
        sum = norm(sum, model, model.residual_bytes(), &[Hidden], &[]);
    }
    sum = norm_outputs(sum, model);
    sum = attention(sum, model);
    sum = match model.experts {
        None => mlp(sum, model, &[]),
        Some(experts) => {
            let routed = mlp(sum, model, &[ActiveExperts])
                .plus(2 * model.precision.element(), &[ActiveExperts, Hidden])
                .plus(WIDE, &[model.routed_letter()])
                .plus(12, &[ActiveExperts]);
            if experts.shared > 0 { mlp(routed, model, &[SharedExperts]) } else { routed }
        }
    };
    sum.plus_apart(if model.dropout { 2 } else { 0 }, &[Hidden])
}

/// Adds what a norm keeps. `LayerNorm` is one operation, which keeps its input, mean and deviation. `RMSNorm` squares its input
/// in 32 bits, multiplies it by the deviation, and the result by its weights: it keeps both operands, the second only if
/// the weights are trained. Gemma multiplies in 32 bits, others in the format of the input, whose numbers have `input` bytes.
fn norm(sum: Sum, model: &Model, input: u64, width: &[Letter], rows: &[Letter]) -> Sum {
    let trained = u64::from(model.lora.is_none());
    match model.norm {
        Norm::Layer => sum.plus(input, width).plus(2 * WIDE, rows),
        Norm::Rms => sum.plus(WIDE + trained * input, width).plus(WIDE, rows),
        Norm::GemmaRms => sum.plus(WIDE + trained * WIDE, width).plus(WIDE, rows),
    }
}

/// Adds the outputs of norms that matrices keep as their input. `torch.autocast` casts them for each matrix anew.
fn norm_outputs(sum: Sum, model: &Model) -> Sum {
    let fused = model.details.is_qkv_fused;
    let attention: &[Matrix] = if fused { &[Matrix::Fused] } else { &[Matrix::Query, Matrix::Key, Matrix::Value] };
    let widening: &[Matrix] = if model.mlp == Mlp::Gated { &[Matrix::Gate, Matrix::Up] } else { &[Matrix::Up] };
    // Queries, keys and values may be adapted by name although they are one matrix.
    let any = |list: &[Matrix]| model.keeps_input_of(list);
    let attention = if any(&[Matrix::Query, Matrix::Key, Matrix::Value, Matrix::Fused]) { attention } else { &[] };
    // A router reads the norm's output too; experts get copies of its rows.
    let widening = match model.experts {
        Some(experts) if experts.shared == 0 => &widening[..1],
        _ if any(widening) => widening,
        _ => &[],
    };
    let e = model.precision.element();
    let copies = |matrices: &[Matrix]| match (model.lora, model.precision) {
        (Some(_), precision) => adapted_inputs(model, precision, matrices) / e,
        (None, Precision::Autocast) => matrices.len() as u64,
        (None, _) => u64::from(!matrices.is_empty()),
    };
    let copies = match model.block {
        Block::ParallelOneNorm if model.lora.is_none() && model.precision != Precision::Autocast => 1,
        _ => copies(attention) + copies(widening),
    };
    sum.plus(e * copies, &[Hidden])
}

/// Returns the bytes of the inputs that the adapters of some matrices keep for each number: PEFT casts the input to the adapter's 32
/// bits for each adapter, and `torch.autocast` to 16 bits.
fn adapted_inputs(model: &Model, precision: Precision, matrices: &[Matrix]) -> u64 {
    let count = model.lora.map_or(0, |lora| matrices.iter().filter(|matrix| lora.targets.has(**matrix)).count() as u64);
    match precision {
        Precision::Mixed | Precision::Bf16 => WIDE * count,
        Precision::Autocast => 2 * count,
        Precision::Fp32 => WIDE * count.min(1),
    }
}

/// Adds what attention keeps: queries, keys, values, and its result, which is the projection's input.
fn attention(mut sum: Sum, model: &Model) -> Sum {
    let e = model.precision.element();
    let (query, key) = (model.query_letters(), model.key_letters());
    if model.details.has_head_norms {
        sum = norm(sum, model, e, query, &[Heads]);
        sum = norm(sum, model, e, key, &[Letter::KvHeads]);
    }
    if let Some(latent) = model.details.latent {
        let width = latent.query + latent.key;
        sum = sum.plus((WIDE + 2 * e) * width, &[]).plus(e * latent.value, &[Heads]).plus(e, key);
        return sum.plus(e, query).plus(e * latent.value, &[Heads]);
    }
    if is_computed_with_scores(model) {
        // Keys and values are copied for each head, and queries and keys are scaled.
        return sum.plus(4 * e, query);
    }
    sum = sum.plus(2 * e, query).plus(2 * e, key);
    // Rotated queries and keys are kept beside the one tensor that the values are a part of.
    if model.details.is_qkv_fused && model.positions == 0 {
        sum = sum.plus(e, query).plus(e, key);
    }
    let adapters = adapted_inputs(model, model.precision, &[Matrix::Projection]);
    sum = sum.plus(if model.precision == Precision::Fp32 { 0 } else { adapters }, query);
    sum.plus(adapter_element(model) * model.adapters_passed().0, &[Rank])
}

/// Returns the bytes of a number that a matrix of the MLP results in. Prepared norms have results in 32 bits, and bitsandbytes' matrices
/// return the format of their input, also where `torch.autocast` computes in 16 bits.
fn mlp_element(model: &Model) -> u64 {
    if model.is_prepared { WIDE } else { model.precision.element() }
}

/// Adds what an MLP keeps: the results of the widening matrices, of the activation function, and the last matrix's input.
fn mlp(sum: Sum, model: &Model, copies: &[Letter]) -> Sum {
    let e = mlp_element(model);
    let product = match model.lora {
        None => e,
        Some(_) => adapted_inputs(model, model.precision, &[Matrix::Down]),
    };
    let kept = match (model.mlp, model.details.is_activation_composed) {
        (Mlp::Gated, _) => 3 * e,
        (Mlp::Plain, false) => e,
        // The input, half of it, the hyperbolic tangent, and 1 more than that. `torch.autocast` computes powers in 32 bits, and
        // what follows.
        (Mlp::Plain, true) if model.precision == Precision::Autocast => 3 * WIDE + e,
        (Mlp::Plain, true) => 4 * e,
    };
    let ffn = [copies, &[Ffn]].concat();
    let rank = [copies, &[Rank]].concat();
    sum.plus(kept + product, &ffn).plus(adapter_element(model) * model.adapters_passed().1, &rank)
}

/// Returns the bytes of a number between an adapter's matrices.
fn adapter_element(model: &Model) -> u64 {
    if model.precision == Precision::Autocast { 2 } else { WIDE }
}

/// Returns whether PyTorch computes attention with the matrix of all scores: kernels in tiles share keys among queries only in
/// 16 bits.
fn is_computed_with_scores(model: &Model) -> bool {
    let is_grouped = model.kv_heads < model.heads && model.precision == Precision::Fp32;
    model.attention == Attention::Plain || is_grouped
}

/// What attention keeps of the scores of one layer: all of them, or a 32-bit number for each row.
pub(super) fn scores(model: &Model) -> Sum {
    let e = model.precision.element();
    match (is_computed_with_scores(model), model.dropout) {
        (false, _) => Sum::default().plus(WIDE, &[Heads, Seq, Batch]),
        (true, false) => Sum::default().plus(e, &[Heads, Seq, Seq, Batch]),
        (true, true) => Sum::default().plus(2 * e + 1, &[Heads, Seq, Seq, Batch]),
    }
}

/// Returns the bytes of the masks of layers whose window is shorter than the sequence. Such a layer copies keys and values for each
/// head, unless there is one of them.
pub(super) fn windows(model: &Model) -> u128 {
    let Some(window) = model.details.window.filter(|window| window.tokens < model.seq) else { return 0 };
    let e = u128::from(model.precision.element());
    let tokens = u128::from(model.seq) * u128::from(model.batch);
    let copied = if model.kv_heads > 1 { 2 * (model.heads - model.kv_heads) * model.head_width() } else { 0 };
    u128::from(window.layers.min(model.layers)) * tokens * e * (u128::from(model.seq) + u128::from(copied))
}

/// Returns what is kept outside of the layers: the last norm with its output, the dropout mask of the embedding.
pub(super) fn ends(model: &Model) -> Sum {
    let mut sum = Sum::default();
    if model.share.has_head {
        sum = norm(sum, model, model.residual_bytes(), &[Hidden], &[]);
        sum = sum.plus(if model.lora.is_none() { model.precision.element() } else { 0 }, &[Hidden]);
    }
    sum.plus(u64::from(model.dropout && model.share.has_embedding), &[Hidden])
}

/// The bytes of one batch at the moments of a step.
pub(super) struct StepBytes {
    /// At the end of the forward pass, with the loss and what `torch.autocast` casts.
    pub(super) forward: u128,
    /// When the backward pass has computed the gradient of the logits.
    pub(super) loss: u128,
    /// While the backward pass is in the last layer.
    pub(super) last_layer: u128,
    /// While it is in the first layer.
    pub(super) first_layer: u128,
    /// Of activations.
    pub(super) activations: u128,
    /// Of logits and loss.
    pub(super) logits: u128,
    /// The formula of the activations.
    pub(super) formula: String,
}

/// Returns the bytes of one batch. `cast` is what `torch.autocast` casts of all layers and of the output layer.
pub(super) fn step(model: &Model, cast: [u128; 2]) -> StepBytes {
    let tokens = u128::from(model.seq) * u128::from(model.batch);
    let one = token_activations(model);
    let layer = one.value(model) * tokens + scores(model).value(model);
    let all = layer * u128::from(model.layers) + windows(model);
    let ends_sum = ends(model);
    let ends = ends_sum.value(model) * tokens;
    let stream = u128::from(model.residual_bytes()) * tokens * u128::from(model.hidden);
    let one = format!("sb ({one}) + {}", scores(model));
    let [cast_layers, cast_head] = cast;
    let (kept, segment, in_segment, formula) = match model.checkpointing {
        Checkpointing::None => {
            let masks = if windows(model) > 0 { " + windows" } else { "" };
            (all, 0, 0, format!("L ({one}){masks} + sb ({ends_sum})"))
        }
        Checkpointing::Every(every) => {
            let segments = u128::from(model.layers.div_ceil(every.max(1)));
            let every = u128::from(every.min(model.layers));
            let share = all * every / u128::from(model.layers.max(1));
            let formula = format!("⌈L/{every}⌉ {}sbh + sb ({ends_sum}) + {every} ({one})", model.residual_bytes());
            let casts = cast_layers * every / u128::from(model.layers.max(1));
            (segments * stream, share, casts, formula)
        }
    };
    let logits = Sum::default().plus(1, &[Seq, Batch, Vocab]).value(model);
    let logits = if model.share.has_head { logits } else { 0 };
    let e = u128::from(model.precision.element());
    // The loss is computed in 32 bits: a copy of the logits, unless they have them, and the logarithmic softmax, which is kept.
    let copied = if e == 4 { 0 } else { 4 * logits };
    let softmax = 4 * logits;
    // The widest operation of a layer's backward pass has the gradients of its operands.
    let wide = u128::from(mlp_element(model)) * u128::from(model.ffn);
    let working = (u128::from(model.mlp.widening()) + 1) * tokens * wide + 2 * stream;
    let kept_casts = cast_head + if segment > 0 { 0 } else { cast_layers };
    let gradient = u128::from(model.trained_element()) * u128::from(model.vocab) * u128::from(model.hidden);
    let head = if model.share.has_head && model.lora.is_none() { gradient } else { 0 };
    StepBytes {
        forward: kept + ends + cast_layers + cast_head + softmax + copied + e * logits,
        loss: kept + ends + kept_casts + 3 * softmax,
        last_layer: kept + segment + in_segment + working + head + if segment > 0 { 0 } else { cast_layers },
        first_layer: if segment > 0 { segment + in_segment } else { all / u128::from(model.layers.max(1)) } + working,
        activations: kept + ends + segment,
        logits: 3 * softmax,
        formula,
    }
}

impl Model {
    /// Returns the bytes of a number in the residual stream: `torch.autocast` leaves sums in 32 bits.
    pub(super) fn residual_bytes(&self) -> u64 {
        if self.precision == Precision::Autocast { WIDE } else { self.precision.element() }
    }
}

/// Returns the bytes of cached keys and values for each token, in all layers: `2eLkd`, or one latent vector a layer.
pub(super) fn cached(model: &Model) -> Option<Sum> {
    let latent = model.details.latent?;
    Some(Sum::default().plus(model.precision.element() * (latent.key + latent.rope), &[Layers]))
}
