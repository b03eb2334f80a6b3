//! A growing column of plain values, which are never moved.

/// The number of values in one chunk. A chunk of eight-byte values has 512 KiB: large enough that the cost of a chunk
/// is negligible, small enough that WebAssembly's heap is not fragmented by doubling vectors.
pub const CHUNK: usize = 1 << 16;

/// An append-only array in chunks of [`CHUNK`] values.
#[derive(Clone, Debug)]
pub struct Column<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Copy> Column<T> {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends one value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len.is_multiple_of(CHUNK) {
            // The first chunk grows by doubling, so that a small trace stays small.
            self.chunks.push(if self.chunks.is_empty() { Vec::new() } else { Vec::with_capacity(CHUNK) });
        }
        if let Some(last) = self.chunks.last_mut() {
            last.push(value);
            self.len += 1;
        }
    }

    /// Returns the value at `i`, if there is one.
    #[inline]
    pub fn get(&self, i: usize) -> Option<T> {
        self.chunks.get(i / CHUNK)?.get(i % CHUNK).copied()
    }

    /// Replaces the value at `i`; does nothing if there is none.
    #[inline]
    pub fn set(&mut self, i: usize, value: T) {
        if let Some(slot) = self.chunks.get_mut(i / CHUNK).and_then(|c| c.get_mut(i % CHUNK)) {
            *slot = value;
        }
    }

    /// Returns the values in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = T> + '_ {
        self.chunks.iter().flat_map(|c| c.iter().copied())
    }

    /// Returns the values of `range` in order, as contiguous slices.
    pub fn slices(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = &[T]> + '_ {
        let end = range.end.min(self.len);
        let mut at = range.start.min(end);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let chunk = self.chunks.get(at / CHUNK)?;
            let from = at % CHUNK;
            let to = chunk.len().min(from + (end - at));
            at += to - from;
            chunk.get(from..to)
        })
    }

    /// Splits the column at `at`: keeps the values before, and returns the others.
    pub fn split_off(&mut self, at: usize) -> Self {
        let at = at.min(self.len);
        if at == 0 {
            return std::mem::take(self);
        }
        let mut tail = Self::default();
        for slice in self.slices(at..self.len) {
            for &value in slice {
                tail.push(value);
            }
        }
        self.chunks.truncate(at.div_ceil(CHUNK));
        if let Some(last) = self.chunks.last_mut() {
            last.truncate(at - (at - 1) / CHUNK * CHUNK);
        }
        self.len = at;
        tail
    }
}

impl<T: Copy> FromIterator<T> for Column<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut column = Self::default();
        for value in values {
            column.push(value);
        }
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_equals_a_vector() {
        for n in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7] {
            let want: Vec<usize> = (0..n).collect();
            let column: Column<usize> = want.iter().copied().collect();
            assert_eq!(column.len(), n);
            assert_eq!(column.iter().collect::<Vec<_>>(), want);
            assert_eq!(column.get(n), None);
            for cut in [0, 1, n / 2, CHUNK, n] {
                let cut = cut.min(n);
                let mut head = column.clone();
                let tail = head.split_off(cut);
                assert_eq!(head.iter().collect::<Vec<_>>(), want[..cut]);
                assert_eq!(tail.iter().collect::<Vec<_>>(), want[cut..]);
                let sliced: Vec<usize> = column.slices(cut..n).flatten().copied().collect();
                assert_eq!(sliced, want[cut..]);
                // Both halves can still grow.
                let mut grown = head;
                grown.push(9);
                assert_eq!((grown.len(), grown.get(cut)), (cut + 1, Some(9)));
            }
        }
    }
}
