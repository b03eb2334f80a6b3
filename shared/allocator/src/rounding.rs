//! The sizes of blocks and segments, as PyTorch computes them from a request.

use trace::Divisions;

/// The quantum of block sizes (`kMinBlockSize`).
pub const MIN_BLOCK: u64 = 512;
/// Rounded sizes up to this one are served by small pools (`kSmallSize`).
pub const SMALL_SIZE: u64 = 1 << 20;
/// The size of a small pool's segment, and of its expandable pages (`kSmallBuffer`).
pub const SMALL_BUFFER: u64 = 2 << 20;
/// Requests of at least this rounded size get a segment of their own (`kMinLargeAlloc`).
pub const MIN_LARGE_ALLOC: u64 = 10 << 20;
/// The size of a large pool's segment for requests below 10 MiB, and of its expandable pages, unless
/// `large_segment_size_mb` says otherwise (`kLargeBuffer`).
pub const LARGE_BUFFER: u64 = 20 << 20;
/// The size of a request's own segment is a multiple of this (`kRoundLarge`).
pub const ROUND_LARGE: u64 = 2 << 20;
/// In a large pool without expandable segments, a remainder of at most this size stays with its block.
pub const LARGE_REMAINDER: u64 = 1 << 20;
/// Requests of at least this size fail at once: one exbibyte.
pub const TOO_LARGE: u64 = 1 << 60;

/// Returns the largest request that a gap of a small or a large pool can serve without the driver.
///
/// Requests up to 1 MiB go to small pools, larger ones to large pools. So a small pool serves 1 MiB at most, and a gap of
/// a large pool that is not larger than that serves nothing. (Only expandable segments have such gaps.)
#[inline]
pub const fn largest_servable(gap: u64, is_small: bool) -> u64 {
    match (is_small, gap > SMALL_SIZE) {
        (true, true) => SMALL_SIZE,
        (true, false) | (false, true) => gap,
        (false, false) => 0,
    }
}

/// Returns the index of the entry of [`Divisions`] that applies to a request.
#[inline]
pub fn division_entry(requested: u64) -> usize {
    (requested.checked_ilog2().unwrap_or(0).saturating_sub(20) as usize).min(15)
}

/// Returns the block size for a request (PyTorch's `round_size`), before the allocator decides whether a remainder
/// stays with the block.
#[inline]
pub fn round_size(divisions: &Divisions, requested: u64) -> u64 {
    if requested < MIN_BLOCK {
        return MIN_BLOCK;
    }
    let divisions = divisions[division_entry(requested)];
    if divisions > 1 && requested > MIN_BLOCK.saturating_mul(divisions) {
        return round_to_division(requested, divisions);
    }
    requested.checked_next_multiple_of(MIN_BLOCK).unwrap_or(u64::MAX)
}

/// Rounds up to the next of the `divisions` steps between two powers of two (`roundup_power2_next_division`).
fn round_to_division(requested: u64, divisions: u64) -> u64 {
    if requested.is_power_of_two() {
        return requested;
    }
    let floor = 1_u64 << requested.ilog2();
    let step = floor >> divisions.ilog2();
    if step == 0 {
        return floor.saturating_mul(2);
    }
    requested.checked_next_multiple_of(step).unwrap_or(u64::MAX)
}

/// Returns the size of the segment that a block of `rounded` bytes needs if no cached block fits
/// (`get_allocation_size`).
#[inline]
pub fn segment_size(rounded: u64, large_segment_size: u64) -> u64 {
    if rounded <= SMALL_SIZE {
        SMALL_BUFFER
    } else if rounded < MIN_LARGE_ALLOC {
        large_segment_size
    } else {
        rounded.checked_next_multiple_of(ROUND_LARGE).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_as_pytorch_rounds_them() {
        let (plain, quarters) = ([0; 16], [4; 16]);
        let cases: &[(&Divisions, u64, u64)] = &[
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
        for &(divisions, requested, want) in cases {
            assert_eq!(round_size(divisions, requested), want, "{requested}");
        }
    }

    #[test]
    fn segments_come_in_three_classes() {
        let cases = [
            (512, 2 << 20),
            (1 << 20, 2 << 20),
            ((1 << 20) + 512, 20 << 20),
            ((10 << 20) - 512, 20 << 20),
            (10 << 20, 10 << 20),
            ((10 << 20) + 512, 12 << 20),
        ];
        for (rounded, want) in cases {
            assert_eq!(segment_size(rounded, LARGE_BUFFER), want, "{rounded}");
        }
    }
}
