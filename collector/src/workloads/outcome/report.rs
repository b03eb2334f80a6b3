//! The report of a run: one structure, as JSON for programs and as text for people.

use std::collections::BTreeMap;

use allocator::Stat;
use analysis::fragmentation::Fragmentation;
use format::Header;
use format::import::{Encoding, Format, Imported};
use query::diagnosis::{Cause, Verdict};
use query::finding::{Finding, FindingCode};
use report::FileReport;
use serde::Serialize;
use trace::DeviceTrace;
use trace::units::{Count, counted};

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

/// Why a run ended as it did, in brief.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The name of the verdict's cause. Without a failure `growth` or `retries` if that was found, `none` otherwise;
    /// `driver` if the device itself failed, and `limited` for a limit. Scripts may match on it.
    pub kind: &'static str,
    /// The verdict's sentence.
    pub message: String,
}

impl Reason {
    fn of(verdict: &Verdict, error: Option<&JobError>, retries: i64) -> Self {
        let kind = match (error, verdict.cause) {
            (Some(JobError::Driver(_) | JobError::Misuse(_)), _) => "driver",
            (_, Cause::None) if verdict.is_growing => "growth",
            (_, Cause::None) if retries > 0 => "retries",
            (_, Cause::Limit) => "limited",
            (_, cause) => cause.name(),
        };
        let message = match error {
            Some(error) if kind == "driver" => format!("{error}."),
            _ => verdict.sentence.clone(),
        };
        Self { kind, message }
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
    pub verdict: Verdict,
    /// The verdict in brief, or that the device itself failed.
    pub cause: Reason,
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
            snapshot,
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
        let encoding = Format { encoding: Encoding::Pickle, compression: None };
        let known = |trace: &DeviceTrace| format::Device {
            number: trace.device,
            name: String::new(),
            capacity: heading.capacity,
        };
        let devices = snapshot.devices.iter().map(known).collect();
        let header = Header { devices, torch: heading.torch.to_owned(), ..Header::default() };
        let imported =
            Imported { format: encoding, protocol: None, snapshot, findings: Vec::new(), header: Some(header) };
        let trace = FileReport::new(heading.name.clone(), imported);
        let (verdict, fragmentation) = trace
            .devices
            .first()
            .map_or_else(Default::default, |device| (device.verdict.clone(), device.fragmentation));
        Self {
            trace,
            cause: Reason::of(&verdict, error.as_ref(), stats.num_alloc_retries),
            verdict,
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
            fragmentation,
            num_alloc_retries: stats.num_alloc_retries,
            num_ooms: stats.num_ooms,
            num_device_alloc: stats.num_device_alloc,
            num_device_free: stats.num_device_free,
            outside,
            parts,
            memory_stats: memory_stats.into_iter().collect(),
        }
    }

    /// Returns the findings about the trace, without that about the failure that the verdict is about.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.trace.findings.iter().filter(|finding| finding.code != FindingCode::OutOfMemory)
    }
}
