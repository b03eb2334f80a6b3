//! A growing column of plain values that never moves what it holds.

/// Values in one chunk. A chunk of eight-byte values is 512 KiB: large enough that the per-chunk cost vanishes, small
/// enough that a column that grows live never copies, and that WebAssembly's heap is not torn by doubling vectors.
pub const CHUNK: usize = 1 << 16;

/// An append-only array in chunks of [`CHUNK`] values, each of which can be changed at any time.
#[derive(Clone, Debug)]
pub struct PlainColumn<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for PlainColumn<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Copy> PlainColumn<T> {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the column has no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends one value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len.is_multiple_of(CHUNK) {
            // The first chunk grows by doubling, so that a small column stays small.
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
        if let Some(slot) = self.chunks.get_mut(i / CHUNK).and_then(|chunk| chunk.get_mut(i % CHUNK)) {
            *slot = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_reads_as_the_vector_it_stands_for() {
        for n in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7] {
            let mut column = PlainColumn::default();
            (0..n).for_each(|value| column.push(value));
            assert_eq!((column.len(), column.is_empty()), (n, n == 0));
            assert!((0..n).all(|i| column.get(i) == Some(i)));
            column.set(n, 7);
            assert_eq!(column.get(n), None);
            column.set(n / 2, 7);
            assert_eq!(column.get(n / 2), (n > 0).then_some(7));
        }
    }
}
