//! What a training job could do to need less memory: which calls to checkpoint, what to offload, what to free earlier.
//!
//! ```text
//! trace ─► phases ─► scopes: calls of one source line ─┐
//!                 ─► optimizer state, late frees ──────┴► survey ─► candidates ─► edits ─► the exact allocator
//!                                                                        ▲                     │
//!                                                                        └─── plan ◄───────────┘
//! ```
//! A [`Survey`] has the candidates, each with what it costs. A candidate becomes [`whatif::Edit`]s of the job's requests, and the
//! allocator answers the edited requests, so what is said to be saved is reserved memory, with all rounding and fragmentation.
//! [`plan`](fn@plan) adds one candidate after the other until the goal is reached, and takes back what it turns out not to need.
//!
//! A trace has no graph of the computation, so some things are assumed, each so that a plan promises too little:
//! - What a backward pass frees was kept for it. What lives longer has a name in the program, which no checkpoint takes away.
//! - What a call keeps for the backward pass is freed when the call returns, though checkpointing frees most of it earlier.
//! - The result of a call is what outlives it without being kept for the backward pass; if nothing does, it is what the backward
//!   pass frees first. It stays, since the next call takes it.
//! - A call is recomputed whole, its result too, once the backward pass is done with the call after it.
//! - What is offloaded is back before the backward pass of its call begins.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod call;
mod candidate;
mod cost;
mod earlier;
mod goal;
mod missing;
mod paste;
mod phases;
mod repetition;
mod scope;
mod scopes;
mod search;
mod state;
mod survey;

pub use candidate::{Candidate, Kind};
pub use cost::{Cost, PCIE_BYTES_PER_SECOND};
pub use goal::Goal;
pub use missing::Missing;
pub use search::{Measure, Plan, Trial, plan};
pub use survey::Survey;

#[cfg(test)]
mod tests;
