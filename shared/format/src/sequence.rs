//! Sequence numbers of a device's events: they reveal lost and repeated events.

use super::records::LostEvents;

/// The position of one device in its sequence numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequence {
    /// The sequence number of the next event; `None` until it is known.
    pub next: Option<u64>,
    /// The sequence number of the first event that was read; `None` until it is known.
    pub first: Option<u64>,
}

impl Sequence {
    /// Advances to the event `seq` and returns the events that are missing before it. `known` describes them, where the
    /// recording does.
    pub fn advance(&mut self, device: i64, seq: u64, known: Option<&LostEvents>) -> Option<LostEvents> {
        let next = *self.next.get_or_insert(known.map_or(seq, |lost| lost.from));
        self.first.get_or_insert(next);
        if seq <= next {
            return None;
        }
        let by_action = known.filter(|lost| lost.from == next).map_or_else(Default::default, |lost| lost.by_action);
        self.next = Some(seq);
        Some(LostEvents { device, from: next, to: seq, by_action })
    }

    /// Returns how many of the events from `first` on were read before: a chunk that occurs twice, in whole or in part,
    /// counts once.
    pub fn known_from(&self, first: u64) -> u64 {
        self.next.map_or(0, |next| next.saturating_sub(first))
    }

    /// Advances by one event.
    #[inline]
    pub fn count(&mut self) {
        self.next = self.next.map(|next| next + 1);
    }
}
