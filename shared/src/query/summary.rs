//! What a file holds: sent once when it has been read.

use serde::{Deserialize, Serialize};

use super::Window;
use crate::finding::Finding;
use crate::format::Header;
use crate::totals::Totals;
use crate::units::{PoolId, Stream};

/// What a file holds: sent once when it has been read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Encoding, in words: `pickle (protocol 4)`, `JSON, gzip`.
    pub format: String,
    /// What is wrong with it, or worth knowing.
    pub findings: Vec<Finding>,
    /// Its devices.
    pub devices: Vec<DeviceSummary>,
    /// The allocator's settings as written.
    pub settings: Vec<(String, String)>,
    /// Where it comes from, for a recording.
    pub origin: Option<Origin>,
}

/// What a recording says of itself. Texts that it leaves out are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The program that wrote it, with its version.
    pub program: String,
    /// What it is called.
    pub name: String,
    /// The machine.
    pub host: String,
    /// The job, with the process's number in it where it has one.
    pub job: String,
    /// Whose allocator it was, and of which release of PyTorch, in words.
    pub allocator: String,
    /// What the times were read from.
    pub clock: String,
    /// When recording began, in microseconds since the epoch.
    pub started_us: i64,
}

impl Summary {
    /// Takes in what a recording says of itself and of its devices.
    pub(crate) fn tell_origin(&mut self, header: Header) {
        for device in &mut self.devices {
            if let Some(known) = header.devices.iter().find(|known| known.number == device.device) {
                device.model.clone_from(&known.name);
                device.capacity = known.capacity;
            }
        }
        if self.settings.is_empty() && !header.settings.conf.is_empty() {
            self.settings.push(("PYTORCH_CUDA_ALLOC_CONF".to_owned(), header.settings.conf));
        }
        let job = match header.rank {
            Some(rank) if header.job.is_empty() => ["rank ", &rank.to_string()].concat(),
            Some(rank) => [&header.job, ", rank ", &rank.to_string()].concat(),
            None => header.job,
        };
        let Header { program, name, host, torch, allocator, clock, started_us, .. } = header;
        let allocator = match (torch.as_str(), allocator.as_str()) {
            ("", _) => allocator,
            (torch, "") => ["as torch ", torch, " decides"].concat(),
            (torch, whose) => [whose, " (torch ", torch, ")"].concat(),
        };
        self.origin = Some(Origin { program, name, host, job, allocator, clock, started_us });
    }
}

/// What a device's trace holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// The device's number.
    pub device: i64,
    /// Its model; empty when the file doesn't say.
    pub model: String,
    /// Its whole memory in bytes; 0 when the file doesn't say.
    pub capacity: u64,
    /// Number of events; the last position.
    pub events: u32,
    /// Events by action as written.
    pub actions: Vec<(String, u32)>,
    /// Allocations, those from before the trace included.
    pub allocations: u32,
    /// Whether events have times.
    pub has_times: bool,
    /// Microseconds since the epoch of the first event, or of the first statistics where they came before it.
    pub start_us: i64,
    /// Microseconds from there to the last event or the last statistics.
    pub span_us: i64,
    /// The whole trace on the time axis.
    pub time: Window,
    /// The whole trace on the event axis.
    pub event: Window,
    /// The sums at the start.
    pub start: Totals,
    /// The sums at the end.
    pub end: Totals,
    /// The position of the largest requested total.
    pub peak_position: u32,
    /// The sums there.
    pub peak: Totals,
    /// The largest reserved total of the run.
    pub peak_reserved: u64,
    /// Positions right after out-of-memory events: position and rounded bytes that could not be had.
    pub ooms: Vec<(u32, u64)>,
    /// Annotations, starts and ends counted apart.
    pub annotations: u32,
    /// Places where events are missing.
    pub losses: u32,
    /// How many events are missing in all.
    pub lost: u64,
    /// Streams, in order of first use.
    pub streams: Vec<Stream>,
    /// Private pools.
    pub pools: Vec<PoolId>,
    /// Distinct stacks.
    pub stacks: u32,
}
