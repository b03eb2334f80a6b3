//! Workloads: programs with memory stories worth looking at, written once and run on a simulated device or a real one.
//!
//! ```text
//! story (what happens) ─► job (tensors, frames, streams, clock) ─► shared::allocator ─► device
//!                          └► snapshot ─► outcome (the report), a file, the page's sample
//! ```

mod job;
mod outcome;
mod params;
pub mod sample;
mod sites;
mod stories;
mod story;
mod transformer;

pub use job::{ClockedSim, Device, Pace, PartUse, Recording, RecordingHeading, Stop, Watch};
pub use outcome::{Heading, Level, Outcome, Report, run, run_model};
pub use params::{ChoiceError, Choices, Param, Values};
pub use story::{Setup, Story};
