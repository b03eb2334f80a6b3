//! Recognizes repeated lists of frames by their bytes.
//!
//! Three of four opcodes of a real snapshot are memo reads inside lists of frames. A trace of millions of entries has
//! only a few thousand distinct lists, and equal lists have equal bytes as long as no memo slot is overwritten. A list
//! that was read once is therefore recognized by comparing bytes, without decoding opcodes.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use super::opcode;
use trace::frames::StackId;
use trace::narrow::number32;

/// A list's memo reads, including the opcode that ends them, and their stack.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: usize,
    len: usize,
    stack: StackId,
    /// The run that followed it the last time: programs repeat themselves.
    next: u32,
}

/// The runs read so far.
#[derive(Debug)]
pub(super) struct Runs {
    bytes: Vec<u8>,
    runs: Vec<Run>,
    table: HashTable<u32>,
    last: u32,
    byte_limit: usize,
}

/// What follows where a list of frames may begin.
pub(super) enum Ahead {
    /// A known run: its length and its stack.
    Known(usize, StackId),
    /// An unknown run of this length.
    New(usize),
    /// No run, or an incomplete one.
    Other,
}

impl Runs {
    pub(super) fn new(byte_limit: usize) -> Self {
        Self { bytes: Vec::new(), runs: Vec::new(), table: HashTable::new(), last: 0, byte_limit }
    }

    /// Forgets all runs.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.byte_limit);
    }

    /// Examines what `ahead` begins with.
    #[inline]
    pub(super) fn look(&mut self, ahead: &[u8]) -> Ahead {
        if let Some(last) = self.runs.get(self.last as usize)
            && let Some(next) = self.runs.get(last.next as usize)
            && let Some(known) = self.bytes.get(next.start..next.start + next.len)
            && begins_with(ahead, known)
        {
            self.last = last.next;
            return Ahead::Known(next.len, next.stack);
        }
        self.search(ahead)
    }

    fn search(&mut self, ahead: &[u8]) -> Ahead {
        let Some(len) = length(ahead) else { return Ahead::Other };
        let Some(run) = ahead.get(..len) else { return Ahead::Other };
        let found = self.table.find(hash(run), |&i| self.run(i) == Some(run)).copied();
        match found.and_then(|i| Some((i, self.runs.get(i as usize)?.stack))) {
            Some((i, stack)) => {
                self.follow(i);
                Ahead::Known(len, stack)
            }
            None => Ahead::New(len),
        }
    }

    /// Remembers a run.
    pub(super) fn add(&mut self, run: &[u8], stack: StackId) {
        // Once the limit is reached, most new runs would be read only once.
        if self.bytes.len() + run.len() > self.byte_limit || self.runs.len() >= u32::MAX as usize {
            return;
        }
        let number = number32(self.runs.len());
        self.runs.push(Run { start: self.bytes.len(), len: run.len(), stack, next: number });
        self.bytes.extend_from_slice(run);
        let (runs, bytes) = (&self.runs, &self.bytes);
        self.table.insert_unique(hash(run), number, |&i| {
            let run = runs.get(i as usize).and_then(|run| bytes.get(run.start..run.start + run.len));
            hash(run.unwrap_or(&[]))
        });
        self.follow(number);
    }

    fn follow(&mut self, number: u32) {
        if let Some(last) = self.runs.get_mut(self.last as usize) {
            last.next = number;
        }
        self.last = number;
    }

    fn run(&self, number: u32) -> Option<&[u8]> {
        let run = self.runs.get(number as usize)?;
        self.bytes.get(run.start..run.start + run.len)
    }
}

/// Whether `ahead` begins with `known`. Compares words, as WebAssembly's `memcmp` compares bytes and most bytes of a
/// file pass here.
#[inline]
fn begins_with(ahead: &[u8], known: &[u8]) -> bool {
    let Some(ahead) = ahead.get(..known.len()) else { return false };
    let ((words, rest), (known_words, known_rest)) = (ahead.as_chunks::<8>(), known.as_chunks::<8>());
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    rest == known_rest && words.iter().zip(known_words).all(|(a, b)| word(a) == word(b))
}

fn hash(run: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(run);
    hasher.finish()
}

/// Returns the length of the memo reads at the start of `ahead`, including the opcode that ends their list.
fn length(ahead: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *ahead.get(at)? {
            opcode::BINGET => at += 2,
            opcode::LONG_BINGET => at += 5,
            opcode::APPENDS if at > 0 => return Some(at + 1),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_recognized_by_its_bytes() {
        let mut runs = Runs::new(1 << 10);
        let (a, b) = (b"h\x01h\x02e", b"h\x01j\x02\0\0\0e");
        assert!(matches!(runs.look(a), Ahead::New(5)));
        runs.add(a, StackId(1));
        assert!(matches!(runs.look(b), Ahead::New(8)));
        runs.add(b, StackId(2));
        for _ in 0..3 {
            assert!(matches!(runs.look(b"h\x01h\x02eXXXX"), Ahead::Known(5, StackId(1))));
            assert!(matches!(runs.look(b), Ahead::Known(8, StackId(2))));
            assert!(matches!(runs.look(b), Ahead::Known(8, StackId(2))));
        }
        // Truncated, or not only memo reads: no run.
        for n in 0..b.len() {
            assert!(matches!(runs.look(&b[..n]), Ahead::Other));
        }
        assert!(matches!(runs.look(b"h\x01Ne"), Ahead::Other));
        assert!(matches!(runs.look(b"e"), Ahead::Other));
        runs.clear();
        assert!(matches!(runs.look(a), Ahead::New(5)));
    }

    #[test]
    fn no_more_is_remembered_than_the_limit() {
        let mut runs = Runs::new(8);
        runs.add(b"h\x01h\x02e", StackId(1));
        runs.add(b"h\x01h\x03e", StackId(2));
        assert!(matches!(runs.look(b"h\x01h\x02e"), Ahead::Known(..)));
        assert!(matches!(runs.look(b"h\x01h\x03e"), Ahead::New(5)));
    }
}
