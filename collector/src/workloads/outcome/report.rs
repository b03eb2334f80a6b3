//! The report of a run: one structure, as JSON for programs and as text for people.

use std::collections::BTreeMap;

use serde::Serialize;
use shared::allocator::{Stat, Stats};
use shared::analysis::folding::BestFrames;
use shared::analysis::oom::{self, OutOfMemory};
use shared::analysis::report::FileReport;
use shared::analysis::site::label;
use shared::analysis::usage::Usage;
use shared::finding::Finding;
use shared::import::{Encoding, Format, Imported};
use shared::index::Index;
use shared::replay::{Replay, Replayed};
use shared::totals::Totals;
use shared::trace::DeviceTrace;
use shared::units::Count;

use super::cause::{self, Cause, CauseKind};
use super::growth::{self, Growth};
use super::{Outcome, PartUse, Stop};
use crate::driver::outside::Outside;

/// Bytes at the end of a run and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Level {
    /// At the end.
    pub now: u64,
    /// At most.
    pub peak: u64,
}

impl From<Stat> for Level {
    fn from(stat: Stat) -> Self {
        Self { now: stat.current.max(0) as u64, peak: stat.peak.max(0) as u64 }
    }
}

/// How torn what is cached is: when the first request failed, or else at the end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fragmentation {
    /// Reserved and in no active block, in bytes.
    pub cached_bytes: u64,
    /// Pieces of it.
    pub gaps: u32,
    /// The largest piece in bytes.
    pub largest_gap: u64,
    /// Share of the cached bytes that lies outside the largest piece: 0 for a single piece, near 1 for dust.
    pub share: f64,
}

impl From<Totals> for Fragmentation {
    fn from(totals: Totals) -> Self {
        let Totals { cached, gaps, largest_gap, .. } = totals;
        let share = if cached == 0 { 0.0 } else { 1.0 - largest_gap as f64 / cached as f64 };
        Self { cached_bytes: cached, gaps, largest_gap, share }
    }
}

/// All that is reported of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was run.
    pub name: String,
    /// What was chosen about it.
    pub choices: BTreeMap<String, String>,
    /// `sim` or `cuda`.
    pub driver: String,
    /// Bytes of the device.
    pub capacity_bytes: u64,
    /// The release that the allocator decided as.
    pub torch: &'static str,
    /// The settings string.
    pub conf: String,
    /// Where chance began.
    pub seed: u64,
    /// Microseconds of the program's own clock.
    pub elapsed_us: i64,
    /// Events of the run.
    pub events: u64,
    /// The error that ended it, in PyTorch's words.
    pub error: Option<String>,
    /// What the story has to say beside the trace.
    pub notes: Vec<String>,
    /// In live tensors, rounded.
    pub allocated: Level,
    /// Allocated, or freed and waiting for streams.
    pub active: Level,
    /// As requested, of active blocks.
    pub requested: Level,
    /// Taken from the device.
    pub reserved: Level,
    /// Cached pieces of split segments, as PyTorch counts them: no expandable ones.
    pub inactive_split: Level,
    /// Number of those pieces.
    pub inactive_splits: Level,
    /// How torn what is cached is.
    pub fragmentation: Fragmentation,
    /// Requests that gave cached memory back and asked again.
    pub num_alloc_retries: i64,
    /// Requests that failed.
    pub num_ooms: i64,
    /// Calls that took memory from the device.
    pub num_device_alloc: i64,
    /// Calls that gave memory back to it.
    pub num_device_free: i64,
    /// What was held of a real device beside the allocator's memory, at the end.
    pub outside: Option<Outside>,
    /// The likely cause of the trouble, if there was any.
    pub cause: Cause,
    /// What each part of the program held, in requested bytes.
    pub parts: Vec<PartUse>,
    /// What the page finds in the trace.
    pub trace: FileReport,
    /// All of `torch.cuda.memory_stats()`.
    pub memory_stats: BTreeMap<String, i64>,
}

/// How a run was set up, for its report.
#[derive(Clone, Debug)]
pub struct Heading {
    /// What was run.
    pub name: String,
    /// What was chosen about it.
    pub choices: Vec<(String, String)>,
    /// `sim` or `cuda`.
    pub driver: String,
    /// Bytes of the device.
    pub capacity: u64,
    /// The release.
    pub torch: &'static str,
    /// The settings string.
    pub conf: String,
    /// Where chance began.
    pub seed: u64,
}

/// What a cause is derived from.
pub(super) struct Facts<'a> {
    pub(super) stats: &'a Stats,
    pub(super) capacity: u64,
    /// The request that ended the run, or else the first that failed, and how many gaps there were then.
    pub(super) failed: Option<(OutOfMemory, u32)>,
    /// The line that grows most.
    pub(super) growth: Option<(String, Growth)>,
}

impl Facts<'_> {
    pub(super) fn peak_reserved(&self) -> u64 {
        self.stats.reserved_bytes.all.peak.max(0) as u64
    }
}

/// The failure as the process saw it that may take only so much: what the device has free beyond that is not for it.
fn within(failed: OutOfMemory, capacity: u64) -> OutOfMemory {
    let reserved = failed.active.saturating_add(failed.cached);
    OutOfMemory { driver_free: failed.driver_free.min(capacity.saturating_sub(reserved)), ..failed }
}

impl Report {
    /// Reports a run. Its trace is used up: write it before.
    pub fn new(heading: Heading, outcome: Outcome) -> Self {
        let Outcome {
            mut snapshot,
            events,
            stats,
            memory_stats,
            parts,
            recorded: _,
            outside,
            elapsed_us,
            stop,
            mut notes,
        } = outcome;
        let kept: u64 = snapshot.devices.iter().map(|trace| trace.events.len() as u64).sum();
        if kept < events {
            notes.push(format!(
                "What is said of its trace is said of the first {} of {} events; the counters are those of the whole run.",
                Count(kept),
                Count(events)
            ));
        }
        let empty = DeviceTrace::default();
        let (totals, cause) = {
            let traces = std::mem::take(&mut snapshot.devices);
            let trace = traces.first().unwrap_or(&empty);
            let replay = Replay::build(trace, &mut snapshot.tags, &snapshot.settings);
            let ooms = oom::positions(trace);
            // What ended the run is the last of all; what was caught is told of by the first.
            let position = match &stop {
                Some(Stop::OutOfMemory(_)) => ooms.last(),
                _ => ooms.first(),
            };
            let position = position.map(|(position, _)| *position);
            let end = position.unwrap_or_else(|| replay.positions());
            let totals = replay.state_at(end).totals;
            let failed = position
                .and_then(|position| OutOfMemory::at(trace, &snapshot.tags, &replay, position))
                .map(|failed| (within(failed, heading.capacity), totals.gaps));
            let peak = Usage::build(Replayed { trace, tags: &snapshot.tags, replay: &replay }).peak_bytes;
            let telling = BestFrames::build(&snapshot.symbols);
            let growth = growth::largest(trace, &replay, end, peak)
                .map(|growth| (label(&snapshot.symbols, &telling, growth.stack), growth));
            let facts = Facts { stats: &stats, capacity: heading.capacity, failed, growth };
            let cause = match &stop {
                Some(Stop::OutOfMemory(_) | Stop::Interrupted) | None => cause::cause(&facts),
                Some(other) => Cause { kind: CauseKind::Driver, message: format!("{other}.") },
            };
            snapshot.devices = traces;
            (totals, cause)
        };
        let format = Format { encoding: Encoding::Pickle, compression: None };
        let imported = Imported { format, protocol: None, snapshot, findings: Vec::new(), header: None };
        Self {
            trace: FileReport::new(heading.name.clone(), imported),
            name: heading.name,
            choices: heading.choices.into_iter().collect(),
            driver: heading.driver,
            capacity_bytes: heading.capacity,
            torch: heading.torch,
            conf: heading.conf,
            seed: heading.seed,
            elapsed_us,
            events,
            error: stop.map(|stop| stop.to_string()),
            notes,
            allocated: stats.allocated_bytes.all.into(),
            active: stats.active_bytes.all.into(),
            requested: stats.requested_bytes.all.into(),
            reserved: stats.reserved_bytes.all.into(),
            inactive_split: stats.inactive_split_bytes.all.into(),
            inactive_splits: stats.inactive_split.all.into(),
            fragmentation: totals.into(),
            num_alloc_retries: stats.num_alloc_retries,
            num_ooms: stats.num_ooms,
            num_device_alloc: stats.num_device_alloc,
            num_device_free: stats.num_device_free,
            outside,
            cause,
            parts,
            memory_stats: memory_stats.into_iter().collect(),
        }
    }

    /// What was found in the trace beside the failed requests, which the cause tells of.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.trace.findings.iter()
    }
}
