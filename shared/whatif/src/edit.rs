//! Requests of a program that keeps less: some allocations are freed earlier, or freed and asked for again.
//!
//! An edited stream is balanced whatever is asked of it: nothing is freed twice, and what the recording frees is freed in the end.
//! What an edit asks for that isn't possible at its position changes nothing.

use rustc_hash::FxHashMap;

use super::requests::{Act, RequestStep, Requests};

/// One change of what a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The position at which it happens: after this number of the trace's events, and before the next one.
    pub position: u32,
    /// What happens.
    pub act: EditAct,
}

/// What an edit does with an allocation, which it names by its number in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditAct {
    /// Frees it, if it is live. A free that the recording has later does nothing, unless it was asked for again.
    Free(u32),
    /// Asks for as much again in its place, if it is not live and the recording has yet to free it. Where the recording frees it,
    /// this is freed.
    Again(u32),
    /// Keeps it where the recording frees it, until an edit frees it.
    Keep(u32),
    /// Asks for as much once more, beside it. There is one copy of an allocation at a time.
    Copy(u32),
    /// Frees the copy.
    FreeCopy(u32),
}

impl EditAct {
    /// Returns the number of the allocation.
    pub const fn allocation(self) -> u32 {
        match self {
            Self::Free(number)
            | Self::Again(number)
            | Self::Keep(number)
            | Self::Copy(number)
            | Self::FreeCopy(number) => number,
        }
    }
}

/// What is live of an allocation that edits name.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// The number of the request that it lives by.
    now: Option<u32>,
    copy: Option<u32>,
    /// The number that was freed while streams used it.
    waits: Option<u32>,
    has_begun: bool,
    is_kept: bool,
    /// Whether the recording has freed it.
    is_over: bool,
}

/// A stream of requests while it is edited.
struct Editor {
    edited: Requests,
    lives: FxHashMap<u32, Life>,
}

impl Requests {
    /// Returns the requests of the same program whose cache is empty at the start: what was reserved before the first event and not in use
    /// is released first, as `empty_cache` does. It may have been needed only by what the program did before, or by what edits
    /// leave out.
    #[must_use]
    pub fn without_cache_at_start(&self) -> Self {
        let mut requests = self.edited(&[]);
        requests.steps.insert(0, RequestStep { event: 0, act: Act::EmptyCache });
        requests
    }

    /// Returns the requests with some edits, in order of their positions; those of one position happen in the order given. What the
    /// recording answered is left out, since it answered other requests.
    #[must_use]
    pub fn edited(&self, edits: &[Edit]) -> Self {
        let mut edits: Vec<Edit> = edits.to_vec();
        edits.sort_by_key(|edit| edit.position);
        let is_known = |edit: &&Edit| (edit.act.allocation() as usize) < self.asked.len();
        let mut lives: FxHashMap<u32, Life> =
            edits.iter().filter(is_known).map(|edit| (edit.act.allocation(), Life::default())).collect();
        for live in self.live.iter().filter(|live| !live.is_waiting) {
            if let Some(life) = lives.get_mut(&live.number) {
                (life.now, life.has_begun) = (Some(live.number), true);
            }
        }
        let edited = Self {
            start: self.start.clone(),
            live: self.live.clone(),
            steps: Vec::with_capacity(self.steps.len() + edits.len()),
            asked: self.asked.clone(),
            sources: self.sources.clone(),
            recorded: Default::default(),
            capacity: self.capacity,
            lost: self.lost,
        };
        let mut editor = Editor { edited, lives };
        let mut edits = edits.into_iter().peekable();
        for step in &self.steps {
            while let Some(edit) = edits.next_if(|edit| edit.position <= step.event) {
                editor.edit(edit);
            }
            editor.step(*step);
        }
        edits.for_each(|edit| editor.edit(edit));
        editor.edited
    }
}

impl Editor {
    fn push(&mut self, event: u32, act: Act) {
        self.edited.steps.push(RequestStep { event, act });
    }

    /// Asks for as much as an allocation did; returns the number of the new request.
    fn ask(&mut self, event: u32, like: u32) -> Option<u32> {
        let asked = self.edited.asked.get(like as usize).copied()?;
        let number = u32::try_from(self.edited.asked.len()).ok()?;
        self.edited.asked.push(asked);
        self.push(event, Act::Malloc(number));
        Some(number)
    }

    fn edit(&mut self, Edit { position, act }: Edit) {
        let number = act.allocation();
        let Some(mut life) = self.lives.get(&number).copied() else { return };
        // The event that leads to the position.
        let event = position.saturating_sub(1);
        match act {
            EditAct::Free(_) => {
                if let Some(live) = life.now.take() {
                    self.push(event, Act::Free(live));
                }
            }
            EditAct::Again(_) => {
                if life.now.is_none() && life.has_begun && !life.is_over {
                    life.now = self.ask(event, number);
                }
            }
            EditAct::Keep(_) => life.is_kept = true,
            EditAct::Copy(_) => {
                if life.copy.is_none() {
                    life.copy = self.ask(event, number);
                }
            }
            EditAct::FreeCopy(_) => {
                if let Some(copy) = life.copy.take() {
                    self.push(event, Act::Free(copy));
                }
            }
        }
        self.lives.insert(number, life);
    }

    /// Takes over what the program did, as far as it still does it.
    fn step(&mut self, step: RequestStep) {
        let number = match step.act {
            Act::Malloc(number) | Act::Free(number) | Act::FreeLater(number) | Act::Settled(number) => number,
            Act::Failed(_) | Act::EmptyCache | Act::EndPool(_) | Act::LeavePool(_) => {
                self.edited.steps.push(step);
                return;
            }
        };
        let Some(life) = self.lives.get_mut(&number) else {
            self.edited.steps.push(step);
            return;
        };
        let act = match step.act {
            Act::Malloc(_) => {
                (life.now, life.has_begun) = (Some(number), true);
                Some(step.act)
            }
            Act::Free(_) | Act::FreeLater(_) => {
                life.is_over = true;
                let freed = if life.is_kept { None } else { life.now.take() };
                match step.act {
                    Act::FreeLater(_) => {
                        life.waits = freed;
                        freed.map(Act::FreeLater)
                    }
                    _ => freed.map(Act::Free),
                }
            }
            // Of what waited for a stream at the start, nothing was changed.
            _ if !life.has_begun => Some(step.act),
            _ => life.waits.take().map(Act::Settled),
        };
        if let Some(act) = act {
            self.push(step.event, act);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use allocator::{AllocatorConfig, Profile};
    use proptest::prelude::*;
    use replay::Replay;
    use trace::units::Address;

    use super::*;
    use crate::Terms;
    use EditAct::{Again, Copy, Free, FreeCopy, Keep};

    const MIB: u64 = 1 << 20;

    fn ample() -> Terms {
        Terms::ample(Profile::ALL[0], AllocatorConfig::default())
    }

    fn requests(lines: &str) -> Requests {
        let mut snapshot = trace::testing::snapshot(lines);
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        Requests::of(&trace, (&snapshot.symbols, &snapshot.tags), &replay, &snapshot.settings)
    }

    /// The most bytes in live allocations, and in segments, in MiB.
    fn peaks(requests: &Requests) -> (u64, u64) {
        let outcome = requests.run(&ample()).unwrap();
        (outcome.peak_allocated / MIB, outcome.peak_reserved / MIB)
    }

    fn edits(edits: &[(u32, EditAct)]) -> Vec<Edit> {
        edits.iter().map(|&(position, act)| Edit { position, act }).collect()
    }

    /// Three tensors of 20, 60 and 40 MiB, each made by two events, and freed by two in the opposite order.
    fn three() -> Requests {
        let size = |mib: u64| mib * MIB;
        let begin: String = [(0x1000_0000_u64, 20), (0x2000_0000, 60), (0x3000_0000, 40)]
            .iter()
            .map(|&(at, mib)| format!("segment_alloc {at:#x} {0}\nalloc {at:#x} {0} f@m.py:1\n", size(mib)))
            .collect();
        requests(&(begin + "free 0x30000000\nfree 0x20000000\nfree 0x10000000"))
    }

    #[test]
    fn what_is_freed_earlier_or_asked_for_again_is_counted_to_the_byte() {
        type Case<'a> = (&'a [(u32, EditAct)], (u64, u64));
        let cases: [Case<'_>; 8] = [
            (&[], (120, 120)),
            // The third takes the memory of the second.
            (&[(4, Free(1))], (80, 80)),
            // So does the second, once the third is freed. Before that, it needs memory of its own.
            (&[(4, Free(1)), (8, Again(1))], (80, 80)),
            (&[(4, Free(1)), (6, Again(1))], (120, 140)),
            // After the recording freed it, nothing comes back.
            (&[(4, Free(1)), (99, Again(1))], (80, 80)),
            // A copy is there beside it, until it is freed.
            (&[(6, Copy(2))], (160, 160)),
            (&[(6, Copy(2)), (6, FreeCopy(2)), (6, Copy(2))], (160, 160)),
            // The third is kept while the second, which is freed, has a copy.
            (&[(6, Keep(2)), (10, Copy(1)), (12, Free(2)), (12, FreeCopy(1))], (120, 120)),
        ];
        for (list, want) in cases {
            assert_eq!(peaks(&three().edited(&edits(list))), want, "{list:?}");
        }
    }

    #[test]
    fn edits_that_are_not_possible_change_nothing() {
        let whole = three();
        for list in
            [&[(0, Free(0)), (0, Again(0)), (1, FreeCopy(1)), (3, Again(0))][..], &[(4, Free(99)), (4, Copy(99))]]
        {
            assert_eq!(whole.edited(&edits(list)).steps, whole.steps, "{list:?}");
        }
    }

    #[test]
    fn what_was_cached_at_the_start_is_released() {
        // The first event is a free of what was there, and all of the other segment was cached.
        let mut snapshot =
            trace::testing::snapshot("segment_alloc 0x10000000 41943040\nalloc 0x10000000 41943040 f@m.py:1");
        let trace = &mut snapshot.devices[0];
        let cached = trace.segments[0].clone();
        trace.segments.push(trace::Segment { address: Address(0x2000_0000), blocks: Vec::new(), ..cached });
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let whole = Requests::of(&trace, (&snapshot.symbols, &snapshot.tags), &replay, &snapshot.settings);
        assert_eq!((whole.reserved_at_start() / MIB, peaks(&whole)), (40, (40, 40)));
        let after = whole.without_cache_at_start().run(&ample()).unwrap();
        assert_eq!((after.device_frees, after.reserved_end / MIB), (1, 40));
    }

    /// Asserts that nothing is freed that isn't live, and returns the bytes that stay live.
    fn walk(requests: &Requests) -> u64 {
        let mut live: BTreeMap<u32, u64> = BTreeMap::new();
        let size = |number: u32| requests.asked[number as usize].size;
        live.extend(requests.live.iter().map(|live| (live.number, size(live.number))));
        for step in &requests.steps {
            match step.act {
                Act::Malloc(number) => assert_eq!(live.insert(number, size(number)), None),
                Act::Free(number) | Act::FreeLater(number) => assert!(live.remove(&number).is_some()),
                _ => {}
            }
        }
        live.values().sum()
    }

    proptest! {
        #[test]
        fn an_edited_stream_is_balanced(
            list in proptest::collection::vec((0_u32..14, 0_u32..4, 0_u8..5), 0..40),
        ) {
            let act = |of: u32, kind: u8| match kind {
                0 => Free(of),
                1 => Again(of),
                2 => Keep(of),
                3 => Copy(of),
                _ => FreeCopy(of),
            };
            let list: Vec<Edit> =
                list.into_iter().map(|(position, of, kind)| Edit { position, act: act(of, kind) }).collect();
            let edited = three().edited(&list);
            let left = walk(&edited);
            let needs_care = |edit: &Edit| matches!(edit.act, Keep(_) | Copy(_));
            prop_assert!(left == 0 || list.iter().any(needs_care), "{left} bytes stay");
            prop_assert!(edited.run(&ample()).is_ok());
        }
    }
}
