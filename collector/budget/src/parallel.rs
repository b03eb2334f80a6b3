//! How a model is divided among devices, and what one of them has.
//!
//! The share of a device is a model of its own, with fewer heads, a narrower MLP, fewer layers or fewer experts. The formulas
//! of a share are those of any model, with its numbers.

use serde::Serialize;

use super::method::Checkpointing;
use super::model::Model;
use super::shape::Experts;

/// How a model is divided among devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Parallel {
    /// Devices that train on different data.
    pub data: u64,
    /// What the data-parallel devices divide among themselves: 1 optimizer state and master weights, 2 gradients too, 3
    /// weights too (ZeRO, Rajbhandari et al. 2020); 0 for nothing.
    pub zero: u8,
    /// Devices among which each matrix is divided (Shoeybi et al. 2019).
    pub tensor: u64,
    /// Whether the tensor-parallel devices divide the tokens too where matrices are not divided (Korthikanti et al. 2022).
    pub sequence: bool,
    /// Stages of layers (Narayanan et al. 2021), in the order "one forward, one backward".
    pub pipeline: u64,
    /// Batches that are run forward and backward before the optimizer's step.
    pub micro_batches: u64,
    /// Devices among which the experts are divided (Lepikhin et al. 2020). They are some of the data-parallel ones.
    pub expert: u64,
}

/// A device's share of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Devices among which the tokens of the residual stream are divided.
    pub tokens: u64,
    /// Whether the device has the embedding.
    pub has_embedding: bool,
    /// Whether the device has the output layer.
    pub has_head: bool,
    /// Batches whose activations are held at once.
    pub in_flight: u64,
    /// All experts of a layer, if the device has only some of them.
    pub routed: Option<u64>,
}

impl Parallel {
    /// One device.
    pub const ONE: Self =
        Self { data: 1, zero: 0, tensor: 1, sequence: false, pipeline: 1, micro_batches: 1, expert: 1 };

    /// Returns the number of devices.
    pub fn devices(self) -> u64 {
        self.data.saturating_mul(self.tensor).saturating_mul(self.pipeline)
    }

    /// Returns whether devices have different weights, before ZeRO divides them.
    pub fn divides_weights(self) -> bool {
        self.tensor > 1 || self.pipeline > 1 || self.expert > 1
    }

    /// Returns the devices that have the same experts.
    pub(super) fn expert_data(self) -> u64 {
        (self.data / self.expert.max(1)).max(1)
    }
}

impl Share {
    /// All of a model.
    pub const WHOLE: Self = Self { tokens: 1, has_embedding: true, has_head: true, in_flight: 1, routed: None };
}

/// A problem with the numbers of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParallelError {
    /// A number is not a multiple of another.
    #[error("{0} ({1}) must be a multiple of {2} ({3})")]
    Multiple(&'static str, u64, &'static str, u64),
    /// There is no such stage of ZeRO.
    #[error("zero must be between 0 and 3")]
    Zero,
    /// ZeRO needs devices to divide among.
    #[error("zero {0} divides among data-parallel devices: data must be more than 1")]
    ZeroAlone(u8),
    /// Sequence parallelism needs tensor parallelism.
    #[error("sequence-parallel divides the tokens among tensor-parallel devices: tensor must be more than 1")]
    SequenceAlone,
    /// The experts' tokens are divided otherwise.
    #[error("sequence-parallel is not planned for models with experts")]
    SequenceOfExperts,
    /// There are no experts.
    #[error("expert-parallel divides experts, and the model has none")]
    NoExperts,
    /// The number of weights says nothing about the layers.
    #[error("params says nothing about single matrices, which {0} needs: describe the shape")]
    Params(&'static str),
}

impl Parallel {
    /// Checks that a model can be divided in this way.
    pub(super) fn check(self, model: &Model) -> Result<(), ParallelError> {
        let multiple = |name, number: u64, of, divisor: u64| match number.is_multiple_of(divisor) {
            true => Ok(()),
            false => Err(ParallelError::Multiple(name, number, of, divisor)),
        };
        multiple("heads", model.heads, "tensor", self.tensor)?;
        multiple("kv-heads", model.kv_heads, "tensor", self.tensor)?;
        multiple("ffn", model.ffn, "tensor", self.tensor)?;
        multiple("layers", model.layers, "pipeline", self.pipeline)?;
        if self.zero > 3 {
            return Err(ParallelError::Zero);
        }
        if self.zero > 0 && self.data == 1 {
            return Err(ParallelError::ZeroAlone(self.zero));
        }
        if self.sequence {
            if self.tensor == 1 {
                return Err(ParallelError::SequenceAlone);
            }
            if model.experts.is_some() {
                return Err(ParallelError::SequenceOfExperts);
            }
            multiple("hidden", model.hidden, "tensor", self.tensor)?;
        }
        if self.expert > 1 {
            let experts = model.experts.ok_or(ParallelError::NoExperts)?;
            multiple("experts", experts.count, "expert-parallel", self.expert)?;
            multiple("data", self.data, "expert-parallel", self.expert)?;
        }
        match (model.params, self.divides_weights()) {
            (Some(_), true) => Err(ParallelError::Params("dividing a model")),
            (Some(_), false) if model.quantization.is_some() => Err(ParallelError::Params("quantisation")),
            _ => Ok(()),
        }
    }
}

impl Model {
    /// Returns the shares of the devices that need most: of the first stage and of the last. Those between hold the
    /// activations of fewer batches than the first, and neither embedding nor output layer.
    pub fn shares(&self) -> Vec<Self> {
        match self.parallel.pipeline {
            1 => vec![self.share(0)],
            stages => vec![self.share(0), self.share(stages - 1)],
        }
    }

    /// Returns the share of a device on a stage.
    fn share(&self, stage: u64) -> Self {
        let Parallel { tensor, sequence, pipeline, micro_batches, expert, .. } = self.parallel;
        let divided = |number: u64| number / tensor.max(1);
        let layers = self.layers / pipeline.max(1);
        let is_narrower = tensor > 1;
        let share = Share {
            tokens: if sequence { tensor } else { 1 },
            has_embedding: stage == 0,
            has_head: stage + 1 >= pipeline,
            // In "one forward, one backward", a stage runs ahead of the last one by the stages between them.
            in_flight: pipeline.saturating_sub(stage).min(micro_batches).max(1),
            routed: self.experts.filter(|_| expert > 1).map(|experts| experts.count),
        };
        Self {
            layers,
            heads: divided(self.heads),
            kv_heads: divided(self.kv_heads),
            head_dim: if is_narrower { Some(self.head_width()) } else { self.head_dim },
            ffn: divided(self.ffn),
            // Megatron-LM pads the vocabulary to a multiple.
            vocab: self.vocab.div_ceil(tensor.max(1)),
            experts: self.experts.map(|experts| Experts { count: experts.count / expert.max(1), ..experts }),
            checkpointing: match self.checkpointing {
                Checkpointing::Every(every) => Checkpointing::Every(every.min(layers)),
                Checkpointing::None => Checkpointing::None,
            },
            share,
            ..*self
        }
    }

    /// Returns the numbers of the residual stream that a device holds for each token, on average.
    pub fn residual_width(&self) -> u64 {
        self.hidden / self.share.tokens.max(1)
    }

    /// Returns the experts that the router chooses among.
    pub fn routed_experts(&self) -> u64 {
        self.share.routed.or(self.experts.map(|experts| experts.count)).unwrap_or(0)
    }
}
