//! What a file holds: sent once when it has been read.

use serde::{Deserialize, Serialize};

use super::{Totals, Window};
use crate::finding::Finding;
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
}

/// What a device's trace holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// The device's number.
    pub device: i64,
    /// Number of events; the last position.
    pub events: u32,
    /// Events by action as written.
    pub actions: Vec<(String, u32)>,
    /// Allocations, those from before the trace included.
    pub allocations: u32,
    /// Whether events have times.
    pub has_times: bool,
    /// Microseconds since the epoch of the first event.
    pub start_us: i64,
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
    /// Streams, in order of first use.
    pub streams: Vec<Stream>,
    /// Private pools.
    pub pools: Vec<PoolId>,
    /// Distinct stacks.
    pub stacks: u32,
}
