//! Why an allocation has no stack, and how to get one: as far as the trace shows it.
//!
//! `_record_memory_history` decides with `context` which entries keep a stack, and with `stacks` which frames it has. No
//! file says how they were set, so this derives it from where stacks are. The reasons in the code that follows are those
//! of PyTorch's allocator and of its unwinder.

use query::finding::Integrity;
use query::folding::is_python;
use replay::{Allocation, Replay};
use trace::DeviceTrace;
use trace::event::Action;
use trace::frames::{FrameId, StackId, StackRecord, Symbols};
use trace::order::SortFew;

/// Why an allocation or a segment has no stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MissingStack {
    /// The snapshot has neither entries nor stacks.
    NoHistory,
    /// It was active when recording began, and still is at the end.
    BeforeRecording,
    /// It was active at the start of the trace, and freed in it.
    BeforeTrace,
    /// No entry has a stack: `context=None`.
    NoContext,
    /// Stacks of existing blocks only: `context="state"`.
    StateOnly,
    /// Other entries have stacks, of Python frames only.
    NoPython,
    /// Other entries have stacks with C++ frames.
    Unknown,
    /// It was recorded, and lost with a damaged part of the recording.
    Lost,
    /// The event that made the allocation was lost.
    EventLost,
    /// None was recorded, and the evidence for the reason was lost with a damaged part of the recording.
    Undetermined,
}

impl MissingStack {
    /// Returns the reason in a few words, for a list.
    pub const fn short(self) -> &'static str {
        match self {
            Self::NoHistory => "history was not recorded",
            Self::BeforeRecording => "allocated before recording began",
            Self::BeforeTrace => "allocated before the trace begins",
            Self::NoContext => "recorded without stacks",
            Self::StateOnly => "recorded for live blocks only",
            Self::NoPython => "probably the backward pass: no Python frame on its thread",
            Self::Unknown => "the unwinder returned none",
            Self::Lost => "recorded, and lost to damage",
            Self::EventLost => "the event that made it was lost",
            Self::Undetermined => "why was lost to damage",
        }
    }

    /// Returns the reason as sentences.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoHistory => "The memory history was not being recorded when this snapshot was taken.",
            Self::BeforeRecording => "This was allocated before recording began.",
            Self::BeforeTrace => {
                "This was allocated before the first event of the trace: recording began later, or its entry was \
                 overwritten by later ones."
            }
            Self::NoContext => "No event of this device has a stack: it was recorded without them.",
            Self::StateOnly => {
                "No event of this device has a stack, only blocks that existed at the end: it was recorded with \
                 context=\"state\", or the mode \"budget\" had no time for more."
            }
            Self::NoPython => {
                "No stack was recorded. Probably the thread ran no Python code, as in the backward pass: only Python \
                 frames were recorded."
            }
            Self::Unknown => {
                "No stack was recorded, though others have Python and C++ frames. Either the unwinder failed, or the \
                 recorder had no time or no room for it."
            }
            Self::Lost => "A stack was recorded. Its names were in a part of the recording that is damaged.",
            Self::EventLost => "The event that made this was lost, and its stack with it.",
            Self::Undetermined => "No stack was recorded. Why is not known: names of other stacks were lost to damage.",
        }
    }

    /// Returns what to do to get the stack next time, as sentences.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::NoHistory | Self::BeforeRecording => {
                "Call torch.cuda.memory._record_memory_history() (or vramscope.attach()) before the model is created."
            }
            Self::BeforeTrace => {
                "Start recording before the model is created, and keep more entries: raise max_entries of \
                 _record_memory_history (history of vramscope.attach)."
            }
            Self::NoContext => "Record with context=\"all\" and stacks=\"python\".",
            Self::StateOnly => {
                "Record with context=\"alloc\" or context=\"all\"; in the mode \"budget\", raise budget."
            }
            Self::NoPython => "Record with stacks=\"all\" to get C++ frames, which name the operator.",
            Self::Unknown => {
                "With vramscope.attach, raise stack_share. Otherwise the annotations around it are the best hint."
            }
            Self::Lost | Self::Undetermined => "If the file that it was copied from is whole, copy it again.",
            Self::EventLost => "The finding about lost events says how many there are, and where.",
        }
    }
}

/// Which parts of a device's trace have stacks. Extended by later events.
#[derive(Clone, Copy, Debug, Default)]
pub struct StackCoverage {
    /// How many events were counted.
    events: usize,
    /// How many frames were looked at.
    frames: usize,
    /// Whether an event has a stack.
    in_events: bool,
    /// Whether a block or segment of the final state has one.
    in_state: bool,
    /// Whether a frame is one of C++.
    has_cpp: bool,
    /// Whether names of a stack were lost, which could be any.
    has_lost: bool,
    /// How many stacks were looked at.
    stacks: usize,
    /// Whether parts of the file are damaged: memory that existed before its first event may have been made by lost
    /// ones.
    is_damaged: bool,
}

impl StackCoverage {
    /// Takes in what was added since the last call.
    pub fn extend(&mut self, trace: &DeviceTrace, symbols: &Symbols, integrity: Integrity) {
        self.is_damaged = integrity.is_damaged;
        let events = trace.events.len();
        if !self.in_events {
            let new = self.events.min(events)..events;
            let codes = trace.events.action.range(new.clone());
            let is_alloc =
                |code| matches!(Action::from_code(code), Action::Alloc | Action::SegmentAlloc | Action::SegmentMap);
            self.in_events = codes.zip(trace.events.stack.range(new)).any(|(code, stack)| stack != 0 && is_alloc(code));
        }
        self.events = events;
        let mut blocks = trace
            .segments
            .iter()
            .flat_map(|segment| std::iter::once(segment.stack).chain(segment.blocks.iter().map(|block| block.stack)));
        self.in_state = self.in_state || blocks.any(|stack| stack.0 != 0);
        if !self.has_cpp {
            let is_cpp = |id| {
                let frame = symbols.frame(FrameId(id));
                !symbols.is_lost_frame(FrameId(id))
                    && !is_python(&symbols.text(frame.filename))
                    && !symbols.bytes(frame.name).starts_with(b"<")
            };
            self.has_cpp = (self.frames as u32..symbols.frame_count() as u32).any(is_cpp);
        }
        self.frames = symbols.frame_count();
        let is_lost = |id| matches!(symbols.recorded(StackId(id)), StackRecord::Lost | StackRecord::Partly);
        self.has_lost = self.has_lost || (self.stacks as u32..symbols.stack_count() as u32).any(is_lost);
        self.stacks = symbols.stack_count();
    }

    /// Returns why an allocation has no stack; `None` if it has one.
    pub fn of_allocation(&self, symbols: &Symbols, replay: &Replay, id: u32) -> Option<MissingStack> {
        let allocation = replay.allocations.get(id)?;
        match symbols.recorded(allocation.stack) {
            StackRecord::Nothing if replay.is_unseen(id) => Some(MissingStack::EventLost),
            StackRecord::Nothing => Some(self.of(allocation.begin, allocation.end == Allocation::NEVER)),
            StackRecord::Lost => Some(MissingStack::Lost),
            StackRecord::Partly | StackRecord::Whole => None,
        }
    }

    /// Returns why a range of a segment that exists since a position, 0 for the start, has no stack; `None` if it has one.
    pub fn of_range(&self, symbols: &Symbols, stack: StackId, since: u32) -> Option<MissingStack> {
        match symbols.recorded(stack) {
            StackRecord::Nothing => Some(self.of(since, true)),
            StackRecord::Lost => Some(MissingStack::Lost),
            StackRecord::Partly | StackRecord::Whole => None,
        }
    }

    /// Returns why what began at a position, 0 for the start, has no stack.
    fn of(&self, begin: u32, lives_to_the_end: bool) -> MissingStack {
        match begin {
            _ if !self.in_events && !self.in_state && self.events == 0 => MissingStack::NoHistory,
            _ if !self.in_events && !self.in_state => MissingStack::NoContext,
            0 if self.is_damaged => MissingStack::EventLost,
            0 if lives_to_the_end => MissingStack::BeforeRecording,
            0 => MissingStack::BeforeTrace,
            _ if !self.in_events => MissingStack::StateOnly,
            _ if self.has_lost => MissingStack::Undetermined,
            _ if !self.has_cpp => MissingStack::NoPython,
            _ => MissingStack::Unknown,
        }
    }

    /// Sums up requested bytes and number of allocations without a stack by reason, the largest first.
    pub fn sums(
        &self,
        symbols: &Symbols,
        replay: &Replay,
        allocations: impl Iterator<Item = u32>,
    ) -> Vec<(MissingStack, u64, u32)> {
        let mut sums: Vec<(MissingStack, u64, u32)> = Vec::new();
        let missing =
            allocations.filter_map(|id| replay.allocations.get(id).zip(self.of_allocation(symbols, replay, id)));
        for (allocation, why) in missing {
            match sums.iter_mut().find(|(known, ..)| *known == why) {
                Some((_, bytes, count)) => (*bytes, *count) = (bytes.saturating_add(allocation.requested), *count + 1),
                None => sums.push((why, allocation.requested, 1)),
            }
        }
        sums.sort_few_by_key(|(why, bytes, _)| (std::cmp::Reverse(*bytes), *why));
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PYTHON: &str = "forward@/home/me/m.py:7";
    const CPP: &str = "at::empty@??";

    /// Checks the reason for the allocation with a number, in a snapshot of these lines. `edit` changes the snapshot.
    #[track_caller]
    fn check(lines: &str, edit: impl Fn(&mut DeviceTrace), id: u32, want: MissingStack) {
        let mut snapshot = trace::testing::snapshot(lines);
        let mut trace = snapshot.devices.remove(0);
        edit(&mut trace);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let mut coverage = StackCoverage::default();
        coverage.extend(&trace, &snapshot.symbols, Integrity::default());
        // Nothing was added.
        coverage.extend(&trace, &snapshot.symbols, Integrity::default());
        let allocation = replay.allocations.get(id).expect("an allocation");
        assert_eq!(allocation.stack, StackId(0), "it has a stack");
        assert_eq!(coverage.of_allocation(&snapshot.symbols, &replay, id), Some(want));
    }

    fn without_events(trace: &mut DeviceTrace) {
        trace.events = trace::Events::default();
    }

    fn without_block_stacks(trace: &mut DeviceTrace) {
        for block in trace.segments.iter_mut().flat_map(|segment| &mut segment.blocks) {
            block.stack = StackId(0);
        }
    }

    /// Drops the first two events, so that what they made was there before.
    fn late(trace: &mut DeviceTrace) {
        let events: Vec<_> = (2..trace.events.len()).filter_map(|i| trace.events.get(i)).collect();
        without_events(trace);
        events.into_iter().for_each(|event| trace.events.push(event));
    }

    #[test]
    fn the_reason_follows_from_where_stacks_are() {
        let segment = "segment_alloc 0x1000000 20971520\n";
        let keep = |_: &mut DeviceTrace| {};
        let bare = format!("{segment}alloc 0x1000000 1000");
        check(&bare, without_events, 0, MissingStack::NoHistory);
        check(&bare, keep, 0, MissingStack::NoContext);
        let python = format!("{bare}\nalloc 0x1100000 1000 {PYTHON}");
        check(&python, keep, 0, MissingStack::NoPython);
        check(&python, late, 0, MissingStack::BeforeRecording);
        check(&python, without_events, 0, MissingStack::BeforeRecording);
        check(&format!("{python}\nfree 0x1000000"), late, 0, MissingStack::BeforeTrace);
        let cpp = format!("{bare}\nalloc 0x1100000 1000 {CPP} {PYTHON}");
        check(&cpp, keep, 0, MissingStack::Unknown);
        // Frees with stacks do not make up for allocations without.
        let frees = format!("{bare}\nfree_requested 0x1000000 {PYTHON}");
        check(&frees, without_block_stacks, 0, MissingStack::NoContext);
    }

    #[test]
    fn stacks_of_blocks_only_are_those_of_the_context_state() {
        let lines = "segment_alloc 0x1000000 20971520\nalloc 0x1000000 1000\nalloc 0x1100000 1000";
        let edit = |trace: &mut DeviceTrace| {
            trace.segments[0].blocks[2].stack = StackId(1);
        };
        check(lines, edit, 0, MissingStack::StateOnly);
    }

    #[test]
    fn bytes_are_summed_up_by_reason() {
        let lines = format!(
            "segment_alloc 0x1000000 20971520\nalloc 0x1000000 1000\nalloc 0x1100000 300\nalloc 0x1200000 1 {PYTHON}\nalloc \
             0x1300000 500"
        );
        let mut snapshot = trace::testing::snapshot(&lines);
        let mut trace = snapshot.devices.remove(0);
        late(&mut trace);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let mut coverage = StackCoverage::default();
        coverage.extend(&trace, &snapshot.symbols, Integrity::default());
        let want = [(MissingStack::BeforeRecording, 1000, 1), (MissingStack::NoPython, 800, 2)];
        assert_eq!(coverage.sums(&snapshot.symbols, &replay, 0..4), want);
    }
}
