//! The gaps of a live session's memory, for the metrics.
//!
//! They are computed when the metrics are read and not with each batch: a look at all blocks costs some milliseconds, and
//! Prometheus asks every few seconds.

use std::time::Instant;

use replay::FreeSums;

/// The free memory of one device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceGaps {
    /// The device's number.
    pub device: i64,
    /// Its sums.
    pub sums: FreeSums,
}

/// The gaps as of the last look.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// The number of the batch that they belong to.
    seq: u64,
    /// The time before which they are not computed again.
    next: Option<Instant>,
    devices: Vec<DeviceGaps>,
}

impl Gaps {
    /// Returns whether the gaps should be computed again for a session with the last batch `seq`.
    pub(super) fn is_due(&self, seq: u64) -> bool {
        self.seq != seq && self.next.is_none_or(|next| next <= Instant::now())
    }

    /// Computes the gaps with `look`, which also returns the number of the last batch. They are due again after `pause` times
    /// as long as that takes.
    pub(super) fn take(&mut self, pause: u32, look: impl FnOnce() -> (u64, Vec<DeviceGaps>)) {
        let start = Instant::now();
        (self.seq, self.devices) = look();
        self.next = start.elapsed().checked_mul(pause).and_then(|pause| start.checked_add(pause));
    }

    /// Returns the gaps.
    pub(super) fn devices(&self) -> Vec<DeviceGaps> {
        self.devices.clone()
    }
}
