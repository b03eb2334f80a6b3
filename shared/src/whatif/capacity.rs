//! The smallest device on which a run fits.

use super::requests::Requests;
use super::terms::{AMPLE, Terms};
use crate::allocator::DriverError;
use crate::trace::{BlockState, Segment};

/// The step between capacities that are tried: 2 MiB, the unit in which drivers give out memory.
pub const GRANULE: u64 = 2 << 20;

impl Requests {
    /// Returns the least memory in bytes that the process must be able to have, in whole granules of 2 MiB, so that no
    /// request fails; with one granule less, one does. What others hold comes on top of it. A run that stops because a request
    /// is served that failed in the recording counts up to there.
    ///
    /// A fraction is left out: it says how much of a device is used, and the question is how large the device must be.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn smallest_capacity(&self, terms: &Terms) -> Result<u64, DriverError> {
        let terms = Terms { held_by_others: 0, fraction: None, ..terms.clone() };
        let fits = |granules: u64| -> Result<bool, DriverError> {
            Ok(!self.run(&terms.on(granules.saturating_mul(GRANULE)))?.fails())
        };
        let ample = self.run(&terms.on(AMPLE))?;
        // What it reserves where nothing is short is nearly always enough; a small device also gives short ranges of addresses
        // to expandable segments.
        let mut enough = ample.peak_reserved.div_ceil(GRANULE);
        while !fits(enough)? && enough < AMPLE / GRANULE {
            enough += enough / 8 + 1;
        }
        // Less than what was live at one moment is too little, and so is less than what it began with.
        let at_start = self
            .start
            .iter()
            .filter(|segment| is_held(segment))
            .fold(0_u64, |sum, segment| sum.saturating_add(segment.size));
        let least = at_start.max(self.bounds().exact_fit).div_ceil(GRANULE);
        let mut short = least.saturating_sub(1).min(enough.saturating_sub(1));
        while enough - short > 1 {
            let middle = short + (enough - short) / 2;
            if fits(middle)? {
                enough = middle;
            } else {
                short = middle;
            }
        }
        Ok(enough.max(least).saturating_mul(GRANULE))
    }
}

/// Whether a segment can't be released.
fn is_held(segment: &Segment) -> bool {
    segment.blocks.iter().any(|block| block.state != BlockState::Inactive)
}
