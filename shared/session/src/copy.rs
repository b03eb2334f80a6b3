//! A copy of a session's trace for somebody else, and where in it a view is that was made of the original.

use super::session::Session;
use format::Header;
use format::redaction::{Contents, Part, Redaction, Renamed, header_of, note_faults, redact};
use query::copy::{Moved, Named};
use query::finding::FindingCode;
use replay::{Allocation, Replay};
use trace::frames::StackId;
use trace::{DeviceTrace, Snapshot};

/// A copy of a session's trace.
#[derive(Debug)]
pub struct SessionCopy {
    /// What the original says.
    pub before: Contents,
    /// What the copy says.
    pub after: Contents,
    /// What the copy calls differently.
    pub renamed: Renamed,
    /// Where the view is in the copy. `None` if the copy doesn't have its device.
    pub moved: Option<Moved>,
    header: Header,
    snapshot: Snapshot,
}

impl SessionCopy {
    /// Returns the copy's header and trace.
    pub fn parts(&self) -> (&Header, &Snapshot) {
        (&self.header, &self.snapshot)
    }
}

impl Session {
    /// Drops the finding that the end of the recording is missing: its job still runs, and a copy is not one of a damaged file.
    pub fn expect_more(&mut self) {
        self.summary.findings.retain(|finding| finding.code != FindingCode::Truncated);
    }

    /// Returns a copy without what `redaction` leaves out. It gets a name of its own, since that of the original may say more
    /// than it should.
    pub fn copy(&mut self, name: &str, redaction: &Redaction, named: Named) -> SessionCopy {
        let mut header = self.header.clone().unwrap_or_else(|| header_of(name, &self.snapshot));
        note_faults(&mut header, &self.summary.findings);
        let before = Contents::of(&header, &self.snapshot);
        let renamed = Renamed::of(&header, &self.snapshot, redaction, &before);
        let (mut header, mut snapshot) = redact(&header, &mut self.snapshot, redaction);
        name.clone_into(&mut header.name);
        let after = Contents::of(&header, &snapshot);
        let moved = self.moved(&mut snapshot, &redaction.part, named);
        SessionCopy { before, after, renamed, moved, header, snapshot }
    }

    fn moved(&self, copy: &mut Snapshot, part: &Part, named: Named) -> Option<Moved> {
        let index = named.device as usize;
        let (trace, replay) = (self.snapshot.devices.get(index)?, &self.devices.get(index)?.replay);
        let at = copy.devices.iter().position(|copied| copied.device == trace.device)?;
        let copied = copy.devices.get(at)?;
        let events = match part {
            Part::Window { positions, .. } => positions.start.min(trace.events.len() as u32),
            Part::Everything | Part::Devices(_) => 0,
        };
        let stack = named.stack.and_then(|stack| stack_in(copied, events, trace, StackId(stack)));
        let allocation = named.allocation.filter(|number| (*number as usize) < replay.allocations.len());
        let allocation = match allocation.and_then(|number| replay.allocations.get(number)) {
            Some(of) if copied.events.len() < trace.events.len() => {
                let replay = Replay::build(copied, &mut copy.tags, &copy.settings);
                allocation_in(&replay, &of, events)
            }
            // All events in the same order make the same allocations.
            _ => allocation,
        };
        let us = copied.start_us().saturating_sub(trace.start_us()) as f64;
        Some(Moved { named: Named { device: at as u32, allocation, stack }, events, us })
    }
}

/// Finds a stack in a copy that begins after a number of events: that of the same event, or of the same block.
fn stack_in(copied: &DeviceTrace, events: u32, trace: &DeviceTrace, stack: StackId) -> Option<u32> {
    let stacks = trace.events.stack.iter().skip(events as usize);
    let in_events = stacks.zip(copied.events.stack.iter()).find(|(was, _)| *was == stack.0).map(|(_, is)| is);
    in_events.or_else(|| {
        // The blocks at the end of another part are not in the same order.
        let is_whole = copied.events.len() == trace.events.len();
        let blocks = |trace: &'_ DeviceTrace| {
            let stacks = trace.segments.iter().flat_map(|segment| segment.blocks.iter().map(|block| block.stack));
            stacks.collect::<Vec<_>>()
        };
        let mut pairs = blocks(trace).into_iter().zip(blocks(copied));
        pairs.find(|(was, _)| is_whole && *was == stack).map(|(_, is)| is.0)
    })
}

/// Finds an allocation in a copy that begins after a number of events.
fn allocation_in(replay: &Replay, of: &Allocation, events: u32) -> Option<u32> {
    let is_it = |found: &Allocation| found.address == of.address;
    match of.begin.checked_sub(events).filter(|begin| *begin > 0) {
        Some(begin) => {
            let numbers = replay.allocations.made_by(begin - 1)..replay.allocations.made_by(begin);
            numbers.into_iter().find(|number| replay.allocations.get(*number).as_ref().is_some_and(is_it))
        }
        // It was made before the copy begins: those that were active then come first.
        None => {
            let mut first = (0..replay.allocations.made_by(0)).map_while(|number| replay.allocations.get(number));
            first.position(|found| is_it(&found)).map(|number| number as u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use format::import::{Imported, Importer};
    use query::finding::Finding;
    use trace::limits::ImportLimits;
    use trace::testing::snapshot;

    const TRACE: &str = "
        segment_alloc 0x1000000 2097152
        alloc 0x1000000 1000 forward@/home/me/model.py:54
        alloc 0x1000400 2000 backward@/home/me/model.py:70
        free 0x1000000
        alloc 0x1000000 500 step@/home/me/optim.py:7
        alloc 0x1000800 3000 forward@/home/me/model.py:54
        free 0x1000400
    ";

    fn session() -> Session {
        Session::new(snapshot(TRACE), "test".to_owned(), Vec::new(), &mut |_| {})
    }

    fn written(copy: &SessionCopy) -> Vec<u8> {
        let (header, snapshot) = copy.parts();
        format::write(header, snapshot)
    }

    fn import(recording: &[u8]) -> Imported {
        let mut importer = Importer::new(ImportLimits::default());
        importer.push(recording).unwrap();
        importer.finish().unwrap()
    }

    /// Returns the requested bytes of an allocation, where it begins, and its stack.
    fn allocation(session: &Session, number: u32) -> (u64, u32, u32) {
        let found = session.devices[0].replay.allocations.get(number).unwrap();
        (found.requested, found.begin, found.stack.0)
    }

    /// Returns the line of a stack's innermost frame.
    fn line(session: &Session, stack: u32) -> u32 {
        let symbols = &session.snapshot.symbols;
        symbols.stack(StackId(stack)).first().map_or(0, |frame| symbols.frame(*frame).line)
    }

    #[test]
    fn a_view_of_the_original_is_found_in_the_copy() {
        // What is kept; the number of an allocation, and whether the copy has it.
        let window = |positions: Range<u32>| Part::Window { device: 0, positions };
        for (part, number, is_kept) in [
            (Part::Everything, 0, true),
            (Part::Everything, 3, true),
            (Part::Devices(vec![0]), 2, true),
            (window(3..9), 0, true),
            (window(3..9), 1, true),
            (window(3..9), 2, true),
            (window(5..9), 0, false),
            (window(0..3), 1, true),
            (window(0..3), 3, false),
        ] {
            let mut original = session();
            let (requested, begin, stack) = allocation(&original, number);
            let named = Named { device: 0, allocation: Some(number), stack: Some(stack) };
            let copy = original.copy("shared", &Redaction { part: part.clone(), ..Redaction::default() }, named);
            let moved = copy.moved.unwrap();
            assert_eq!(moved.named.allocation.is_some(), is_kept, "{part:?} {number}");
            let opened = Session::build(import(&written(&copy)), &mut |_| {});
            if let Some(found) = moved.named.allocation {
                let is = allocation(&opened, found);
                assert_eq!((is.0, is.1), (requested, begin.saturating_sub(moved.events)), "{part:?} {number}");
            }
            if let Some(found) = moved.named.stack {
                assert_eq!(line(&opened, found), line(&original, stack), "{part:?} {number}");
            }
            assert!(begin <= moved.events || !is_kept || moved.named.stack.is_some(), "{part:?} {number}");
        }
    }

    #[test]
    fn times_and_names_are_those_of_the_copy() {
        let mut original = session();
        let part = Part::Window { device: 0, positions: 4..9 };
        let copy = original.copy("shared", &Redaction { part, ..Redaction::default() }, Named::default());
        let moved = copy.moved.unwrap();
        assert_eq!((moved.events, moved.us), (4, 40.0));
        let imported = import(&written(&copy));
        assert_eq!(imported.header.unwrap().name, "shared");
        assert_eq!((copy.before.events, copy.after.events), (9, 5));
        assert_eq!(copy.before.users.iter().collect::<Vec<_>>(), ["me"]);
        assert!(copy.after.users.is_empty());
        let other = Redaction { part: Part::Devices(vec![7]), ..Redaction::default() };
        assert_eq!(original.copy("shared", &other, Named::default()).moved, None);
    }

    #[test]
    fn a_copy_tells_what_is_missing_unless_more_is_coming() {
        for (is_running, faults) in [(false, 1), (true, 0)] {
            let found = Finding::new(FindingCode::Truncated, "The recording was not ended.".to_owned());
            let mut original = Session::new(snapshot(TRACE), "test".to_owned(), vec![found], &mut |_| {});
            if is_running {
                original.expect_more();
            }
            let copy = original.copy("shared", &Redaction::default(), Named::default());
            let opened = Session::build(import(&written(&copy)), &mut |_| {});
            let is_cut = |finding: &&Finding| finding.code == FindingCode::Truncated;
            assert_eq!(opened.summary.findings.iter().filter(is_cut).count(), faults, "{is_running}");
        }
    }
}
