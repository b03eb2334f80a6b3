//! What trace entries have in common: the bytes that are the same in each, and what varies between them.

use std::ops::Range;

use super::memo::Memo;
use super::opcode as op;
use crate::values::keywords;
use crate::values::{EntryDraft, SnapshotBuilder, Value};
use trace::TagId;
use trace::frames::StrId;

/// Bytes that are compared at once.
pub(super) const WORD: usize = size_of::<u64>();

/// A value that varies, and how it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Field {
    /// A memo read.
    Action,
    /// An integer.
    Address,
    /// An integer.
    Size,
    /// An integer.
    Time,
    /// A list of frames, or a memo read.
    Frames,
    /// The value of any other key.
    Tag(StrId),
    /// The end of the entry.
    End,
}

/// Up to eight bytes that are the same in each entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub(super) bits: u64,
    pub(super) mask: u64,
}

/// Bytes that are the same in each entry, and the value behind them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The number of bytes.
    pub(super) len: usize,
    /// Their first word: most steps have no other.
    pub(super) first: Word,
    /// The number of words behind it.
    pub(super) more: usize,
    /// A string that they create, as the memo stores it.
    pub(super) made: Option<u32>,
    pub(super) field: Field,
}

/// A key of an entry with its value.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) name: StrId,
    pub(super) value: Value,
    /// The offset of the key.
    pub(super) start: usize,
    /// The offset of the value.
    pub(super) value_at: usize,
    /// The offset behind the value.
    pub(super) end: usize,
    /// Whether the value is a new list.
    pub(super) has_node: bool,
}

/// The common layout of entries.
#[derive(Debug, Default)]
pub(super) struct Template {
    pub(super) steps: Vec<Step>,
    /// The words of all steps but the first of each.
    pub(super) words: Vec<Word>,
    /// An entry with the fixed values, and the last ones of the keys that vary.
    pub(super) draft: EntryDraft,
    /// The tag, if it does not vary.
    pub(super) tag: Option<TagId>,
    /// The keys in order, each with its value's bytes; without bytes if the value varies.
    keys: Vec<(StrId, Vec<u8>)>,
}

impl Template {
    /// Adapts the template to an entry that differs from it: a value that is not the one before varies from now on.
    #[cold]
    pub(super) fn update(&mut self, entry: &[u8], places: &[Place], builder: &SnapshotBuilder) {
        let is_alike = self.keys.iter().map(|(name, _)| *name).eq(places.iter().map(|place| place.name));
        let before = std::mem::take(self);
        // What precedes the first key was read already.
        let mut start = places.first().map_or(0, |place| place.start);
        let mut made = None;
        for (i, place) in places.iter().enumerate() {
            let bytes = entry.get(place.value_at..place.end).unwrap_or(&[]);
            let known = before.keys.get(i).filter(|_| is_alike).map(|(_, bytes)| bytes.as_slice());
            let is_fixed = known.is_none_or(|known| known == bytes) && can_be_fixed(place, bytes);
            self.keys.push((place.name, if is_fixed { bytes.to_vec() } else { Vec::new() }));
            let creates = bytes.first().filter(|code| is_text(**code)).and_then(|_| Memo::word(place.value));
            // One step creates at most one string.
            if is_fixed && (made.is_none() || creates.is_none()) {
                made = made.or(creates);
                builder.draft(&mut self.draft, place.name, place.value);
            } else {
                self.step(entry, start..place.value_at, made.take(), field(place.name));
                start = place.end;
            }
        }
        self.step(entry, start..entry.len(), made, Field::End);
    }

    /// Returns whether the tag may vary.
    pub(super) fn has_tag_steps(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.field, Field::Tag(_)))
    }

    fn step(&mut self, entry: &[u8], bytes: Range<usize>, made: Option<u32>, field: Field) {
        let len = bytes.len();
        let mut words = entry.get(bytes).unwrap_or(&[]).chunks(WORD).map(|chunk| {
            let mut word = [0; WORD];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            let mask = u64::MAX >> (8 * (WORD - chunk.len()));
            Word { bits: u64::from_le_bytes(word), mask }
        });
        let first = words.next().unwrap_or(Word { bits: 0, mask: 0 });
        let before = self.words.len();
        self.words.extend(words);
        self.steps.push(Step { len, first, more: self.words.len() - before, made, field });
    }
}

/// Returns how the value of a key that varies is read.
fn field(name: StrId) -> Field {
    match name {
        keywords::ACTION => Field::Action,
        keywords::ADDR => Field::Address,
        keywords::SIZE => Field::Size,
        keywords::TIME_US => Field::Time,
        keywords::FRAMES => Field::Frames,
        other => Field::Tag(other),
    }
}

/// Returns whether an opcode writes out a string.
fn is_text(code: u8) -> bool {
    code == op::SHORT_BINUNICODE
}

/// Returns whether a value can be the same in each entry. Those that are read faster otherwise, and lists, cannot; nor
/// can a string that names the memo's slot.
fn can_be_fixed(place: &Place, bytes: &[u8]) -> bool {
    let is_simple = match *bytes {
        [code, len, .., op::MEMOIZE] if is_text(code) => bytes.len() == 3 + usize::from(len),
        [code, ..] if is_text(code) => false,
        _ => !place.has_node,
    };
    is_simple && matches!(field(place.name), Field::Tag(_))
}
