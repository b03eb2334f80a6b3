//! How a run's reserved memory goes up and down.

use serde::{Deserialize, Serialize};

/// The reserved bytes of a run from event to event, as two columns of one length. A value holds until the next event in the
/// list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedCurve {
    /// The events at which the reserved bytes changed, in ascending order. The first one is 0: the start.
    pub events: Vec<u32>,
    /// The reserved bytes after each of these events.
    pub reserved: Vec<u64>,
}

impl ReservedCurve {
    /// Notes the reserved bytes after an event.
    pub(super) fn note(&mut self, event: u32, reserved: u64) {
        if self.reserved.last() == Some(&reserved) {
            return;
        }
        if self.events.last() == Some(&event) {
            self.reserved.pop();
            self.events.pop();
        }
        self.events.push(event);
        self.reserved.push(reserved);
    }

    /// Returns the reserved bytes after an event; 0 for a curve without any.
    pub fn at(&self, event: u32) -> u64 {
        let after = self.events.partition_point(|at| *at <= event);
        after.checked_sub(1).and_then(|place| self.reserved.get(place)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_the_next() {
        let mut curve = ReservedCurve::default();
        assert_eq!(curve.at(3), 0);
        for (event, reserved) in [(0, 10), (4, 10), (7, 30), (7, 40), (9, 20)] {
            curve.note(event, reserved);
        }
        assert_eq!((curve.events.as_slice(), curve.reserved.as_slice()), (&[0, 7, 9][..], &[10, 40, 20][..]));
        assert_eq!([0, 6, 7, 8, 9, 100].map(|event| curve.at(event)), [10, 10, 40, 40, 20, 20]);
    }
}
