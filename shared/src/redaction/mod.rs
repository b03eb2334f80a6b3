//! Leaves out of a trace what says who recorded it and where, before it is given to somebody else.
//!
//! The result is another trace with tables of its own. Only what its events and blocks refer to gets into these tables, so
//! nothing that was left out remains in them. What is kept of the memory is exact: every state of the result is a state of
//! the original.

mod comparison;
mod contents;
mod copy;
mod header;
mod renamed;
mod rewriter;
mod who;

pub use comparison::{Comparison, Entries, Outcome};
pub use contents::Contents;
pub use header::{header_of, note_faults};
pub use renamed::Renamed;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::format::{Fault, Header};
use crate::trace::Snapshot;
use copy::Copy;
use rewriter::Rewriter;
use who::Who;

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

/// Returns a trace and its header without what `redaction` leaves out. A device or a position that the trace doesn't have is
/// ignored.
pub fn redact(header: &Header, snapshot: &mut Snapshot, redaction: &Redaction) -> (Header, Snapshot) {
    let who = Who::of(header, snapshot);
    let rewriter = Rewriter::new(redaction.paths, redaction.has_places, &who);
    let parts = copy::parts(snapshot, &redaction.part);
    let mut copy = Copy::new(snapshot, redaction, &rewriter);
    for part in parts {
        copy.add(part);
    }
    let text = |text: &str| rewriter.text(text);
    let place = |name: &str| if redaction.has_places { text(name) } else { String::new() };
    let copied = copy.finish();
    let is_kept = |number: i64| copied.devices.iter().any(|trace| trace.device == number);
    let faults = header.faults.iter().map(|fault| Fault { is_cut: fault.is_cut, message: text(&fault.message) });
    let header = Header {
        program: header.program.clone(),
        name: text(&header.name),
        host: place(&header.host),
        job: place(&header.job),
        rank: header.rank,
        pid: header.pid.filter(|_| redaction.has_places),
        torch: header.torch.clone(),
        allocator: header.allocator.clone(),
        clock: header.clock.clone(),
        started_us: header.started_us,
        devices: header.devices.iter().filter(|device| is_kept(device.number)).cloned().collect(),
        settings: rewriter.settings(&header.settings),
        faults: faults.collect(),
    };
    (header, copied)
}
