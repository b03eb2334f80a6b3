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

pub use comparison::compare;
pub use contents::Contents;
pub use header::{header_of, note_faults};
pub use query::redaction::{Comparison, Entries, Outcome, Part, Paths, Redaction};
pub use renamed::Renamed;

use crate::{Fault, Header};
use copy::Copy;
use rewriter::Rewriter;
use trace::Snapshot;
use who::Who;

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
        ranks: header.ranks,
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
