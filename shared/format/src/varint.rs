//! Variable-length integers (LEB128): seven bits a byte, lowest first, with the eighth bit set on all but the last
//! byte. Signed integers are zigzag-encoded first (0, -1, 1, -2, … become 0, 1, 2, 3, …), so that small ones stay
//! short.

use trace::error::{Checked, damaged};

/// Zigzag-encodes a signed number: 0, -1, 1, -2 become 0, 1, 2, 3.
#[inline]
pub(crate) const fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

/// Decodes a number that [`zigzag`] encoded.
#[inline]
pub(crate) const fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

/// Appends a number.
#[inline]
pub(crate) fn push(bytes: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        bytes.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    bytes.push((n & 0x7f) as u8);
}

/// Reads numbers from a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Varints<'a> {
    rest: &'a [u8],
}

impl<'a> Varints<'a> {
    pub(crate) fn new(column: &'a [u8]) -> Self {
        Self { rest: column }
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns how many bytes are left: a number takes one at least.
    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    /// Returns how many numbers are left, if all of them are whole.
    pub(crate) fn count(&self) -> usize {
        self.rest.iter().filter(|byte| **byte < 0x80).count()
    }

    /// Returns the next number. Not inlined: most columns are short, and the page's code stays small.
    #[inline(never)]
    pub(crate) fn next(&mut self) -> Checked<u64> {
        self.fast()
    }

    /// Returns the next number; inlined, for long columns.
    #[inline]
    pub(crate) fn fast(&mut self) -> Checked<u64> {
        match self.rest {
            // Most numbers take one or two bytes.
            [a, rest @ ..] if *a < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*a))
            }
            [a, b, rest @ ..] if *b < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*a & 0x7f) | u64::from(*b) << 7)
            }
            _ => self.long(),
        }
    }

    /// Decodes up to eight bytes at once, without a branch for each: an address or a size takes four or five.
    #[inline]
    fn long(&mut self) -> Checked<u64> {
        if let Some((&eight, _)) = self.rest.split_first_chunk::<8>() {
            let word = u64::from_le_bytes(eight);
            // The first byte without its eighth bit ends the number.
            let ends = !word & 0x8080_8080_8080_8080;
            if ends != 0 {
                let count = ends.trailing_zeros() as usize / 8 + 1;
                let bits = word & (u64::MAX >> (64 - 8 * count)) & 0x7f7f_7f7f_7f7f_7f7f;
                let pairs = (bits & 0x007f_007f_007f_007f) | (bits & 0x7f00_7f00_7f00_7f00) >> 1;
                let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
                self.rest = self.rest.get(count..).unwrap_or(&[]);
                return Ok((fours & 0x0fff_ffff) | (fours >> 32) << 28);
            }
        }
        self.slow()
    }

    #[cold]
    fn slow(&mut self) -> Checked<u64> {
        let mut n = 0;
        // 64 bits take at most ten bytes, the tenth one bit.
        for (i, &byte) in self.rest.iter().take(10).enumerate() {
            if i == 9 && byte > 1 {
                break;
            }
            n |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.rest = self.rest.get(i + 1..).unwrap_or(&[]);
                return Ok(n);
            }
        }
        Err(damaged("a column ends too early, or a number in it is too long"))
    }

    /// Returns the next number, which must fit in 32 bits.
    #[inline(never)]
    pub(crate) fn small(&mut self) -> Checked<u32> {
        u32::try_from(self.next()?).map_err(|_| damaged("a number is too large for its field"))
    }

    /// Returns the next zigzag-encoded number.
    #[inline(never)]
    pub(crate) fn signed(&mut self) -> Checked<i64> {
        self.next().map(unzigzag)
    }

    /// Returns the next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Checked<&'a [u8]> {
        let (bytes, rest) =
            self.rest.split_at_checked(count).ok_or_else(|| damaged("a column is shorter than declared"))?;
        self.rest = rest;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_take_as_few_bytes_as_possible() {
        let cases: &[(u64, usize)] =
            &[(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::from(u32::MAX), 5), (u64::MAX, 10)];
        for &(n, length) in cases {
            let mut bytes = Vec::new();
            push(&mut bytes, n);
            assert_eq!(bytes.len(), length, "{n}");
            let mut read = Varints::new(&bytes);
            assert_eq!(read.next().unwrap(), n);
            assert!(read.is_empty() && read.next().is_err());
        }
        for (n, encoded) in [(0, 0), (-1, 1), (1, 2), (i64::MIN, u64::MAX), (i64::MAX, u64::MAX - 1)] {
            assert_eq!((zigzag(n), unzigzag(encoded)), (encoded, n));
        }
        for hostile in [&[0x80; 11][..], &[0xff; 10], &[0x80], &[]] {
            assert!(Varints::new(hostile).next().is_err(), "{hostile:?}");
        }
    }

    proptest! {
        #[test]
        fn a_column_reads_as_it_was_written(
            numbers in prop::collection::vec((any::<u64>(), any::<i64>(), 0_u32..64), 0..50),
        ) {
            // Shifted, so that every length occurs.
            let numbers: Vec<(u64, i64)> = numbers.iter().map(|&(n, signed, by)| (n >> by, signed >> by)).collect();
            let mut bytes = Vec::new();
            for &(n, signed) in &numbers {
                push(&mut bytes, n);
                push(&mut bytes, zigzag(signed));
            }
            let mut read = Varints::new(&bytes);
            for &(n, signed) in &numbers {
                prop_assert_eq!((read.next().unwrap(), read.signed().unwrap()), (n, signed));
            }
            prop_assert!(read.is_empty());
        }
    }
}
