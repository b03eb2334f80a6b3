//! What a plan is to reach.

use serde::Serialize;

use crate::search::Trial;

/// What a plan is to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "bytes")]
pub enum Goal {
    /// So many bytes less are reserved at the peak.
    Save(u64),
    /// The job fits where it can have so many bytes.
    Fit(u64),
}

impl Goal {
    /// Whether a trial reaches it, and `before` is the job as it was recorded.
    pub(crate) fn is_reached(self, before: &Trial, after: &Trial) -> bool {
        match self {
            Self::Save(bytes) => before.reserved.saturating_sub(after.reserved) >= bytes,
            Self::Fit(_) => after.fits,
        }
    }

    /// Returns the bytes by which a trial misses it; 0 if it is reached.
    pub fn missing(self, before: &Trial, after: &Trial) -> u64 {
        match self {
            _ if self.is_reached(before, after) => 0,
            Self::Save(bytes) => bytes.saturating_sub(before.reserved.saturating_sub(after.reserved)),
            Self::Fit(room) => after.reserved.saturating_sub(room),
        }
    }
}
