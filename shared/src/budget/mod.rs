//! The memory of a transformer's training step by arithmetic alone: a plan before the first run.
//!
//! A [`Model`] holds shape, batch and method. A [`Plan`] gives the bytes of each part with formula and source, and the
//! bytes at each moment of the step. No allocator is involved; a simulation shows what rounding, caching and
//! fragmentation add.

mod activations;
mod model;
mod plan;

pub use activations::{embedding_activations, layer_activations, logits, segment_inputs};
pub use model::{Attention, Checkpointing, Model, ModelError, Optimizer, Precision};
pub use plan::{Moment, Part, PartPlan, Plan};
