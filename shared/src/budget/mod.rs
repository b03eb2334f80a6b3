//! What a transformer's training step needs of memory, by arithmetic alone: the plan before the first run.
//!
//! A [`Model`] says shape, batch and method; a [`Plan`] says how many bytes each part takes, by which formula and from
//! which source, and at which moment of the step most is held. No allocator is involved: what rounding, caching and
//! fragmentation add shows in a simulation beside it.

mod activations;
mod model;
mod plan;

pub use activations::{embedding_activations, layer_activations, logits, segment_inputs};
pub use model::{Attention, Checkpointing, Model, ModelError, Optimizer, Precision};
pub use plan::{Moment, Part, PartPlan, Plan};
