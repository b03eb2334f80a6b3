//! What some model types have beside the common shape.

use serde::Serialize;

use super::model::Model;
use super::weights::{Linear, Place};

/// What some model types have beside the common shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Details {
    /// Norms of the queries and keys of each head (Qwen 3, Gemma 3).
    pub has_head_norms: bool,
    /// Norms after attention and MLP, beside those before (Gemma 2 and 3).
    pub has_post_norms: bool,
    /// Whether queries, keys and values are one matrix (GPT-2, GPT-NeoX, Falcon, Phi 3).
    pub is_qkv_fused: bool,
    /// Whether the activation function is written as several operations (GPT-2's `gelu_new`), each with a result.
    pub is_activation_composed: bool,
    /// Whether the router has a bias (gpt-oss).
    pub has_router_bias: bool,
    /// Whether each head has a weight that its scores are compared with (gpt-oss).
    pub has_sinks: bool,
    /// The layers whose attention sees only the last tokens.
    pub window: Option<Window>,
    /// Attention through latent vectors (DeepSeek).
    pub latent: Option<Latent>,
    /// First layers with a plain MLP in place of experts (DeepSeek).
    pub dense: Option<DenseLayers>,
}

/// Attention that sees only the last tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    /// The tokens that are seen.
    pub tokens: u64,
    /// The layers that have it.
    pub layers: u64,
}

/// Attention whose queries and keys come from latent vectors (DeepSeek-AI 2024, DeepSeek-V2, section 2.1). The width of a head
/// is that of its queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latent {
    /// The width of the queries' vector; 0 if queries come from the residual stream.
    pub query: u64,
    /// The width of the vector of keys and values, which is what the cache keeps.
    pub key: u64,
    /// The width of the keys' part that carries positions, which the cache keeps too.
    pub rope: u64,
    /// The width of a head's values.
    pub value: u64,
}

/// First layers with a plain MLP in place of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DenseLayers {
    /// The number of layers.
    pub count: u64,
    /// The width of their MLP.
    pub ffn: u64,
}

impl Details {
    /// None of these.
    pub const NONE: Self = Self {
        has_head_norms: false,
        has_post_norms: false,
        is_qkv_fused: false,
        is_activation_composed: false,
        has_router_bias: false,
        has_sinks: false,
        window: None,
        latent: None,
        dense: None,
    };
}

impl Latent {
    /// Returns the linear layers that make queries, keys and values.
    pub(super) fn linears(self, model: &Model) -> Vec<Linear> {
        let (heads, width) = (model.heads, model.head_width());
        let linear = |inputs, outputs, has_bias| Linear::new(Place::Attention, inputs, outputs, has_bias);
        let keys = heads * (width.saturating_sub(self.rope) + self.value);
        let queries = match self.query {
            0 => vec![linear(model.hidden, heads * width, false)],
            latent => {
                vec![linear(model.hidden, latent, model.biases.qkv), linear(latent, heads * width, false)]
            }
        };
        let down = linear(model.hidden, self.key + self.rope, model.biases.qkv);
        queries.into_iter().chain([down, linear(self.key, keys, false)]).collect()
    }

    /// Returns the weights of the latent vectors' norms.
    pub(super) fn norms(self) -> impl Iterator<Item = u64> {
        [self.query, self.key].into_iter().filter(|width| *width > 0)
    }
}
