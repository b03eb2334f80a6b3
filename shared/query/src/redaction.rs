//! What is left out of a copy of a trace for somebody else, and how the copy differs.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What becomes of paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Paths {
    /// They stay as they are.
    Whole,
    /// Home folders become `~`, and names of users that occur elsewhere become `user`.
    #[default]
    WithoutHomes,
    /// Only the names of files stay.
    FileNames,
}

/// Which part of a trace is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// All devices.
    #[default]
    Everything,
    /// The devices with these numbers.
    Devices(Vec<i64>),
    /// The events of one device between two positions. The state at its end is that of the original.
    Window {
        /// The device's number.
        device: i64,
        /// The positions: the numbers of events before its start and before its end.
        positions: Range<u32>,
    },
}

/// What is kept of a trace. The default suits a trace that leaves a company.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    /// What becomes of paths.
    pub paths: Paths,
    /// Whether the names of the host and of the job are kept.
    pub has_places: bool,
    /// Whether the texts are kept that the job attached to its allocations (`_set_memory_metadata`).
    pub has_metadata: bool,
    /// Whether annotations are left out: named spans and instants.
    pub is_without_annotations: bool,
    /// Which part is kept.
    pub part: Part,
}

/// What becomes of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The copy says this instead.
    Renamed(String),
    /// It is left out.
    Gone,
    /// It stays as it is.
    Same,
}

/// The entries of one list, each with what becomes of it: first those that change, then those that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries {
    /// The list's heading.
    pub name: String,
    /// The entries.
    pub rows: Vec<(String, Outcome)>,
    /// How many change.
    pub renamed: usize,
    /// How many are left out.
    pub gone: usize,
}

/// A trace beside its copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The numbers of devices of the trace, and of the copy.
    pub devices: [Vec<i64>; 2],
    /// The number of events of the trace, and of the copy.
    pub events: [u64; 2],
    /// Events of pinned host memory, which the copy doesn't have.
    pub host_events: u64,
    /// The lists of names and texts.
    pub lists: Vec<Entries>,
}
