//! Numbers stacks before an allocation, outside any device's lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};

use trace::frames::{Frame, FrameId, StackId, StrId, Symbols};
use trace::limits::RecorderLimits;

/// A new name. The writer adds them in order to its own table, which therefore assigns the same numbers, without a
/// shared lock.
#[derive(Debug)]
pub(super) enum Name {
    Text(Box<[u8]>),
    Frame(Frame),
    Stack(Box<[FrameId]>),
}

/// Assigns a number to each distinct stack, for [`allocator::TraceEntry::stack`].
///
/// Threads that number stacks share a lock, which the writer never takes. Once the bounds are reached, known stacks keep
/// their numbers; new ones get the number of the unknown stack and are counted.
#[derive(Debug)]
pub struct Stacks {
    table: Mutex<Table>,
    limits: RecorderLimits,
    refused: AtomicU64,
}

#[derive(Debug)]
struct Table {
    symbols: Symbols,
    /// Unbounded, but it never holds more than the table, which is bounded.
    new: Sender<Name>,
}

impl Stacks {
    pub(super) fn new(limits: RecorderLimits) -> (Self, Receiver<Name>) {
        let (new, names) = mpsc::channel();
        let table = Mutex::new(Table { symbols: Symbols::default(), new });
        (Self { table, limits, refused: AtomicU64::new(0) }, names)
    }

    /// Creates a table without a recording, for the stacks of snapshots.
    pub fn detached(limits: RecorderLimits) -> Self {
        // The receiver is dropped: sending new names fails at once and costs nothing.
        Self::new(limits).0
    }

    /// Returns a copy of the table with the same numbers.
    pub fn symbols(&self) -> Symbols {
        let table = self.table();
        let known = &table.symbols;
        let mut copy = Symbols::default();
        for id in 0..known.string_count() {
            copy.intern(known.bytes(StrId(id as u32)));
        }
        for id in 0..known.frame_count() {
            copy.intern_frame(known.frame(FrameId(id as u32)));
        }
        for id in 0..known.stack_count() {
            copy.intern_stack(known.stack(StackId(id as u32)));
        }
        copy
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Every change under the lock is complete, so the table is usable after a thread has panicked.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of a text, for marks.
    pub fn text(&self, text: &str) -> StrId {
        self.table().text(text.as_bytes(), &self.limits).unwrap_or_else(|| self.refuse())
    }

    /// Returns the number of a frame: a function, its file as the interpreter names it, and a line counted from 1 (0 if
    /// unknown). It stays valid for the whole recording. Returns `None` beyond the bounds.
    pub fn frame(&self, name: &str, filename: &str, line: u32) -> Option<FrameId> {
        let mut table = self.table();
        let (name, filename) =
            (table.text(name.as_bytes(), &self.limits)?, table.text(filename.as_bytes(), &self.limits)?);
        table.frame(Frame { name, filename, line }, &self.limits)
    }

    /// Returns the number of a stack, its frames innermost first.
    pub fn stack(&self, frames: &[FrameId]) -> StackId {
        self.table().stack(frames, &self.limits).unwrap_or_else(|| self.refuse())
    }

    /// Returns the number of a stack, given its frames (function, file, line) innermost first.
    pub fn intern(&self, frames: &[(&str, &str, u32)]) -> StackId {
        let mut numbers = Vec::with_capacity(frames.len().min(self.limits.stack_frames));
        for &(name, filename, line) in frames.iter().take(self.limits.stack_frames) {
            match self.frame(name, filename, line) {
                Some(number) => numbers.push(number),
                None => return self.refuse(),
            }
        }
        self.stack(&numbers)
    }

    /// Returns the number of stacks and texts refused beyond the bounds.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn refuse<T: Default>(&self) -> T {
        self.refused.fetch_add(1, Ordering::Relaxed);
        T::default()
    }
}

impl Table {
    fn send(&self, name: Name) {
        // It fails after the writer has ended, when names are no longer needed.
        let _ = self.new.send(name);
    }

    fn text(&mut self, text: &[u8], limits: &RecorderLimits) -> Option<StrId> {
        if let Some(known) = self.symbols.find(text) {
            return Some(known);
        }
        let text = text.get(..limits.string_bytes).unwrap_or(text);
        if self.symbols.string_bytes() + text.len() > limits.strings_total_bytes {
            return None;
        }
        let known = self.symbols.find(text);
        Some(known.unwrap_or_else(|| {
            self.send(Name::Text(text.into()));
            self.symbols.intern(text)
        }))
    }

    fn frame(&mut self, frame: Frame, limits: &RecorderLimits) -> Option<FrameId> {
        if let Some(known) = self.symbols.find_frame(frame) {
            return Some(known);
        }
        if self.symbols.frame_count() >= limits.frames {
            return None;
        }
        self.send(Name::Frame(frame));
        Some(self.symbols.intern_frame(frame))
    }

    fn stack(&mut self, frames: &[FrameId], limits: &RecorderLimits) -> Option<StackId> {
        let frames = frames.get(..limits.stack_frames).unwrap_or(frames);
        if let Some(known) = self.symbols.find_stack(frames) {
            return Some(known);
        }
        if self.symbols.stack_frames() + frames.len() > limits.stacks_total_frames {
            return None;
        }
        self.send(Name::Stack(frames.into()));
        Some(self.symbols.intern_stack(frames))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_built_from_the_new_names_has_the_same_numbers() {
        let (stacks, names) = Stacks::new(RecorderLimits::default());
        let a = stacks.intern(&[("forward", "model.py", 54), ("main", "train.py", 9)]);
        assert_eq!(stacks.intern(&[("forward", "model.py", 54), ("main", "train.py", 9)]), a);
        let b = stacks.intern(&[("forward", "model.py", 55), ("main", "train.py", 9)]);
        assert_eq!((stacks.intern(&[]), a == b), (StackId(0), false));
        let mark = stacks.text("epoch 3");
        let mut mirror = Symbols::default();
        for name in names.try_iter() {
            match name {
                Name::Text(text) => drop(mirror.intern(&text)),
                Name::Frame(frame) => drop(mirror.intern_frame(frame)),
                Name::Stack(frames) => drop(mirror.intern_stack(&frames)),
            }
        }
        let lines = |id| mirror.stack(id).iter().map(|&frame| mirror.frame(frame).line).collect::<Vec<_>>();
        assert_eq!((lines(a), lines(b)), (vec![54, 9], vec![55, 9]));
        assert_eq!(mirror.text(mark), "epoch 3");
        let copy = stacks.symbols();
        assert_eq!((copy.text(mark), copy.stack(a)), (mirror.text(mark), mirror.stack(a)));
    }

    #[test]
    fn a_full_table_keeps_known_stacks_and_counts_the_rest() {
        let limits = RecorderLimits { strings_total_bytes: 20, stacks_total_frames: 3, ..RecorderLimits::default() };
        let (stacks, _names) = Stacks::new(limits);
        let known = stacks.intern(&[("f", "m.py", 1), ("g", "m.py", 2)]);
        assert_eq!(stacks.intern(&[("f", "m.py", 1), ("h", "m.py", 2)]), StackId(0));
        assert_eq!(stacks.text("a text that is far too long"), StrId(0));
        assert_eq!(stacks.intern(&[("f", "m.py", 1), ("g", "m.py", 2)]), known);
        assert_eq!(stacks.refused(), 2);
    }
}
