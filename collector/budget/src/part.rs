//! A use of memory.

use serde::Serialize;

/// A use of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Part {
    /// The weights that the model computes with.
    Weights,
    /// Low-rank adapters.
    Adapters,
    /// 32-bit copies of the weights.
    MasterWeights,
    /// 16-bit copies of the weights, for a step.
    CastWeights,
    /// Gradients of the weights.
    Gradients,
    /// What data-parallel devices exchange gradients through.
    GradientBuckets,
    /// The optimizer's state between steps.
    OptimizerState,
    /// What the forward pass keeps for the backward pass, and what is recomputed.
    Activations,
    /// The output layer and the loss.
    Logits,
    /// Temporary memory of the optimizer's step.
    OptimizerStep,
    /// Cached keys and values.
    KvCache,
    /// Weights of other devices, while a layer is computed with them.
    GatheredWeights,
    /// Gradients of a layer, before each device keeps its part of them.
    LayerGradients,
    /// Temporary memory of operations, and input.
    Working,
}

impl Part {
    /// All parts, in the order of their numbers.
    pub const ALL: [Self; 14] = [
        Self::Weights,
        Self::Adapters,
        Self::MasterWeights,
        Self::CastWeights,
        Self::Gradients,
        Self::GradientBuckets,
        Self::OptimizerState,
        Self::Activations,
        Self::Logits,
        Self::OptimizerStep,
        Self::KvCache,
        Self::GatheredWeights,
        Self::LayerGradients,
        Self::Working,
    ];

    /// Returns the name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::MasterWeights => "master weights",
            Self::CastWeights => "16-bit copies",
            Self::Gradients => "gradients",
            Self::OptimizerState => "optimizer state",
            Self::Activations => "activations",
            Self::Logits => "logits and loss",
            Self::OptimizerStep => "optimizer step",
            Self::KvCache => "KV cache",
            Self::Working => "working memory",
            Self::Adapters => "adapters",
            Self::GradientBuckets => "gradient buckets",
            Self::GatheredWeights => "gathered weights",
            Self::LayerGradients => "layer's gradients",
        }
    }
}
