//! The memory of a transformer's training step by arithmetic alone: a plan before the first run.
//!
//! A [`Model`] holds shape, batch and method. A [`Plan`] gives the bytes of each part with formula and source, and the
//! bytes at each moment of the step. No allocator is involved; a simulation shows what rounding, caching and
//! fragmentation add.
#![forbid(unsafe_code)]

mod activations;
mod details;
mod held;
mod largest;
mod lora;
mod method;
mod model;
mod parallel;
mod part;
mod plan;
#[cfg(test)]
mod published;
mod quantization;
#[cfg(test)]
mod quantization_tests;
mod shape;
mod sum;
mod transformers;
mod weights;

pub use activations::{embedding_activations, layer_activations, logits, segment_inputs};
pub use details::{DenseLayers, Details, Latent, Window};
pub use held::Numbers;
pub use largest::{LargestBatch, MOST_BATCH, largest_batch};
pub use lora::{Lora, Matrix, TargetError, Targets};
pub use method::{Attention, Checkpointing, Implementation, Optimizer, Precision};
pub use model::{Model, ModelError};
pub use parallel::{Parallel, ParallelError, Share};
pub use part::Part;
pub use plan::{AdapterPlan, DevicePlan, PartPlan, Plan, StepMoment};
pub use quantization::{Block8, Quantization};
pub use shape::{Biases, Block, Experts, Mlp, Norm};
pub use sum::{Letter, Sum};
pub use weights::{Linear, Place};
