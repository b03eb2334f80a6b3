//! What each part of a program holds: weights, activations and others.

use budget::Part;
use serde::Serialize;

/// What one part held over a run, in requested bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PartUse {
    /// The part.
    pub part: Part,
    /// The most that it held at once.
    pub peak_bytes: u64,
    /// What it held when all parts together held most.
    pub at_peak_bytes: u64,
}

/// The sums of all parts while a job runs.
pub(super) struct Parts {
    /// The part that new tensors count towards.
    pub(super) current: Part,
    now: [u64; Part::ALL.len()],
    peak: [u64; Part::ALL.len()],
    total: u64,
    total_peak: u64,
    at_peak: [u64; Part::ALL.len()],
    /// The most that was held since the mark was set.
    since_mark: u64,
}

impl Default for Parts {
    fn default() -> Self {
        let none = [0; Part::ALL.len()];
        Self { current: Part::Working, now: none, peak: none, total: 0, total_peak: 0, at_peak: none, since_mark: 0 }
    }
}

impl Parts {
    /// Counts the bytes of a new tensor towards the current part.
    #[inline]
    pub(super) fn add(&mut self, bytes: u64) {
        let i = self.current as usize;
        self.now[i] += bytes;
        self.peak[i] = self.peak[i].max(self.now[i]);
        self.total += bytes;
        self.since_mark = self.since_mark.max(self.total);
        if self.total > self.total_peak {
            self.total_peak = self.total;
            self.at_peak = self.now;
        }
    }

    /// Removes the bytes of a freed tensor from its part.
    #[inline]
    pub(super) fn remove(&mut self, part: Part, bytes: u64) {
        let now = &mut self.now[part as usize];
        *now = now.saturating_sub(bytes);
        self.total = self.total.saturating_sub(bytes);
    }

    /// Sets the mark. Returns the most requested bytes that were held since the last one.
    pub(super) fn mark(&mut self) -> u64 {
        std::mem::replace(&mut self.since_mark, self.total)
    }

    /// Returns all parts that held anything.
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
