//! What each part of a program holds: weights, activations and so on.

use serde::Serialize;
use shared::budget::Part;

/// What one part held over a run, in requested bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PartUse {
    /// The part.
    pub part: Part,
    /// The most at once.
    pub peak_bytes: u64,
    /// When all parts together held most.
    pub at_peak_bytes: u64,
}

/// Running sums.
pub(super) struct Parts {
    /// What is being made now.
    pub(super) current: Part,
    now: [u64; Part::ALL.len()],
    peak: [u64; Part::ALL.len()],
    total: u64,
    total_peak: u64,
    at_peak: [u64; Part::ALL.len()],
}

impl Default for Parts {
    fn default() -> Self {
        let none = [0; Part::ALL.len()];
        Self { current: Part::Working, now: none, peak: none, total: 0, total_peak: 0, at_peak: none }
    }
}

impl Parts {
    #[inline]
    pub(super) fn grow(&mut self, bytes: u64) {
        let i = self.current as usize;
        self.now[i] += bytes;
        self.peak[i] = self.peak[i].max(self.now[i]);
        self.total += bytes;
        if self.total > self.total_peak {
            self.total_peak = self.total;
            self.at_peak = self.now;
        }
    }

    #[inline]
    pub(super) fn shrink(&mut self, part: Part, bytes: u64) {
        let now = &mut self.now[part as usize];
        *now = now.saturating_sub(bytes);
        self.total = self.total.saturating_sub(bytes);
    }

    /// All parts that held anything.
    pub(super) fn all(&self) -> Vec<PartUse> {
        Part::ALL
            .into_iter()
            .map(|part| PartUse {
                part,
                peak_bytes: self.peak[part as usize],
                at_peak_bytes: self.at_peak[part as usize],
            })
            .filter(|used| used.peak_bytes > 0)
            .collect()
    }
}
