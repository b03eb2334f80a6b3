//! The differences between kinds of transformers: the MLP, the norms, the order of a layer's halves, biases and
//! experts.

use serde::Serialize;

/// The kind of MLP in each layer, or of each expert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mlp {
    /// Two matrices with an activation function between them (Vaswani et al. 2017).
    #[default]
    Plain,
    /// Three matrices: the activation of one's result is multiplied with the other's (SwiGLU, Shazeer 2020).
    Gated,
}

impl Mlp {
    /// Returns the number of matrices that widen the residual stream.
    pub fn widening(self) -> u64 {
        match self {
            Self::Plain => 1,
            Self::Gated => 2,
        }
    }

    /// Returns how many results of the MLP's width are kept for the backward pass: those of the widening matrices, of the
    /// activation function, and of the multiplication.
    pub fn kept(self) -> u64 {
        match self {
            Self::Plain => 2,
            Self::Gated => 4,
        }
    }
}

/// The kind of norm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Norm {
    /// `LayerNorm`: a weight and a bias for each number of the residual stream (Ba et al. 2016).
    #[default]
    Layer,
    /// `RMSNorm`: a weight for each number (Zhang and Sennrich 2019).
    Rms,
    /// `RMSNorm` whose weights are applied in 32 bits (Gemma).
    GemmaRms,
}

impl Norm {
    /// Returns the number of tensors, each as wide as the residual stream.
    pub fn tensors(self) -> u64 {
        match self {
            Self::Layer => 2,
            Self::Rms | Self::GemmaRms => 1,
        }
    }
}

/// How attention and MLP of a layer follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// The MLP reads the sum of the layer's input and the attention's result.
    #[default]
    Sequential,
    /// Attention and MLP read the layer's input, each through a norm of its own (GPT-NeoX, Black et al. 2022).
    Parallel,
    /// Attention and MLP read the layer's input through one norm (GPT-J, Falcon 7B, Phi).
    ParallelOneNorm,
}

impl Block {
    /// Returns the number of norms in a layer.
    pub fn norms(self) -> u64 {
        match self {
            Self::Sequential | Self::Parallel => 2,
            Self::ParallelOneNorm => 1,
        }
    }

    /// Returns the number of sums of the residual stream in a layer.
    pub fn sums(self) -> u64 {
        match self {
            Self::Sequential => 2,
            Self::Parallel | Self::ParallelOneNorm => 1,
        }
    }
}

/// Which linear layers have biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Biases {
    /// Queries, keys and values.
    pub qkv: bool,
    /// The projection of the attention's result.
    pub projection: bool,
    /// The MLP, or each expert.
    pub mlp: bool,
    /// The output layer.
    pub head: bool,
}

impl Biases {
    /// Biases in all linear layers but the output layer, as in GPT-2.
    pub const ALL: Self = Self { qkv: true, projection: true, mlp: true, head: false };
    /// No biases.
    pub const NONE: Self = Self { qkv: false, projection: false, mlp: false, head: false };
}

/// A mixture of experts, which takes the place of each layer's MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Experts {
    /// Experts in a layer among which the router chooses.
    pub count: u64,
    /// Experts that process each token.
    pub active: u64,
    /// Experts in a layer that process every token.
    pub shared: u64,
}
