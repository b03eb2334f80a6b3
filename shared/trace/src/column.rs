//! A growing column that packs its older values.

use super::packed::{Packed, Value};
use super::plain_column::CHUNK;

/// Whole chunks up to which a column stays plain: two million values. Packing costs about a tenth of the time that a
/// file takes to open, and only long traces need the saved memory.
const PLAIN_CHUNKS: usize = 32;

/// An append-only array in chunks of [`CHUNK`] values, for columns as long as a trace.
///
/// The newest chunks are plain, and so are all chunks of a short column. Older ones are packed: they take as many bytes
/// as their range of values needs, and are read nearly as fast. Changing a value of a packed chunk unpacks it until the
/// next [`Column::pack`].
#[derive(Clone, Debug)]
pub struct Column<T> {
    /// The whole chunks.
    chunks: Vec<Chunk<T>>,
    /// The values after them, fewer than a chunk.
    tail: Vec<T>,
    /// Chunks before this one have been packed once.
    packed: usize,
}

/// Reads values of a column. Consecutive reads within one chunk are fastest.
#[derive(Clone, Debug)]
pub struct ColumnReader<'a, T> {
    column: &'a Column<T>,
    /// The number of the chunk; that of the tail is the number of whole chunks.
    chunk: usize,
    /// The values of the chunk, unless they are packed.
    plain: &'a [T],
    packed: Option<&'a Packed>,
}

impl<T: Value> ColumnReader<'_, T> {
    /// Returns the value at `i`, if there is one.
    #[inline]
    pub fn get(&mut self, i: usize) -> Option<T> {
        if i / CHUNK != self.chunk {
            self.move_to(i / CHUNK);
        }
        match self.plain.get(i % CHUNK) {
            Some(&value) => Some(value),
            None => self.packed?.get(i % CHUNK),
        }
    }

    #[inline]
    fn move_to(&mut self, chunk: usize) {
        self.chunk = chunk;
        (self.plain, self.packed) = match self.column.chunks.get(chunk) {
            Some(Chunk { plain, packed }) => (plain.as_slice(), packed.as_ref()),
            None if chunk == self.column.chunks.len() => (self.column.tail.as_slice(), None),
            None => (&[][..], None),
        };
    }
}

/// [`CHUNK`] values, either plain or packed.
#[derive(Clone, Debug)]
struct Chunk<T> {
    /// Empty while the values are packed.
    plain: Vec<T>,
    packed: Option<Packed>,
}

impl<T: Value> Chunk<T> {
    #[inline]
    fn get(&self, i: usize) -> Option<T> {
        match &self.packed {
            Some(packed) => packed.get(i),
            None => self.plain.get(i).copied(),
        }
    }

    /// Returns the values as a vector that can be changed.
    #[inline]
    fn values_mut(&mut self) -> &mut Vec<T> {
        if self.packed.is_some() {
            self.unpack();
        }
        &mut self.plain
    }

    #[cold]
    fn unpack(&mut self) {
        if let Some(packed) = self.packed.take() {
            self.plain = packed.unpack();
        }
    }

    fn pack(&mut self) {
        if self.packed.is_none() {
            let packed = Packed::new(&self.plain);
            // Values that need all their bytes stay as they are.
            if packed.memory() < size_of_val(self.plain.as_slice()) {
                (self.packed, self.plain) = (Some(packed), Vec::new());
            }
        }
    }

    fn memory(&self) -> usize {
        self.plain.capacity() * size_of::<T>() + self.packed.as_ref().map_or(0, Packed::memory)
    }
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), tail: Vec::new(), packed: 0 }
    }
}

impl<T: Value> Column<T> {
    /// Returns the number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.chunks.len() * CHUNK + self.tail.len()
    }

    /// Returns whether the column has no values.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.tail.is_empty()
    }

    /// Appends one value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.tail.len() == CHUNK {
            self.next_chunk();
        }
        self.tail.push(value);
    }

    /// Moves the full tail to the chunks, and packs the chunk before it: only the newest values still change.
    #[cold]
    fn next_chunk(&mut self) {
        let plain = std::mem::replace(&mut self.tail, Vec::with_capacity(CHUNK));
        self.chunks.push(Chunk { plain, packed: None });
        self.pack_before(self.chunks.len().saturating_sub(1) * CHUNK);
    }

    /// Returns the value at `i`, if there is one.
    #[inline]
    pub fn get(&self, i: usize) -> Option<T> {
        match self.chunks.get(i / CHUNK) {
            Some(chunk) => chunk.get(i % CHUNK),
            None => self.tail.get(i - self.chunks.len() * CHUNK).copied(),
        }
    }

    /// Returns a reader, for loops that read neighbouring values.
    #[inline]
    pub fn reader(&self) -> ColumnReader<'_, T> {
        let mut reader = ColumnReader { column: self, chunk: 0, plain: &[], packed: None };
        reader.move_to(0);
        reader
    }

    /// Replaces the value at `i`; does nothing if there is none.
    #[inline]
    pub fn set(&mut self, i: usize, value: T) {
        let whole = self.chunks.len() * CHUNK;
        let slot = match self.chunks.get_mut(i / CHUNK) {
            Some(chunk) => chunk.values_mut().get_mut(i % CHUNK),
            None => self.tail.get_mut(i - whole),
        };
        if let Some(slot) = slot {
            *slot = value;
        }
    }

    /// Packs every whole chunk, if the column is long.
    pub fn pack(&mut self) {
        self.packed = 0;
        self.pack_before(self.len());
    }

    /// Packs the whole chunks that lie before `end`, unless they have been packed before.
    #[inline]
    pub fn pack_before(&mut self, end: usize) {
        if self.packed < end / CHUNK {
            self.pack_chunks(end / CHUNK);
        }
    }

    #[cold]
    fn pack_chunks(&mut self, end: usize) {
        if self.chunks.len() <= PLAIN_CHUNKS {
            return;
        }
        let end = end.min(self.chunks.len());
        self.chunks.get_mut(self.packed..end).unwrap_or_default().iter_mut().for_each(Chunk::pack);
        self.packed = self.packed.max(end);
    }

    /// Returns the bytes of memory that the values take.
    pub fn memory(&self) -> usize {
        self.chunks.iter().map(Chunk::memory).sum::<usize>() + self.tail.capacity() * size_of::<T>()
    }

    /// Returns all values in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = T> + '_ {
        self.range(0..self.len())
    }

    /// Returns the values of `range` in order.
    pub fn range(&self, range: std::ops::Range<usize>) -> impl DoubleEndedIterator<Item = T> + '_ {
        let mut reader = self.reader();
        (range.start..range.end.min(self.len())).filter_map(move |i| reader.get(i))
    }

    /// Cuts the column at `at`, keeps the values before, and returns those after.
    pub fn split_off(&mut self, at: usize) -> Self {
        if at == 0 {
            return std::mem::take(self);
        }
        let after: Self = self.range(at..self.len()).collect();
        if let Some(chunk) = self.chunks.get_mut(at / CHUNK) {
            self.tail = std::mem::take(chunk.values_mut());
            self.chunks.truncate(at / CHUNK);
        }
        self.tail.truncate(at.saturating_sub(self.chunks.len() * CHUNK));
        self.packed = self.packed.min(self.chunks.len());
        after
    }
}

impl<T: Value> FromIterator<T> for Column<T> {
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
    fn a_column_reads_as_the_vector_it_stands_for() {
        for n in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7, (PLAIN_CHUNKS + 2) * CHUNK + 7] {
            let want: Vec<u64> = (0..n as u64).map(|i| i * 512).collect();
            let column: Column<u64> = want.iter().copied().collect();
            check(&column, &want);
            let mut packed = column;
            packed.pack();
            check(&packed, &want);
        }
    }

    fn check(column: &Column<u64>, want: &[u64]) {
        let n = want.len();
        assert_eq!((column.len(), column.is_empty()), (n, n == 0));
        assert!(column.iter().eq(want.iter().copied()));
        assert!(column.iter().rev().eq(want.iter().rev().copied()));
        let mut reader = column.reader();
        assert!([n, 0, n / 2, n.saturating_sub(1), CHUNK].into_iter().all(|i| reader.get(i) == want.get(i).copied()));
        assert!((0..n).all(|i| reader.get(i) == want.get(i).copied()));
        assert_eq!(column.get(n), None);
        for cut in [0, 1, n / 2, CHUNK, n] {
            let cut = cut.min(n);
            let mut head = column.clone();
            let tail = head.split_off(cut);
            assert!(head.iter().eq(want[..cut].iter().copied()));
            assert!(tail.iter().eq(want[cut..].iter().copied()));
            assert!(column.range(cut..n).eq(want[cut..].iter().copied()));
            // Both halves can still grow, and packed values can be changed.
            let mut grown = head;
            grown.push(9);
            grown.set(cut / 2, 3);
            grown.pack();
            grown.set(cut + 1, 4);
            assert_eq!(grown.len(), cut + 1);
            assert_eq!(grown.get(cut / 2), Some(3));
            assert_eq!(grown.get(cut), Some(if cut == 0 { 3 } else { 9 }));
        }
    }

    #[test]
    fn history_takes_the_memory_that_it_needs() {
        let bytes = |chunks: usize| {
            let values = (0..(chunks * CHUNK) as u64).map(|i| 0x7f20_0000_0000 + i % 1000 * 512);
            values.collect::<Column<u64>>().memory()
        };
        assert_eq!(bytes(4), 4 * CHUNK * 8);
        // Two bytes a value, and two plain chunks.
        let chunks = PLAIN_CHUNKS + 8;
        assert!(bytes(chunks) < (chunks - 2) * (CHUNK * 2 + 8) + 2 * CHUNK * 8 + 1, "{}", bytes(chunks));
    }
}
