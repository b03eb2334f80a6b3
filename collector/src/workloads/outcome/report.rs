//! The report of a run: one structure, as JSON for programs and as text for people.

use std::collections::BTreeMap;

use serde::Serialize;
use shared::allocator::Stat;
use shared::analysis::folding::BestFrames;
use shared::analysis::fragmentation::Fragmentation;
use shared::analysis::oom;
use shared::analysis::report::FileReport;
use shared::analysis::verdict::{Evidence, Verdict, VerdictKind};
use shared::finding::Finding;
use shared::import::{Encoding, Format, Imported};
use shared::index::Index;
use shared::replay::Replay;
use shared::trace::DeviceTrace;
use shared::units::{Count, counted};

use super::{JobError, Outcome, PartUse};
use crate::driver::outside::Outside;

/// Bytes at the end of a run, and their maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Level {
    /// Bytes at the end.
    pub now: u64,
    /// The most bytes at any time.
    pub peak: u64,
}

impl From<Stat> for Level {
    fn from(stat: Stat) -> Self {
        Self { now: stat.current.max(0) as u64, peak: stat.peak.max(0) as u64 }
    }
}

/// The report of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The name of the workload.
    pub name: String,
    /// The values of its parameters.
    pub choices: BTreeMap<String, String>,
    /// `sim` or `cuda`.
    pub driver: String,
    /// Capacity of the device in bytes.
    pub capacity_bytes: u64,
    /// The PyTorch release whose allocator was used.
    pub torch: &'static str,
    /// The settings string.
    pub conf: String,
    /// The random seed.
    pub seed: u64,
    /// Duration in microseconds, on the clock of the events.
    pub elapsed_us: i64,
    /// Number of events.
    pub events: u64,
    /// The error that ended it, in PyTorch's words.
    pub error: Option<String>,
    /// Facts that the trace does not show.
    pub notes: Vec<String>,
    /// Rounded bytes of live tensors.
    pub allocated: Level,
    /// Bytes of blocks that are allocated, or freed and waiting for streams.
    pub active: Level,
    /// Requested bytes of active blocks.
    pub requested: Level,
    /// Bytes taken from the device.
    pub reserved: Level,
    /// Bytes of cached pieces of split segments. Like PyTorch, this does not count expandable segments.
    pub inactive_split: Level,
    /// Number of those pieces.
    pub inactive_splits: Level,
    /// The fragmentation when a request failed, or else at the end.
    pub fragmentation: Fragmentation,
    /// Requests that released cached memory and asked the device again.
    pub num_alloc_retries: i64,
    /// Requests that failed.
    pub num_ooms: i64,
    /// Calls that took memory from the device.
    pub num_device_alloc: i64,
    /// Calls that returned memory to the device.
    pub num_device_free: i64,
    /// What was used of a real device apart from the allocator's memory, at the end.
    pub outside: Option<Outside>,
    /// The verdict on the trace.
    pub cause: Verdict,
    /// What each part of the program held, in requested bytes.
    pub parts: Vec<PartUse>,
    /// The report of the trace, as for a file.
    pub trace: FileReport,
    /// All of `torch.cuda.memory_stats()`.
    pub memory_stats: BTreeMap<String, i64>,
}

/// The heading of a report: how the run was set up.
#[derive(Clone, Debug)]
pub struct Heading {
    /// The name of the workload.
    pub name: String,
    /// The values of its parameters.
    pub choices: Vec<(String, String)>,
    /// `sim` or `cuda`.
    pub driver: String,
    /// Capacity of the device in bytes.
    pub capacity: u64,
    /// The PyTorch release.
    pub torch: &'static str,
    /// The settings string.
    pub conf: String,
    /// The random seed.
    pub seed: u64,
}

impl Report {
    /// Creates the report of a run. This consumes its trace, so write that before.
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
            error,
            mut notes,
        } = outcome;
        let kept: u64 = snapshot.devices.iter().map(|trace| trace.events.len() as u64).sum();
        if kept < events {
            notes.push(format!(
                "The trace has only the first {} of {}. The likely cause is based on these; the counters cover the \
                 whole run.",
                Count(kept),
                counted(events, "event")
            ));
        }
        let empty = DeviceTrace::default();
        let (totals, cause) = {
            let traces = std::mem::take(&mut snapshot.devices);
            let trace = traces.first().unwrap_or(&empty);
            let replay = Replay::build(trace, &mut snapshot.tags, &snapshot.settings);
            let position = oom::decisive_position(trace);
            let totals = replay.state_at(position.unwrap_or_else(|| replay.positions())).totals;
            let verdict = match &error {
                Some(JobError::OutOfMemory(_) | JobError::Interrupted) | None => {
                    let evidence = Evidence {
                        trace,
                        tags: &snapshot.tags,
                        symbols: &snapshot.symbols,
                        telling: &BestFrames::build(&snapshot.symbols),
                        replay: &replay,
                        capacity: Some(heading.capacity),
                    };
                    Verdict::of(evidence)
                }
                Some(other) => Verdict { kind: VerdictKind::Driver, message: format!("{other}.") },
            };
            snapshot.devices = traces;
            (totals, verdict)
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
            error: error.map(|error| error.to_string()),
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

    /// Returns the findings about the trace.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.trace.findings.iter()
    }
}
