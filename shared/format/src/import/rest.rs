//! How a compressed stream ends, and of how many parts it may consist.

use trace::error::{Checked, too_much};
use trace::limits::{PACKED_PART_BYTES, PACKED_PARTS};
use trace::units::Count;

/// How a compressed stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// As it should. Zeros may follow: padding.
    Whole,
    /// Within a member or frame.
    Cut,
    /// As it should, but this many other bytes follow.
    Other(u64),
}

impl Rest {
    /// Returns how a stream ended that so many bytes follow.
    pub(super) const fn of_other_bytes(count: u64) -> Self {
        if count > 0 { Self::Other(count) } else { Self::Whole }
    }
}

/// Counts the members of a gzip stream, or the frames of a zstd stream, with what they hold.
#[derive(Debug)]
pub(super) struct Parts {
    name: &'static str,
    count: u64,
    plain: u64,
}

impl Parts {
    /// Starts to count. The name is a plural.
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, count: 0, plain: 0 }
    }

    /// Returns whether no part has begun.
    pub(super) const fn is_first(&self) -> bool {
        self.count == 0
    }

    /// Counts one more. Fails if there are far too many for what they hold.
    pub(super) fn begin(&mut self) -> Checked {
        if self.count >= PACKED_PARTS.saturating_add(self.plain / PACKED_PART_BYTES) {
            return Err(too_much(format!(
                "it has more than {} {} that are nearly empty",
                Count(PACKED_PARTS),
                self.name
            )));
        }
        self.count += 1;
        Ok(())
    }

    /// Counts decompressed bytes.
    pub(super) const fn add(&mut self, bytes: usize) {
        self.plain += bytes as u64;
    }
}
