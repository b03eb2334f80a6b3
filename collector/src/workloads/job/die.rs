//! Chance that is the same in every run.

/// Pseudo-random numbers by splitmix64 (Steele et al. 2014), from a seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Die(pub(super) u64);

impl Die {
    /// A number below `sides`; 0 where there are none.
    #[inline]
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        mixed.checked_rem(sides).unwrap_or(0)
    }
}
