//! Conversions to narrower integers that can't wrap: what does not fit becomes the largest number.

/// Returns a place in a list, or a list's length, as the tables of a trace store it. Every list is
/// [bounded](crate::limits) far below 2^32.
#[inline]
pub fn number32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns a number of bytes or items as a length in memory. One that can't be addressed, as of a file on a 32-bit machine, is
/// longer than every slice.
#[inline]
pub fn length(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_the_largest_number() {
        assert_eq!([number32(0), number32(7), number32(usize::MAX)], [0, 7, u32::MAX]);
        assert_eq!([length(0), length(7), length(u64::MAX)], [0, 7, usize::MAX]);
    }
}
