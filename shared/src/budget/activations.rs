//! The activations that the forward pass keeps for the backward pass, in bytes.
//!
//! The counts are those of Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models",
//! section 4.1, with the bytes of a number as a variable: `s` tokens, `b` sequences, hidden size `h`, `a` heads, MLP
//! size `f`, `e` bytes a number.

use super::model::{Attention, Model};

/// Returns the activations of one layer: `sb (8eh + 2ef + 2h)` and the scores, which is `sbh (34 + 5as/h)` for 16 bits,
/// `f = 4h`, dropout and plain attention (their equation 1). The layer keeps both norms' outputs (2), queries, keys and
/// values (3), the attention's output, and both sums of the residual stream (2): `8eh`; the MLP's intermediate result
/// before and after its activation: `2ef`; two dropout masks of a byte each: `2h`.
///
/// Plain attention keeps the softmax of all scores, and with dropout its mask and result: `(2e + 1) as²b`. Tiled
/// attention keeps one 32-bit number for each row of them instead: `4asb`.
pub fn layer_activations(model: &Model) -> u128 {
    let e = u128::from(model.precision.element());
    let [s, b, h, a, f] = [model.seq, model.batch, model.hidden, model.heads, model.ffn].map(u128::from);
    // Queries, keys and values take less than three times the hidden size if heads share keys.
    let qkv = u128::from(model.qkv_width());
    let masks = if model.dropout { 2 * h } else { 0 };
    let scores = match (model.attention, model.dropout) {
        (Attention::Flash, _) => 4 * a * s * b,
        (Attention::Plain, false) => e * a * s * s * b,
        (Attention::Plain, true) => (2 * e + 1) * a * s * s * b,
    };
    s * b * (5 * e * h + e * qkv + 2 * e * f + masks) + scores
}

/// Returns the activations before the first layer and after the last: the outputs of the embedding and of the last
/// norm, `2esbh`, and the embedding's dropout mask, `sbh` (their section 4.3).
pub fn embedding_activations(model: &Model) -> u128 {
    let mask = u128::from(model.dropout);
    (2 * u128::from(model.precision.element()) + mask) * stream(model)
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

/// Returns the numbers in the residual stream: `sbh`.
pub(super) fn stream(model: &Model) -> u128 {
    u128::from(model.seq) * u128::from(model.batch) * u128::from(model.hidden)
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::GPT3;
    use super::super::model::{Attention, Model, Precision};
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
    fn memory_outside_of_the_layers_follows_the_formulas() {
        assert_eq!(embedding_activations(&GPT3), 25_165_824 * 5);
        assert_eq!(segment_inputs(&GPT3, 1), 25_165_824 * 2 * 96);
        assert_eq!(segment_inputs(&GPT3, 5), 25_165_824 * 2 * 20);
        assert_eq!(logits(&GPT3), 2_048 * 51_200 * 10);
        assert_eq!(logits(&Model { precision: Precision::Bf16, ..GPT3 }), 2_048 * 51_200 * 6);
    }
}
