//! Workloads: programs whose use of memory is worth looking at, written once and run on a simulated or real device.
//!
//! ```text
//! workload (what happens) ─► job (tensors, frames, streams, clock) ─► allocator ─► device
//!                             └► snapshot ─► outcome (the report), a file, the page's sample
//! ```

mod call_site;
mod job;
mod monitor;
mod outcome;
mod params;
mod programs;
pub mod sample;
mod setup;
mod sites;
mod transformer;
mod workload;

pub use job::{ClockedSim, Device, JobClock, JobError, Pacer, PartUse, StopSignal, Watch};
pub use job::{MemoryWatch, RecordingHeading, RecordingOutput, RunControl};
pub use outcome::{Heading, Level, Outcome, Report, run};
pub use params::{ChoiceError, Choices, Param, Values};
pub use setup::Setup;
pub use workload::Workload;
