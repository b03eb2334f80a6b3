//! Interned strings, frames and stacks: each distinct one is stored once and identified by a small number.

use std::borrow::Cow;
use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

use crate::text::escaped;

/// The number of a distinct string. `0` is the empty string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StrId(pub u32);

/// The number of a distinct frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct FrameId(pub u32);

/// The number of a distinct stack. `0` is the empty stack: none was recorded. Others may be empty too: see [`StackRecord`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StackId(pub u32);

/// A stack frame: a source line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function.
    pub name: StrId,
    /// The file, as named by the interpreter or the symbolizer.
    pub filename: StrId,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
}

impl Frame {
    fn hashed(&self) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write_u32(self.name.0);
        hasher.write_u32(self.filename.0);
        hasher.write_u32(self.line);
        hasher.finish()
    }
}

/// Whether a stack was recorded, and how much of it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackRecord {
    /// None was recorded.
    Nothing,
    /// One was recorded, and all its names were lost: their part of the recording is damaged.
    Lost,
    /// One was recorded, and some of its names were lost.
    Partly,
    /// One was recorded, with all its names.
    Whole,
}

/// Lists of plain values. Each distinct list is stored once, end to end.
#[derive(Clone, Debug)]
struct Interner<T> {
    items: Vec<T>,
    /// The end of list `i`; it starts where the previous one ends.
    ends: Vec<u32>,
    table: HashTable<u32>,
}

impl<T: bytemuck::NoUninit + PartialEq> Interner<T> {
    /// Creates a table with the empty list as number 0.
    fn new() -> Self {
        let mut new = Self { items: Vec::new(), ends: Vec::new(), table: HashTable::new() };
        new.intern(&[]);
        new
    }

    fn hash(list: &[T]) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write(bytemuck::cast_slice(list));
        hasher.finish()
    }

    fn get(&self, id: u32) -> &[T] {
        let i = id as usize;
        let Some(&end) = self.ends.get(i) else { return &[] };
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.items[start as usize..end as usize]
    }

    /// Returns the number of `list`, if it is stored.
    fn find(&self, list: &[T]) -> Option<u32> {
        self.table.find(Self::hash(list), |&i| self.get(i) == list).copied()
    }

    /// Returns the number of `list`, stored if it is new. A list beyond 2^32 items in total reads as the empty one: the
    /// importer's limits refuse such a file long before.
    fn intern(&mut self, list: &[T]) -> u32 {
        let hash = Self::hash(list);
        if let Some(&found) = self.table.find(hash, |&i| self.get(i) == list) {
            return found;
        }
        let (Ok(id), Ok(end)) = (u32::try_from(self.ends.len()), u32::try_from(self.items.len() + list.len())) else {
            return 0;
        };
        self.items.extend_from_slice(list);
        self.ends.push(end);
        let (items, ends) = (&self.items, &self.ends);
        self.table.insert_unique(hash, id, |&i| {
            let start = if i == 0 { 0 } else { ends[i as usize - 1] };
            Self::hash(&items[start as usize..ends[i as usize] as usize])
        });
        id
    }

    /// Returns the number of another empty list, which no search finds. It is 0 if there are too many.
    fn lose(&mut self) -> u32 {
        let (Ok(id), Ok(end)) = (u32::try_from(self.ends.len()), u32::try_from(self.items.len())) else { return 0 };
        self.ends.push(end);
        id
    }

    /// Returns whether a number is one of those that [`Self::lose`] returned.
    fn is_lost(&self, id: u32) -> bool {
        id != 0 && (id as usize) < self.ends.len() && self.get(id).is_empty()
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes of memory that they occupy.
    fn memory(&self) -> usize {
        self.items.capacity() * size_of::<T>() + self.ends.capacity() * size_of::<u32>() + self.table.allocation_size()
    }
}

/// All strings, frames and stacks of one file.
#[derive(Clone, Debug)]
pub struct Symbols {
    strings: Interner<u8>,
    frames: Vec<Frame>,
    frame_table: HashTable<u32>,
    stacks: Interner<FrameId>,
}

impl Default for Symbols {
    fn default() -> Self {
        Self { strings: Interner::new(), frames: Vec::new(), frame_table: HashTable::new(), stacks: Interner::new() }
    }
}

impl Symbols {
    /// Interns a string and returns its number. Bytes that are not UTF-8 are kept, and shown with replacement
    /// characters.
    pub fn intern(&mut self, text: &[u8]) -> StrId {
        StrId(self.strings.intern(text))
    }

    /// Returns the number of a string, if it is interned.
    pub fn find(&self, text: &[u8]) -> Option<StrId> {
        self.strings.find(text).map(StrId)
    }

    /// Returns the bytes of a string; empty for an unknown number.
    pub fn bytes(&self, id: StrId) -> &[u8] {
        self.strings.get(id.0)
    }

    /// Returns a string for display, in one line: hidden characters [are shown](crate::text). [`Symbols::bytes`] has it as it is.
    pub fn text(&self, id: StrId) -> Cow<'_, str> {
        match String::from_utf8_lossy(self.bytes(id)) {
            Cow::Borrowed(text) => escaped(text),
            Cow::Owned(text) => Cow::Owned(escaped(&text).into_owned()),
        }
    }

    /// Returns a string without escapes, for code that parses it and never prints it.
    pub fn unshown(&self, id: StrId) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(id))
    }

    /// Returns the total bytes of all distinct strings.
    pub fn string_bytes(&self) -> usize {
        self.strings.items.len()
    }

    /// Interns a frame and returns its number.
    pub fn intern_frame(&mut self, frame: Frame) -> FrameId {
        if let Some(found) = self.find_frame(frame) {
            return found;
        }
        let id = self.frames.len() as u32;
        self.frames.push(frame);
        let frames = &self.frames;
        self.frame_table.insert_unique(frame.hashed(), id, |&i| frames[i as usize].hashed());
        FrameId(id)
    }

    /// Returns the number of a frame, if it is interned.
    pub fn find_frame(&self, frame: Frame) -> Option<FrameId> {
        let is_it = |&i: &u32| self.frames.get(i as usize) == Some(&frame);
        self.frame_table.find(frame.hashed(), is_it).map(|&i| FrameId(i))
    }

    /// Returns a frame; one without name, file and line for an unknown number.
    pub fn frame(&self, id: FrameId) -> Frame {
        self.frames.get(id.0 as usize).copied().unwrap_or(Frame { name: StrId(0), filename: StrId(0), line: 0 })
    }

    /// Interns a stack, innermost frame first, and returns its number.
    pub fn intern_stack(&mut self, frames: &[FrameId]) -> StackId {
        StackId(self.stacks.intern(frames))
    }

    /// Returns the number of a stack, if it is interned.
    pub fn find_stack(&self, frames: &[FrameId]) -> Option<StackId> {
        self.stacks.find(frames).map(StackId)
    }

    /// Returns the frames of a stack, innermost first.
    pub fn stack(&self, id: StackId) -> &[FrameId] {
        self.stacks.get(id.0)
    }

    /// Returns the number of a string whose text was lost. It reads as empty, and differs from all others.
    pub fn lose_string(&mut self) -> StrId {
        StrId(self.strings.lose())
    }

    /// Returns the number of a frame whose names were lost. It differs from all others.
    pub fn lose_frame(&mut self) -> FrameId {
        let lost = self.lose_string();
        self.intern_frame(Frame { name: lost, filename: lost, line: 0 })
    }

    /// Returns the number of a stack whose frames were lost. It reads as empty, and differs from all others.
    pub fn lose_stack(&mut self) -> StackId {
        StackId(self.stacks.lose())
    }

    /// Returns whether the text of a string was lost.
    pub fn is_lost_string(&self, id: StrId) -> bool {
        self.strings.is_lost(id.0)
    }

    /// Returns whether a name of a frame was lost.
    pub fn is_lost_frame(&self, id: FrameId) -> bool {
        let Frame { name, filename, .. } = self.frame(id);
        self.is_lost_string(name) || self.is_lost_string(filename)
    }

    /// Returns what is known of a stack. An empty one that is not number 0 was recorded, and its frames were lost.
    pub fn recorded(&self, id: StackId) -> StackRecord {
        let frames = self.stack(id);
        let lost = frames.iter().filter(|frame| self.is_lost_frame(**frame)).count();
        match frames.len() {
            0 if self.stacks.is_lost(id.0) => StackRecord::Lost,
            0 => StackRecord::Nothing,
            count if lost == count => StackRecord::Lost,
            _ if lost > 0 => StackRecord::Partly,
            _ => StackRecord::Whole,
        }
    }

    /// Returns the number of distinct strings, including the empty one.
    pub fn string_count(&self) -> usize {
        self.strings.len()
    }

    /// Returns the number of distinct stacks, including the empty one.
    pub fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// Returns the number of distinct frames.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Returns the bytes of memory that all of them occupy, with the tables in which they are looked up.
    pub fn memory(&self) -> usize {
        let frames = self.frames.capacity() * size_of::<Frame>() + self.frame_table.allocation_size();
        self.strings.memory() + self.stacks.memory() + frames
    }

    /// Returns the total frames of all distinct stacks.
    pub fn stack_frames(&self) -> usize {
        self.stacks.items.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_things_share_a_number() {
        let mut s = Symbols::default();
        assert_eq!(s.intern(b""), StrId(0));
        let a = s.intern(b"forward");
        assert_eq!(s.intern(b"forward"), a);
        assert_ne!(s.intern(b"backward"), a);
        let f = s.intern_frame(Frame { name: a, filename: a, line: 3 });
        assert_eq!(s.intern_frame(Frame { name: a, filename: a, line: 3 }), f);
        let g = s.intern_frame(Frame { name: a, filename: a, line: 4 });
        let stack = s.intern_stack(&[f, g]);
        assert_eq!(s.intern_stack(&[f, g]), stack);
        assert_ne!(s.intern_stack(&[g, f]), stack);
        assert_eq!(s.stack(stack), [f, g]);
        assert_eq!(s.stack(StackId(0)), []);
        assert_eq!(s.intern_stack(&[]), StackId(0));
        assert_eq!((s.find_stack(&[f, g]), s.find_stack(&[f])), (Some(stack), None));
        assert_eq!((s.find(b"forward"), s.find(b"sideways")), (Some(a), None));
        assert_eq!(s.find_frame(Frame { name: a, filename: a, line: 5 }), None);
        assert_eq!(s.text(a), "forward");
        let hostile = s.intern(b"\x1b[2J\xff\n\xe2\x80\xae");
        assert_eq!(s.text(hostile), "\\u{1b}[2J\u{fffd}\\u{a}\\u{202e}");
        assert_eq!(s.unshown(hostile), "\u{1b}[2J\u{fffd}\n\u{202e}");
        assert_eq!((s.stack_count(), s.frame_count()), (3, 2));
    }

    #[test]
    fn what_was_lost_is_not_what_was_never_recorded() {
        let mut s = Symbols::default();
        let name = s.intern(b"forward");
        let known = s.intern_frame(Frame { name, filename: name, line: 3 });
        let (lost, other) = (s.lose_frame(), s.lose_frame());
        assert_ne!(lost, other);
        let whole = s.intern_stack(&[known]);
        let partly = s.intern_stack(&[known, lost]);
        let nameless = s.intern_stack(&[lost, other]);
        let (gone, also) = (s.lose_stack(), s.lose_stack());
        assert_ne!(gone, also);
        let told = [StackId(0), whole, partly, nameless, gone, also, StackId(99)].map(|stack| s.recorded(stack));
        use StackRecord::{Lost, Nothing, Partly, Whole};
        assert_eq!(told, [Nothing, Whole, Partly, Lost, Lost, Lost, Nothing]);
        assert_eq!((s.intern(b""), s.intern_stack(&[]), s.stack(gone)), (StrId(0), StackId(0), &[][..]));
    }
}
