//! A growing column of plain values that never moves what it holds.

/// Values in one chunk. A chunk of eight-byte values is 512 KiB: large enough that the per-chunk cost vanishes, small
/// enough that a column that grows live never copies, and that WebAssembly's heap is not torn by doubling vectors.
pub const CHUNK: usize = 1 << 16;

/// An append-only array in chunks of [`CHUNK`] values, each of which can be changed at any time.
#[derive(Clone, Debug)]
pub struct PlainColumn<T> {
    /// The whole chunks.
    chunks: Vec<Vec<T>>,
    /// The values after them. The first chunk grows by doubling, so that a small column stays small.
    tail: Vec<T>,
}

impl<T> Default for PlainColumn<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), tail: Vec::new() }
    }
}

impl<T: Copy> PlainColumn<T> {
    /// Returns the number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.chunks.len() * CHUNK + self.tail.len()
    }

    /// Returns whether the column has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of memory that the values take.
    pub fn memory(&self) -> usize {
        (self.chunks.len() * CHUNK + self.tail.capacity()) * size_of::<T>()
    }

    /// Appends one value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.tail.len() == CHUNK {
            self.next_chunk();
        }
        self.tail.push(value);
    }

    #[cold]
    fn next_chunk(&mut self) {
        self.chunks.push(std::mem::replace(&mut self.tail, Vec::with_capacity(CHUNK)));
    }

    /// Returns the value at `i`, if there is one.
    #[inline]
    pub fn get(&self, i: usize) -> Option<T> {
        match self.chunks.get(i / CHUNK) {
            Some(chunk) => chunk.get(i % CHUNK).copied(),
            None => self.tail.get(i - self.chunks.len() * CHUNK).copied(),
        }
    }

    /// Replaces the value at `i`; does nothing if there is none.
    #[inline]
    pub fn set(&mut self, i: usize, value: T) {
        let whole = self.chunks.len() * CHUNK;
        let slot = match self.chunks.get_mut(i / CHUNK) {
            Some(chunk) => chunk.get_mut(i % CHUNK),
            None => self.tail.get_mut(i - whole),
        };
        if let Some(slot) = slot {
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
