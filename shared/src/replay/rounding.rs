//! From a requested size to a block's size, as PyTorch rounds it.

use crate::trace::Settings;

/// The quantum of block sizes.
pub const MIN_BLOCK: u64 = 512;
/// Rounded sizes up to this one are served by small pools.
pub const SMALL_SIZE: u64 = 1 << 20;
/// The size of a small pool's segment.
pub const SMALL_BUFFER: u64 = 2 << 20;
/// The size of a large pool's segment for requests below 10 MiB, and of its expandable pages.
pub const LARGE_BUFFER: u64 = 20 << 20;
/// In a large pool without expandable segments, a remainder up to this size stays with its block.
pub const LARGE_REMAINDER: u64 = 1 << 20;

/// The divisions that apply to a request (`roundup_power2_divisions`); 0 and 1 are off.
fn divisions(settings: &Settings, requested: u64) -> u64 {
    let log = requested.checked_ilog2().unwrap_or(0);
    let entry = (log.saturating_sub(20) as usize).min(settings.roundup_power2_divisions.len() - 1);
    u64::from(settings.roundup_power2_divisions[entry])
}

/// The size of the block that a request asks for (PyTorch's `round_size`), before the allocator decides whether a
/// remainder stays with it.
pub fn round_size(settings: &Settings, requested: u64) -> u64 {
    if requested < MIN_BLOCK {
        return MIN_BLOCK;
    }
    let divisions = divisions(settings, requested);
    if divisions > 1 && requested > MIN_BLOCK * divisions {
        if requested.is_power_of_two() {
            return requested;
        }
        let floor = 1_u64 << requested.ilog2();
        let step = floor >> divisions.ilog2();
        if step == 0 {
            return floor.saturating_mul(2);
        }
        return requested.checked_next_multiple_of(step).unwrap_or(u64::MAX);
    }
    requested.checked_next_multiple_of(MIN_BLOCK).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_as_pytorch_rounds_them() {
        let plain = Settings::default();
        let quarters = Settings { roundup_power2_divisions: [4; 16], ..Settings::default() };
        let cases: &[(&Settings, u64, u64)] = &[
            (&plain, 0, 512),
            (&plain, 1, 512),
            (&plain, 512, 512),
            (&plain, 513, 1024),
            (&plain, (10 << 20) - 511, 10 << 20),
            (&plain, u64::MAX, u64::MAX),
            (&quarters, 1200, 1536),
            (&quarters, 2049, 2560),
            (&quarters, 5000, 5120),
            (&quarters, 4096, 4096),
            (&quarters, (5 << 20) + 1, 6 << 20),
            (&quarters, (33 << 30) + 1, 40 << 30),
        ];
        for &(settings, requested, want) in cases {
            assert_eq!(round_size(settings, requested), want, "{requested}");
        }
    }
}
