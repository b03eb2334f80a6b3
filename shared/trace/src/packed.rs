//! A chunk of a column in as few bytes as its values need.

/// Values that a column can hold, as numbers whose order is theirs.
pub trait Value: Copy {
    /// The value as an unsigned number. Larger values have larger numbers.
    fn to_bits(self) -> u64;
    /// The value of a number that [`Value::to_bits`] returned.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! unsigned_values {
    ($($name:ty)*) => {$(
        impl Value for $name {
            #[inline]
            fn to_bits(self) -> u64 {
                self as u64
            }

            #[inline]
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
        }
    )*};
}

unsigned_values!(u8 u32 u64 usize);

impl Value for i64 {
    #[inline]
    fn to_bits(self) -> u64 {
        // Moves zero to the middle, so that negative numbers come first.
        (self as u64) ^ (1 << 63)
    }

    #[inline]
    fn from_bits(bits: u64) -> Self {
        (bits ^ (1 << 63)) as i64
    }
}

/// Bytes that are read at once, whatever the width of a value.
const WORD: usize = size_of::<u64>();

/// Values as multiples of a power of two above the smallest of them, each in the same number of whole bytes.
///
/// Addresses and block sizes are multiples of 512, times of one chunk lie within seconds, and stacks and tags are few:
/// a trace takes about half the memory that its values would take as they are.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    /// The smallest value.
    base: u64,
    /// How far the stored numbers are shifted to the right.
    shift: u32,
    /// Bytes of each stored number, 0 to 8.
    width: usize,
    /// Selects the bytes of one stored number from a word.
    mask: u64,
    /// Number of values.
    len: usize,
    /// The numbers, little-endian, one after the other, with room behind them to read a whole word at each.
    bytes: Vec<u8>,
}

impl Packed {
    /// Packs values.
    pub(super) fn new<T: Value>(values: &[T]) -> Self {
        let bits = || values.iter().map(|value| value.to_bits());
        let base = bits().min().unwrap_or(0);
        let (largest, set) = bits().fold((0, 0), |(largest, set), value| {
            let above = value - base;
            (above.max(largest), above | set)
        });
        let shift = if set == 0 { 0 } else { set.trailing_zeros() };
        let width = (u64::BITS - (largest >> shift).leading_zeros()).div_ceil(u8::BITS) as usize;
        let mask = if width == WORD { u64::MAX } else { (1 << (width as u32 * u8::BITS)) - 1 };
        let mut bytes = vec![0; values.len() * width + WORD];
        for (i, value) in bits().enumerate() {
            // Each word is written whole; the next one overwrites what is beyond the width.
            if let Some(word) = bytes.get_mut(i * width..).and_then(|rest| rest.first_chunk_mut::<WORD>()) {
                *word = ((value - base) >> shift).to_le_bytes();
            }
        }
        Self { base, shift, width, mask, len: values.len(), bytes }
    }

    /// Bytes of memory that the values take.
    pub(super) fn memory(&self) -> usize {
        self.bytes.len()
    }

    /// The value at `i`, if there is one.
    #[inline]
    pub(super) fn get<T: Value>(&self, i: usize) -> Option<T> {
        if i >= self.len {
            return None;
        }
        let word = self.bytes.get(i * self.width..)?.first_chunk::<WORD>()?;
        let number = u64::from_le_bytes(*word) & self.mask;
        Some(T::from_bits(self.base + (number << self.shift)))
    }

    /// All values, as they were before.
    pub(super) fn unpack<T: Value>(&self) -> Vec<T> {
        (0..self.len).filter_map(|i| self.get(i)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check<T: Value + PartialEq + std::fmt::Debug>(values: &[T], width: usize) {
        let packed = Packed::new(values);
        assert_eq!(packed.unpack::<T>(), values);
        assert_eq!((packed.width, packed.len), (width, values.len()));
        assert_eq!(packed.get::<T>(values.len()), None);
    }

    #[test]
    fn values_take_the_bytes_that_their_range_needs() {
        check::<u64>(&[], 0);
        check(&[7_u64; 5], 0);
        check(&[0_u8, 255], 1);
        check(&[0x7f20_0000_0000_u64, 0x7f20_0000_0200, 0x7f20_0001_fe00], 1);
        check(&[0x7f20_0000_0000_u64, 0x7f20_0002_0000], 1);
        check(&[0x7f20_0000_0000_u64, 0x7f20_0000_0200, 0x7f34_0000_0000], 4);
        check(&[0_u64, u64::MAX], 8);
        check(&[1_u64, u64::MAX], 8);
        check(&[i64::MIN, -1, 0, 1, i64::MAX], 8);
        check(&[-3_i64, 0, 252], 1);
        check(&[5_u32, u32::MAX], 4);
        check(&[0_u32, 1 << 16], 1);
        check(&[1_u32, 1 << 16], 2);
        check(&[0_u32, 1 << 16, 1], 3);
    }

    proptest! {
        #[test]
        fn packing_loses_nothing(values: Vec<i64>, small in proptest::collection::vec(0_u64..1 << 20, 0..99), shift in 0_u32..40) {
            prop_assert_eq!(Packed::new(&values).unpack::<i64>(), values);
            let shifted: Vec<u64> = small.iter().map(|value| value << shift).collect();
            prop_assert_eq!(Packed::new(&shifted).unpack::<u64>(), shifted);
        }
    }
}
