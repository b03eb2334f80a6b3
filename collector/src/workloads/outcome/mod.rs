//! What a run came to: the trace, and the report that a person wants after it.

mod report;
mod text;

pub use report::{Heading, Level, Report};

use shared::allocator::Stats;
use shared::budget::{Model, Part};
use shared::trace::Snapshot;

use super::job::{Device, Ended, Job, PartUse, Recording, Stop, Watch};
use super::params::Choices;
use super::stories;
use super::story::{Setup, Story};
use crate::driver::outside::Outside;
use crate::recorder::RecorderStats;

/// A run that has ended.
#[derive(Debug)]
pub struct Outcome {
    /// Everything that happened, with what was held at the end.
    pub snapshot: Snapshot,
    /// How many events there were: more than the snapshot has, where not all were kept.
    pub events: u64,
    /// The allocator's counters.
    pub stats: Stats,
    /// All of `torch.cuda.memory_stats()`.
    pub memory_stats: Vec<(String, i64)>,
    /// What each part of the program held.
    pub parts: Vec<PartUse>,
    /// What was recorded while it ran, where something was.
    pub recorded: Option<RecorderStats>,
    /// What was held of the device beside the allocator at the end, where others can hold some.
    pub outside: Option<Outside>,
    /// How long the program ran, in microseconds of its own clock.
    pub elapsed_us: i64,
    /// Why it ended before its end, if it did.
    pub stop: Option<Stop>,
    /// What the story has to say beside the trace.
    pub notes: Vec<String>,
}

impl Outcome {
    /// What a part held at most, in requested bytes.
    pub fn part(&self, part: Part) -> u64 {
        self.parts.iter().find(|used| used.part == part).map_or(0, |used| used.peak_bytes)
    }
}

/// Runs a story on a device, watched and recorded where somebody wants it.
pub fn run<D: Device>(
    story: &Story,
    choices: &Choices,
    steps: u64,
    setup: &Setup,
    device: D,
    watch: Option<Watch>,
    recording: Option<Recording>,
) -> Outcome {
    let mut job = setup.on(device).watched(watch).recorded(recording);
    let mut notes = Vec::new();
    let stop = story.tell(&mut job, choices, steps, &mut notes).err();
    finish(job, stop, notes)
}

/// Trains a model for some steps on a device.
pub fn run_model<D: Device>(model: &Model, steps: u64, setup: &Setup, device: D) -> Outcome {
    let mut job = setup.on(device);
    let stop = stories::transformer::train(&mut job, model, steps).err();
    finish(job, stop, Vec::new())
}

fn finish<D: Device>(job: Job<D>, stop: Option<Stop>, notes: Vec<String>) -> Outcome {
    let Ended { mut allocator, snapshot, events, parts, recorded, elapsed_us } = job.end();
    let stats = allocator.stats();
    let reserved = stats.reserved_bytes.all.current.max(0) as u64;
    // A device that no longer answers has failed the run before; there is nothing to add.
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
        stop,
        notes,
    }
}
