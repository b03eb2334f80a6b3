//! The numbers that events of a device have: what is missing between two of them, and what came before.

use super::records::Gap;

/// How far the events of one device have come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    /// The sequence number of the next event; `None` before anything told one.
    pub(super) next: Option<u64>,
}

impl Sequence {
    /// Everything before `seq` has come, or never will: what is missing. `known` says what it was, where it says so.
    pub(super) fn advance(&mut self, device: i64, seq: u64, known: Option<&Gap>) -> Option<Gap> {
        let next = *self.next.get_or_insert(known.map_or(seq, |gap| gap.from));
        if seq <= next {
            return None;
        }
        let by_action = known.filter(|gap| gap.from == next).map_or_else(Default::default, |gap| gap.by_action);
        self.next = Some(seq);
        Some(Gap { device, from: next, to: seq, by_action })
    }

    /// How many of the events from `first` on came before. A chunk that is there twice, whole or in part, counts once.
    pub(super) fn known_from(&self, first: u64) -> u64 {
        self.next.map_or(0, |next| next.saturating_sub(first))
    }

    /// One more has come.
    #[inline]
    pub(super) fn count(&mut self) {
        self.next = self.next.map(|next| next + 1);
    }
}
