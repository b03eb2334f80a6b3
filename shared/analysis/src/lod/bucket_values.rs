//! A value at every position, a bucket at a time, in as few bytes as the bucket's values need.

/// Values of whole buckets. Neighbouring values are close to each other, and many are multiples of 512: a bucket stores
/// how far each is above the smallest, without the zeros that all end in.
#[derive(Clone, Debug, Default)]
pub(super) struct BucketValues {
    buckets: Vec<Bucket>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    smallest: u64,
    /// Where its bytes begin.
    from: usize,
    /// Number of values.
    count: u32,
    /// Bytes of each value.
    width: u8,
    shift: u8,
}

impl BucketValues {
    /// Appends a bucket.
    pub(super) fn push(&mut self, values: impl Iterator<Item = u64> + Clone) {
        let smallest = values.clone().min().unwrap_or(0);
        let (set, count) = values.clone().fold((0, 0), |(set, count), value| (set | (value - smallest), count + 1));
        let shift = if set == 0 { 0 } else { set.trailing_zeros() as u8 };
        let width = (u64::BITS - (set >> shift).leading_zeros()).div_ceil(u8::BITS) as u8;
        self.buckets.push(Bucket { smallest, from: self.bytes.len(), count, width, shift });
        if width > 0 {
            for value in values {
                let bytes = ((value - smallest) >> shift).to_le_bytes();
                self.bytes.extend_from_slice(bytes.get(..usize::from(width)).unwrap_or(&bytes));
            }
        }
    }

    /// Removes the buckets from `bucket` on.
    pub(super) fn truncate(&mut self, bucket: usize) {
        if let Some(first) = self.buckets.get(bucket) {
            self.bytes.truncate(first.from);
            self.buckets.truncate(bucket);
        }
    }

    /// Returns the values of a bucket; none if there is no such bucket.
    pub(super) fn bucket(&self, bucket: usize) -> impl Iterator<Item = u64> + '_ {
        let found = self.buckets.get(bucket).copied();
        let Bucket { smallest, from, count, width, shift } =
            found.unwrap_or(Bucket { smallest: 0, from: 0, count: 0, width: 0, shift: 0 });
        let width = usize::from(width);
        (0..count as usize).map(move |i| {
            let mut word = [0; size_of::<u64>()];
            let at = from + i * width;
            if let (Some(to), Some(bytes)) = (word.get_mut(..width), self.bytes.get(at..at + width)) {
                to.copy_from_slice(bytes);
            }
            smallest + (u64::from_le_bytes(word) << shift)
        })
    }

    /// Returns the memory that the values take, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>() + self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn buckets_are_read_as_they_were_written(
            buckets in proptest::collection::vec((0_u32..60, proptest::collection::vec(any::<u64>(), 0..9)), 0..9),
            cut in 0_usize..10,
        ) {
            let scaled = |(shift, values): &(u32, Vec<u64>)| values.iter().map(|value| value >> shift << (shift / 2)).collect();
            let buckets: Vec<Vec<u64>> = buckets.iter().map(scaled).collect();
            let mut written = BucketValues::default();
            buckets.iter().for_each(|values| written.push(values.iter().copied()));
            let read = |written: &BucketValues| (0..10).map(|i| written.bucket(i).collect()).collect::<Vec<Vec<u64>>>();
            let want = |count: usize| (0..10).map(|i| buckets.iter().take(count).nth(i).cloned().unwrap_or_default()).collect::<Vec<_>>();
            prop_assert_eq!(read(&written), want(10));
            written.truncate(cut);
            prop_assert_eq!(read(&written), want(cut));
            buckets.iter().skip(cut).for_each(|values| written.push(values.iter().copied()));
            prop_assert_eq!(read(&written), want(10));
        }
    }

    #[test]
    fn equal_values_take_no_bytes() {
        let mut values = BucketValues::default();
        values.push([1 << 40; 256].into_iter());
        assert!(values.bytes.is_empty());
        values.push((0..256).map(|i| (1 << 40) + i % 16 * 512));
        assert_eq!(values.bytes.len(), 256);
    }
}
