//! A sweep as the page shows it: each text and each place is ready, so that the page only draws.

use serde::{Deserialize, Serialize};

/// A sweep, to be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPicture {
    /// The answer, in one or two sentences: the largest value that fits, or how many runs fit.
    pub verdict: String,
    /// The workload with the parameters that stay.
    pub subject: String,
    /// What all runs have in common beside that.
    pub conditions: String,
    /// The name of the swept parameter.
    pub param: String,
    /// The memory of the simulated device, in bytes.
    pub capacity_bytes: u64,
    /// The words for it.
    pub capacity: String,
    /// Whether the values are numbers, which have distances.
    pub is_numeric: bool,
    /// All runs, in the order of the axis.
    pub rows: Vec<Row>,
    /// The row to be chosen first: the largest value that fits, or the first that does.
    pub first: u32,
    /// The row at the end of what fits, and the proof in a few words.
    pub proof: Option<(u32, String)>,
    /// The plot in words. The table has each number.
    pub words: String,
}

/// A run, to be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The value of the parameter.
    pub value: String,
    /// Its place on the axis: the number itself, or the place in the order of words.
    pub at: f64,
    /// Whether no request failed.
    pub fits: bool,
    /// Peak of the bytes taken from the device.
    pub peak_reserved: u64,
    /// Peak of the bytes of live tensors, rounded by the allocator.
    pub peak_allocated: u64,
    /// Requests that released cached memory and asked the device again.
    pub retries: u64,
    /// Calls of the driver.
    pub driver_calls: u64,
    /// How it ran out of memory, or `no`.
    pub failure: String,
    /// What it proves; usually nothing.
    pub note: String,
    /// The run in one line.
    pub title: String,
    /// The line for a shell that repeats it.
    pub command: String,
}
