//! The activations that the forward pass keeps for the backward pass, in bytes.
//!
//! The counts are those of Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models",
//! section 4.1, with the bytes of a number as a variable: `s` tokens, `b` sequences, hidden size `h`, `a` heads, MLP
//! size `f`, `e` bytes a number.

use super::lora::Matrix;
use super::method::{Attention, Implementation};
use super::model::Model;
use super::shape::Block;
use super::sum::Letter::{ActiveExperts, Batch, Ffn, HeadWidth, Heads, Hidden, KvHeads, Rank, Seq, SharedExperts};
use super::sum::Sum;
use super::transformers;

/// Returns the activations of one layer for each token: `8eh + 2ef + 2h` for a GPT with dropout, which with the scores is
/// `sbh (34 + 5as/h)` for 16 bits, `f = 4h` and plain attention (their equation 1). The layer keeps the norms' outputs,
/// queries, keys and values, the attention's output, and the sums of the residual stream: `8eh`, less if queries share
/// keys or if attention and MLP are parallel. Two dropout masks of a byte each: `2h`.
///
/// A plain MLP keeps its intermediate result before and after the activation: `2ef`. A gated one keeps the results of two
/// matrices, of the activation function, and of the multiplication: `4ef`. Each active expert keeps that much, its input
/// and its result: `A (2eh + 4ef)`, however the router spreads the tokens. The router keeps 32-bit probabilities of all
/// experts, and a 32-bit weight and a 64-bit index of each active one: `4E + 12A`.
///
/// Frozen matrices need no input for their gradients, so that the outputs of norms and the MLP's last product are kept only
/// for adapters. Each adapter keeps what is between its two matrices: `er`.
pub(super) fn token_activations(model: &Model) -> Sum {
    let e = model.precision.element();
    let residual = model.residual_letter();
    let mut sum = Sum::default().plus(e * (kept_norms(model) + model.block.sums()), &[residual]);
    let (query, key) = (model.query_letters(), model.key_letters());
    // Queries and the attention's output; keys and values.
    sum = sum.plus(2 * e, query).plus(2 * e, key);
    let product = u64::from(model.keeps_input_of(&[Matrix::Down]));
    let wide = e * (model.mlp.kept() - 1 + product);
    let (outside, inside) = model.adapters_passed();
    sum = match model.experts {
        None => sum.plus(wide, &[Ffn]).plus(e * (outside + inside), &[Rank]),
        Some(experts) => {
            let input = u64::from(model.keeps_input_of(&[Matrix::Gate, Matrix::Up]));
            let shared = u64::from(experts.shared > 0);
            sum.plus((1 + input) * e, &[ActiveExperts, Hidden])
                .plus(wide, &[ActiveExperts, Ffn])
                .plus(shared * wide, &[SharedExperts, Ffn])
                .plus(4, &[model.routed_letter()])
                .plus(12, &[ActiveExperts])
                .plus(e * outside, &[Rank])
                .plus(e * inside, &[ActiveExperts, Rank])
                .plus(shared * e * inside, &[SharedExperts, Rank])
        }
    };
    sum.plus_apart(if model.dropout { 2 } else { 0 }, &[residual])
}

/// Returns how many outputs of a layer's norms are kept.
fn kept_norms(model: &Model) -> u64 {
    let attention = model.keeps_input_of(&[Matrix::Query, Matrix::Key, Matrix::Value, Matrix::Fused]);
    // A router reads the norm's output too, and keeps it if it is trained. Shared experts read it like a single MLP.
    let reads_norm = model.experts.is_none_or(|experts| experts.shared > 0 || model.lora.is_none());
    let mlp = reads_norm && model.keeps_input_of(&[Matrix::Gate, Matrix::Up]);
    match model.block {
        Block::ParallelOneNorm => u64::from(attention || mlp),
        Block::Sequential | Block::Parallel => u64::from(attention) + u64::from(mlp),
    }
}

/// Returns what attention keeps of the scores of one layer. Plain attention keeps the softmax of all scores, and with
/// dropout its mask and result: `(2e + 1) as²b`. Tiled attention keeps one 32-bit number for each row of them instead:
/// `4asb`.
pub(super) fn scores(model: &Model) -> Sum {
    let e = model.precision.element();
    match (model.attention, model.dropout) {
        (Attention::Flash, _) => Sum::default().plus(4, &[Heads, Seq, Batch]),
        (Attention::Plain, false) => Sum::default().plus(e, &[Heads, Seq, Seq, Batch]),
        (Attention::Plain, true) => Sum::default().plus(2 * e + 1, &[Heads, Seq, Seq, Batch]),
    }
}

/// Returns the most that one layer holds for each token if nothing is kept: while attention runs, or while the MLP does.
/// Of experts, one runs at a time, with every token at most.
pub(super) fn token_working(model: &Model) -> Sum {
    let e = model.precision.element();
    let attention =
        Sum::default().plus(2 * e, &[Hidden]).plus(2 * e, model.query_letters()).plus(2 * e, model.key_letters());
    // The input, the norm's output, and in an expert its input and the sum of all experts' results. The last operation of
    // a gated MLP has two operands and a result, the activation function one operand.
    let wide = e * (model.mlp.widening() + 1);
    // Transformers' layers hold their input, the sum after attention, the norm's output and its input.
    let is_eager = model.implementation == Implementation::Transformers;
    let narrow = if is_eager || model.experts.is_some() { 4 * e } else { 2 * e };
    let mlp = match model.experts {
        Some(_) if is_eager => running_experts(model),
        _ => Sum::default().plus(wide, &[Ffn]),
    };
    let mlp = mlp.plus(narrow, &[Hidden]);
    if mlp.value(model) >= attention.value(model) { mlp } else { attention }
}

/// Returns what Transformers' experts hold, which run at once (`grouped_mm`): copies of their tokens, the results of the widening
/// matrices as one, of the activation function and of the multiplication; or what is between, their results, these weighted, and
/// these in the order of the tokens. DeepSeek's weights have 32 bits, and so has what they weight.
fn running_experts(model: &Model) -> Sum {
    let e = model.precision.element();
    let weighted = if model.details.latent.is_some() { 4 } else { e };
    let widening =
        Sum::default().plus(e * (model.mlp.widening() + 2), &[ActiveExperts, Ffn]).plus(e, &[ActiveExperts, Hidden]);
    let ending = Sum::default().plus(2 * e, &[ActiveExperts, Ffn]).plus(e + 2 * weighted, &[ActiveExperts, Hidden]);
    if widening.value(model) >= ending.value(model) { widening } else { ending }
}

/// Returns the bytes of one layer's activations: those of its tokens, and the scores.
pub fn layer_activations(model: &Model) -> u128 {
    let tokens = u128::from(model.seq) * u128::from(model.batch);
    token_activations(model).value(model) * tokens + scores(model).value(model)
}

/// Returns the bytes of all cached keys and values. A layer whose attention sees only the last tokens of a sequence caches no
/// others, but in Transformers: there the forward pass over a prompt keeps all of them, and only a part is in use.
pub(super) fn cached_bytes(model: &Model) -> u128 {
    let tokens = u128::from(model.kv_tokens);
    let all = cached(model).value(model) * tokens;
    let windows = model.details.window.filter(|_| model.implementation == Implementation::Fused);
    let Some(window) = windows else { return all };
    let seen = u128::from(window.tokens) * u128::from(model.batch);
    let layers = u128::from(window.layers.min(model.layers));
    all - all / u128::from(model.layers.max(1)) * layers * tokens.saturating_sub(seen) / tokens.max(1)
}

/// Returns the bytes of cached keys and values for each token, in all layers: `2eLkd`.
pub(super) fn cached(model: &Model) -> Sum {
    if let Some(latent) = transformers::cached(model) {
        return latent;
    }
    Sum::default().plus(2 * model.precision.element(), &[super::sum::Letter::Layers, KvHeads, HeadWidth])
}

/// Returns the activations before the first layer and after the last: the outputs of the embedding and of the last
/// norm, `2esbh`, and the embedding's dropout mask, `sbh` (their section 4.3). A stage of a pipeline has its input instead
/// of the embedding's output, and the last norm is on the last stage. A frozen output layer needs no input.
pub fn embedding_activations(model: &Model) -> u128 {
    let (norm, mask) = ends(model);
    (u128::from(model.precision.element()) * u128::from(1 + norm) + u128::from(mask)) * stream(model)
}

/// Returns whether the last norm's output is kept, and whether the embedding's dropout mask is.
pub(super) fn ends(model: &Model) -> (u64, u64) {
    let norm = model.share.has_head && model.lora.is_none();
    (u64::from(norm), u64::from(model.dropout && model.share.has_embedding))
}

/// Returns the inputs of all segments of `every` layers, and the last one's output: `⌈L/k⌉ esbh`.
pub fn segment_inputs(model: &Model, every: u64) -> u128 {
    u128::from(model.precision.element()) * stream(model) * u128::from(model.layers.div_ceil(every.max(1)))
}

/// Returns the memory of the output layer and the loss: the logits, which the caller holds; their logarithmic softmax,
/// which is kept for the backward pass; and either the logits in the loss function's precision or the gradient of that
/// softmax, which never exist at once. In mixed precision this is `sbv (e + 2 × 4)`. Korthikanti et al. count only the
/// 32-bit one that is kept, `4sbv`.
pub fn logits(model: &Model) -> u128 {
    let tokens = u128::from(model.seq) * u128::from(model.batch) * u128::from(model.vocab);
    tokens * u128::from(model.precision.element() + 2 * model.precision.loss())
}

/// Returns the numbers in the residual stream: `sbh`, or `sbg` if tokens are divided.
pub(super) fn stream(model: &Model) -> u128 {
    u128::from(model.seq) * u128::from(model.batch) * u128::from(model.residual_width())
}

#[cfg(test)]
mod tests {
    use super::super::method::{Attention, Precision};
    use super::super::model::tests::GPT3;
    use super::super::shape::{self, Block, Mlp};
    use super::*;

    #[test]
    fn a_layer_of_gpt3_is_equation_1() {
        // sbh (34 + 5as/h) with s = 2048, b = 1, h = 12288, a = 96: 25165824 × (34 + 80).
        assert_eq!(layer_activations(&GPT3), 25_165_824 * 114);
        let without = Model { dropout: false, ..GPT3 };
        assert_eq!(layer_activations(&without), 25_165_824 * (32 + 2 * 16));
        let flash = Model { attention: Attention::Flash, ..without };
        assert_eq!(layer_activations(&flash), 25_165_824 * 32 + 4 * 96 * 2_048);
        let wide = Model { precision: Precision::Fp32, ..flash };
        assert_eq!(layer_activations(&wide), 25_165_824 * 64 + 4 * 96 * 2_048);
    }

    #[test]
    fn a_layer_of_other_shapes_by_hand() {
        let tokens = 2_048_u128;
        let rows = 4 * 96 * tokens;
        let base = Model { attention: Attention::Flash, dropout: false, ..GPT3 };
        let (h, f) = (12_288_u128, 49_152_u128);
        let experts = shape::Experts { count: 8, active: 2, shared: 1 };
        let cases = [
            (Model { mlp: Mlp::Gated, ..base }, tokens * (16 * h + 8 * f), "16h + 8f"),
            (Model { kv_heads: 8, ..base }, tokens * (12 * h + 4 * 8 * 128), "12h + 4kd + 4f"),
            (Model { head_dim: Some(64), ..base }, tokens * (8 * h + 8 * 96 * 64), "8h + 8ad + 4f"),
            (Model { block: Block::Parallel, ..base }, tokens * (14 * h), "14h + 4f"),
            (Model { block: Block::ParallelOneNorm, ..base }, tokens * (12 * h), "12h + 4f"),
            (
                Model { mlp: Mlp::Gated, experts: Some(experts), ..base },
                tokens * (16 * h + 2 * (4 * h + 8 * f) + 8 * f + 4 * 8 + 12 * 2),
                "16h + 4Ah + 8Af + 8Sf + 4E + 12A",
            ),
        ];
        for (model, want, formula) in cases {
            let plain = if model.mlp == Mlp::Plain { tokens * 4 * f } else { 0 };
            assert_eq!(layer_activations(&model), want + plain + rows, "{formula}");
            assert_eq!(token_activations(&model).to_string(), formula);
        }
    }

    #[test]
    fn a_layer_of_inference_holds_its_widest_operation() {
        let cases = [
            (GPT3, "4f + 4h"),
            (Model { mlp: Mlp::Gated, ..GPT3 }, "6f + 4h"),
            (Model { ffn: 1_024, ..GPT3 }, "12h"),
            (Model { experts: Some(shape::Experts { count: 8, active: 2, shared: 0 }), ..GPT3 }, "4f + 8h"),
        ];
        for (model, want) in cases {
            assert_eq!(token_working(&model).to_string(), want);
        }
    }

    #[test]
    fn memory_outside_of_the_layers_follows_the_formulas() {
        assert_eq!(embedding_activations(&GPT3), 25_165_824 * 5);
        assert_eq!(segment_inputs(&GPT3, 1), 25_165_824 * 2 * 96);
        assert_eq!(segment_inputs(&GPT3, 5), 25_165_824 * 2 * 20);
        assert_eq!(logits(&GPT3), 2_048 * 51_200 * 10);
        assert_eq!(logits(&Model { precision: Precision::Bf16, ..GPT3 }), 2_048 * 51_200 * 6);
    }
}
