//! The copy of a device that begins later, prepared while the device still grows.
//!
//! ```text
//! events ───────────────●───────────────────────► the device
//!                       cut ── slices ──► catches up ─► takes its place
//! ```

use super::{Index, IndexInput, KnownState};
use trace::{DeviceTrace, Events, Segment, Settings, Tags};

/// A copy of the events after a cut, and their index.
#[derive(Debug)]
pub struct TrimmedCopy<I> {
    cut: u32,
    trace: DeviceTrace,
    index: I,
    /// How many of the device's known states were read.
    states: usize,
}

impl<I: for<'a> Index<IndexInput<'a>>> TrimmedCopy<I> {
    /// Begins a copy at position `cut` of a device, with the state there.
    pub fn begin(cut: u32, state: Vec<Segment>, tags: &mut Tags, settings: &Settings) -> Self {
        let trace = DeviceTrace::default();
        let states = vec![KnownState { position: 0, segments: state }];
        let index = I::build(IndexInput { trace: &trace, tags, settings, states });
        Self { cut, trace, index, states: 0 }
    }

    /// Returns the device's position at which the copy begins.
    pub fn cut(&self) -> u32 {
        self.cut
    }

    /// Adds at most `count` of the device's events that the copy does not have, with the known states among them.
    pub fn extend(
        &mut self,
        count: usize,
        whole: &DeviceTrace,
        states: &[KnownState],
        tags: &mut Tags,
        settings: &Settings,
    ) {
        let Self { cut, trace, index, states: looked_at } = self;
        let from = *cut as usize + trace.events.len();
        whole.events.iter_from(from).take(count).for_each(|event| trace.events.push(event));
        let to = cut.saturating_add(trace.events.len() as u32);
        let new = states.get(*looked_at..).unwrap_or(&[]).iter().take_while(|state| state.position <= to);
        *looked_at += new.clone().count();
        let shifted = new.filter_map(|state| {
            let position = state.position.checked_sub(*cut)?;
            Some(KnownState { position, segments: state.segments.clone() })
        });
        let states = shifted.collect();
        index.extend(IndexInput { trace, tags, settings, states });
    }

    /// Returns the events and the index that replace the device's.
    pub fn finish(self) -> (Events, I) {
        (self.trace.events, self.index)
    }

    /// Returns the approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        self.trace.events.memory() + self.index.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of all events: an index that has nothing to do with the allocator.
    #[derive(Debug, Default, PartialEq)]
    struct Sizes {
        sizes: Vec<u64>,
        starts: usize,
    }

    impl Index<IndexInput<'_>> for Sizes {
        fn extend(&mut self, IndexInput { trace, states, .. }: IndexInput<'_>) {
            self.sizes.extend(trace.events.iter_from(self.sizes.len()).map(|event| event.size));
            self.starts += states.len();
        }

        fn bytes(&self) -> usize {
            0
        }
    }

    #[test]
    fn a_copy_made_in_slices_has_the_events_behind_the_cut() {
        let mut snapshot = trace::testing::snapshot(
            "segment_alloc 0x1000000 20971520
             alloc 0x1000000 1000 a@/m/a.py:1
             alloc 0x1100000 300 b@/m/b.py:1
             alloc 0x1200000 2000 a@/m/a.py:1
             free 0x1000000",
        );
        let whole = snapshot.devices.remove(0);
        let state = |position| KnownState { position, segments: Vec::new() };
        let states = [state(1), state(3), state(4)];
        let (tags, settings) = (&mut snapshot.tags, &snapshot.settings);
        let mut copy: TrimmedCopy<Sizes> = TrimmedCopy::begin(2, Vec::new(), tags, settings);
        for _ in 0..whole.events.len() {
            copy.extend(1, &whole, &states, tags, settings);
        }
        assert_eq!(copy.cut(), 2);
        let (events, index) = copy.finish();
        let sizes: Vec<u64> = whole.events.iter_from(2).map(|event| event.size).collect();
        assert_eq!(events.len(), sizes.len());
        // The start, and the two known states after the cut.
        assert_eq!(index, Sizes { sizes, starts: 3 });
    }
}
