//! The method of training: number formats, optimizer, attention, checkpointing.

use serde::Serialize;

/// The number formats of weights, gradients, optimizer state and activations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 16-bit weights, gradients and activations, with a 32-bit master copy of the weights and 32-bit optimizer state
    /// (Micikevicius et al. 2018).
    #[default]
    Mixed,
    /// 32-bit weights, gradients and optimizer state, and `torch.autocast` to 16 bits, as Hugging Face's Trainer has it with
    /// `bf16=True` or `fp16=True`. Matrices are copied to 16 bits for the step.
    Autocast,
    /// 32 bits throughout.
    Fp32,
    /// 16 bits throughout, including the optimizer's state.
    Bf16,
}

impl Precision {
    /// Returns the bytes of a number that matrices compute with.
    pub fn element(self) -> u64 {
        match self {
            Self::Mixed | Self::Bf16 | Self::Autocast => 2,
            Self::Fp32 => 4,
        }
    }

    /// Returns the bytes of a weight, and of its gradient.
    pub fn weight(self) -> u64 {
        match self {
            Self::Mixed | Self::Bf16 => 2,
            Self::Fp32 | Self::Autocast => 4,
        }
    }

    /// Returns the bytes of a number of the optimizer's state.
    pub fn state(self) -> u64 {
        match self {
            Self::Mixed | Self::Fp32 | Self::Autocast => 4,
            Self::Bf16 => 2,
        }
    }

    /// Returns the bytes of a weight's master copy; 0 if there is none.
    pub fn master(self) -> u64 {
        match self {
            Self::Mixed => 4,
            Self::Fp32 | Self::Bf16 | Self::Autocast => 0,
        }
    }

    /// Returns the bytes of a weight's copy that matrices compute with; 0 if they compute with the weight itself.
    pub fn cast(self) -> u64 {
        if self == Self::Autocast { 2 } else { 0 }
    }

    /// Returns the bytes of a number in the loss function. In mixed precision, `cross_entropy` of 16-bit logits is
    /// computed in 32 bits.
    pub fn loss(self) -> u64 {
        match self {
            Self::Mixed | Self::Fp32 | Self::Autocast => 4,
            Self::Bf16 => 2,
        }
    }
}

/// Whose modules compute the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Implementation {
    /// Hugging Face's Transformers without `torch.compile`: norms, loss and some activation functions are written as
    /// operations on tensors, partly in 32 bits, and the results of all of them are kept.
    #[default]
    Transformers,
    /// A kernel for each norm and activation function, as in Megatron-LM (Korthikanti et al. 2022).
    Fused,
}

/// The algorithm that updates the weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Optimizer {
    /// Adam or AdamW: two numbers for each weight.
    #[default]
    Adam,
    /// Adam or AdamW in one kernel (`fused=True`): two numbers for each weight, and no temporary memory.
    FusedAdam,
    /// SGD with momentum: one number for each weight.
    Momentum,
    /// Plain SGD: no state.
    Sgd,
    /// No training: no gradients, and nothing is kept for a backward pass.
    Inference,
}

impl Optimizer {
    /// Returns how many numbers are kept for each weight between steps.
    pub fn states(self) -> u64 {
        match self {
            Self::Adam | Self::FusedAdam => 2,
            Self::Momentum => 1,
            Self::Sgd | Self::Inference => 0,
        }
    }
}

/// How attention is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// In tiles, without a matrix of all scores (Dao et al. 2022).
    #[default]
    Flash,
    /// With a matrix of all scores, `seq` by `seq` for each head.
    Plain,
}

/// Which activations are kept for the backward pass, and which are recomputed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkpointing {
    /// Everything is kept.
    #[default]
    None,
    /// The input of every n-th layer is kept, and what is between is recomputed (`torch.utils.checkpoint`). 1 is full
    /// recomputation.
    Every(u64),
}
