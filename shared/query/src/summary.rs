//! The summary of a session. For a file it is sent once; for a running job after each refresh.

use serde::{Deserialize, Serialize};

use super::{HostMemory, Window};
use crate::finding::{Finding, Integrity};
use trace::totals::Totals;
use trace::units::{PoolId, Stream};

/// The summary of a session. For a file it is sent once; for a running job after each refresh.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The encoding: `pickle (protocol 4)`, `JSON, gzip`.
    pub format: String,
    /// Its problems and notable facts.
    pub findings: Vec<Finding>,
    /// Its devices.
    pub devices: Vec<DeviceSummary>,
    /// The allocator's settings as recorded: name and value.
    pub settings: Vec<(String, String)>,
    /// The origin of a recording.
    pub origin: Option<Origin>,
    /// Pinned host memory, if the file tells of it.
    pub host_memory: Option<HostMemory>,
}

/// The origin of a recording. Texts that it does not have are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The program that wrote it, with its version.
    pub program: String,
    /// The recording's name.
    pub name: String,
    /// The machine's name.
    pub host: String,
    /// The job, with the rank of the process, if it has one.
    pub job: String,
    /// The allocator, and its release of PyTorch, as text.
    pub allocator: String,
    /// The clock that times were read from.
    pub clock: String,
    /// When recording began, in microseconds since the epoch.
    pub started_us: i64,
}

impl Summary {
    /// Returns what the file lacks.
    pub fn integrity(&self) -> Integrity {
        Integrity::of(&self.findings)
    }

    /// Returns the device to look at first, as an index: the one that ran out of memory, otherwise the one that requested most.
    pub fn telling_device(&self) -> Option<u32> {
        let telling = self.devices.iter().enumerate().max_by_key(|(i, device)| {
            // The first of equal devices is wanted, but `max_by_key` returns the last.
            (!device.ooms.is_empty(), device.peak.requested, device.events, device.end.reserved, std::cmp::Reverse(*i))
        });
        telling.map(|(index, _)| index as u32)
    }
}

/// The summary of one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// The device's number.
    pub device: i64,
    /// Its model; empty if it was not recorded.
    pub model: String,
    /// Its total memory in bytes; 0 if it was not recorded.
    pub capacity: u64,
    /// The number of events, which is the last position.
    pub events: u32,
    /// The number of events of each action, by its name as recorded.
    pub actions: Vec<(String, u32)>,
    /// The number of allocations, including those made before the trace.
    pub allocations: u32,
    /// Whether events have times.
    pub has_times: bool,
    /// When the trace begins, in microseconds since the epoch: its first event, or earlier statistics.
    pub start_us: i64,
    /// Microseconds from the trace's beginning to its last event or statistics.
    pub span_us: i64,
    /// The extent of the trace on the time axis.
    pub time: Window,
    /// The extent of the trace on the event axis.
    pub event: Window,
    /// The totals at the start.
    pub start: Totals,
    /// The totals at the end.
    pub end: Totals,
    /// The position of the largest requested total.
    pub peak_position: u32,
    /// The totals there.
    pub peak: Totals,
    /// The largest reserved total of the run.
    pub peak_reserved: u64,
    /// The failed requests: the position right after each, and its rounded bytes.
    pub ooms: Vec<(u32, u64)>,
    /// The position of the failure that matters most, if a request failed.
    pub decisive_oom: Option<u32>,
    /// The number of annotations; starts and ends count separately.
    pub annotations: u32,
    /// The number of places where events are missing.
    pub losses: u32,
    /// The total number of missing events.
    pub lost: u64,
    /// Streams, in order of first use.
    pub streams: Vec<Stream>,
    /// Private pools.
    pub pools: Vec<PoolId>,
    /// The number of distinct call sites.
    pub stacks: u32,
    /// The number of samples of the memory beside the allocator.
    pub outside: u32,
}
