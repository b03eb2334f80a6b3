//! Random numbers that are the same in every run.

/// A pseudo-random number generator: splitmix64 (Steele et al. 2014).
#[derive(Clone, Copy, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    /// Creates a generator with a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `bound`; 0 if the bound is 0.
    #[inline]
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        mixed.checked_rem(bound).unwrap_or(0)
    }
}
