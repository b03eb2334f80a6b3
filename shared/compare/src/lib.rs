//! What changed from one run to another.
//!
//! ```text
//! run A ─► profile ─┐
//!                   ├─► compare ─► RunComparison ─► gate
//! run B ─► profile ─┘
//! ```
//! A [profile](profile()) is a run at one moment in brief: its memory, its lines, and under which conditions it ran. Two of
//! them are compared without their traces, so that a profile can come from another process, and be kept. For a flame graph of the
//! difference, the [stacks](run_stacks) of one run are [merged](MergedStacks) into those of the other.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod comparison;
mod conditions;
pub mod contract;
pub mod gate;
mod pairing;
mod profile;
mod sentence;
mod stacks;

pub use comparison::{Options, compare, middle};
pub use profile::{Run, profile};
pub use stacks::{MergedStacks, run_stacks};
