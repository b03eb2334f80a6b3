//! The outcome of a run: its trace, and a report of it.

mod report;
mod text;

pub use report::{Heading, Level, Report};

use allocator::Stats;
use budget::Part;
use trace::Snapshot;

use super::job::{Device, Ended, Job, JobError, PartUse, RunControl};
use super::params::Choices;
use super::setup::Setup;
use super::workload::Workload;
use crate::driver::outside::Outside;
use recorder::RecorderStats;

/// A run that has ended.
#[derive(Debug)]
pub struct Outcome {
    /// The events that were kept, and the segments at the end.
    pub snapshot: Snapshot,
    /// Number of events, including those that the snapshot does not have.
    pub events: u64,
    /// The allocator's counters.
    pub stats: Stats,
    /// All of `torch.cuda.memory_stats()`.
    pub memory_stats: Vec<(String, i64)>,
    /// What each part of the program held.
    pub parts: Vec<PartUse>,
    /// The recorder's counters, if the run was recorded.
    pub recorded: Option<RecorderStats>,
    /// What was used of a real device apart from the allocator's memory, at the end.
    pub outside: Option<Outside>,
    /// Duration in microseconds, on the clock of the events.
    pub elapsed_us: i64,
    /// Why the run ended early, if it did.
    pub error: Option<JobError>,
    /// Facts that the trace does not show.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Returns the most requested bytes that a part held at once.
    pub fn part(&self, part: Part) -> u64 {
        self.parts.iter().find(|used| used.part == part).map_or(0, |used| used.peak_bytes)
    }
}

/// Runs a workload on a device.
pub fn run<D: Device>(
    workload: &Workload,
    choices: &Choices,
    steps: u64,
    setup: &Setup,
    device: D,
    control: RunControl,
) -> Outcome {
    let mut job = setup.job(device, control);
    let mut notes = Vec::new();
    let error = workload.run(&mut job, choices, steps, &mut notes).err();
    finish(job, error, notes)
}

fn finish<D: Device>(job: Job<D>, error: Option<JobError>, notes: Vec<String>) -> Outcome {
    let Ended { mut allocator, snapshot, events, parts, recorded, elapsed_us } = job.end();
    let stats = allocator.stats();
    let reserved = stats.reserved_bytes.all.current.max(0) as u64;
    // A device that fails here has failed the run before, so its error is known.
    let outside = allocator.driver_mut().outside(reserved).and_then(Result::ok);
    Outcome {
        stats,
        memory_stats: allocator.memory_stats(),
        snapshot,
        events,
        parts,
        recorded,
        outside,
        elapsed_us,
        error,
        notes,
    }
}
