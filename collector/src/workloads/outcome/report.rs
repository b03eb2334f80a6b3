//! The report of a run: one structure, as JSON for programs and as text for people.

use std::collections::BTreeMap;

use serde::Serialize;
use shared::allocator::Stat;
use shared::analysis::folding::Telling;
use shared::analysis::fragmentation::Fragmentation;
use shared::analysis::oom;
use shared::analysis::report::FileReport;
use shared::analysis::verdict::{Evidence, Verdict, VerdictKind};
use shared::finding::Finding;
use shared::import::{Encoding, Format, Imported};
use shared::index::Index;
use shared::replay::Replay;
use shared::trace::DeviceTrace;
use shared::units::Count;

use super::{JobError, Outcome, PartUse};
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
    pub cause: Verdict,
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
            error,
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
            // The failure that ended the run is the last; of those that were caught, the first is explained.
            let position = match &error {
                Some(JobError::OutOfMemory(_)) => ooms.last(),
                _ => ooms.first(),
            };
            let position = position.map(|(position, _)| *position);
            let totals = replay.state_at(position.unwrap_or_else(|| replay.positions())).totals;
            let verdict = match &error {
                Some(JobError::OutOfMemory(_) | JobError::Interrupted) | None => {
                    let evidence = Evidence {
                        trace,
                        tags: &snapshot.tags,
                        symbols: &snapshot.symbols,
                        telling: &Telling::build(&snapshot.symbols),
                        replay: &replay,
                        capacity: Some(heading.capacity),
                    };
                    Verdict::of(evidence, position)
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

    /// What was found in the trace beside the failed requests, which the cause tells of.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.trace.findings.iter()
    }
}
