//! Reads whole trace entries at once.
//!
//! Nearly all of a snapshot consists of trace entries: dicts with the same keys in the same order, most of whose values
//! are those of the entry before. Such an entry is compared with a [`Template`], a word at a time, and only what varies
//! is decoded, straight into an event. Nothing is changed until the entry is complete. Whatever is unusual about one,
//! including every error, is left to the machine, which reads it opcode by opcode.

use super::memo::Memo;
use super::opcode as op;
use super::runs::{Ahead, Runs};
use super::template::{Field, Place, Template, WORD};
use crate::values::keywords;
use crate::values::{EntryDraft, Kind, SnapshotBuilder, Value};
use trace::Event;
use trace::event::Action;
use trace::frames::{StackId, StrId};
use trace::narrow::number32;
use trace::units::Address;

/// The most keys of an entry. PyTorch writes at most 12.
const MOST_KEYS: usize = 24;
/// The most values that an entry creates: itself, its lists, and strings that are written out.
pub(super) const MOST_MADE: usize = 4;
/// The most operands and marks that are on the stack while an entry is read opcode by opcode.
pub(super) const MOST_OPERANDS: usize = 2 * MOST_KEYS + 4;
pub(super) const MOST_MARKS: usize = 2;

/// A few words.
#[derive(Debug, Default)]
pub(super) struct Words {
    words: [u32; MOST_MADE],
    count: usize,
}

impl Words {
    #[inline]
    fn push(&mut self, word: u32) -> Option<()> {
        *self.words.get_mut(self.count)? = word;
        self.count += 1;
        Some(())
    }

    /// Returns the words.
    #[inline]
    pub(super) fn as_slice(&self) -> &[u32] {
        self.words.get(..self.count).unwrap_or(&[])
    }
}

/// The values that an entry creates, as they are stored once it is complete.
#[derive(Debug, Default)]
pub(super) struct AllMade {
    /// What each new node is: the entry itself first, then its lists.
    pub(super) nodes: Words,
    /// What is stored in the memo.
    pub(super) slots: Words,
    /// The number of the first node.
    pub(super) first_node: u32,
    /// The memo's first slot.
    first_slot: usize,
}

impl AllMade {
    #[inline]
    fn begin(&mut self, first_node: u32, first_slot: usize) {
        (self.nodes.count, self.slots.count) = (0, 0);
        (self.first_node, self.first_slot) = (first_node, first_slot);
    }

    /// Adds a list or dict that is created by the opcode before `at`. Returns the offset behind the opcode that stores it
    /// in the memo, if there is one.
    #[inline]
    fn node(&mut self, kind: Kind, bytes: &[u8], at: usize) -> Option<usize> {
        let number = self.first_node.checked_add(number32(self.nodes.count))?;
        self.nodes.push(kind.pack())?;
        self.memoize(Value::Node(number), bytes, at)
    }

    /// Stores a value in the memo if the opcode at `at` does. Returns the offset behind it.
    #[inline]
    fn memoize(&mut self, value: Value, bytes: &[u8], at: usize) -> Option<usize> {
        let len = match *bytes.get(at)? {
            op::MEMOIZE => 1,
            op::BINPUT | op::LONG_BINPUT => self.put(word(bytes, at)?)?,
            _ => return Some(at),
        };
        self.slots.push(Memo::word(value)?)?;
        Some(at + len)
    }

    /// Returns the length of an opcode that stores a value in the memo, if that is in the next slot.
    fn put(&self, ahead: u64) -> Option<usize> {
        let (slot, len) = match opcode(ahead) {
            op::BINPUT => (usize::from(operand_8(ahead)), 2),
            _ => (operand_32(ahead) as usize, 5),
        };
        (slot == self.first_slot + self.slots.count).then_some(len)
    }
}

/// What entries are read with.
pub(super) struct Source<'a> {
    pub(super) memo: &'a Memo,
    pub(super) builder: &'a mut SnapshotBuilder,
    pub(super) runs: &'a mut Runs,
    /// The memo's next slot.
    pub(super) slot: usize,
}

/// Reads entries.
#[derive(Debug, Default)]
pub(super) struct Entries {
    template: Template,
    /// What the last entry creates.
    pub(super) made: AllMade,
}

impl Entries {
    /// Forgets what memo slots hold.
    pub(super) fn clear(&mut self) {
        self.template = Template::default();
    }

    /// Reads the entry whose dict was begun right before `bytes`. Returns its event and its length behind that opcode,
    /// or `None` if the bytes are something else, unusual, or incomplete.
    #[inline]
    pub(super) fn read(&mut self, bytes: &[u8], source: &mut Source<'_>) -> Option<(Event, usize)> {
        match self.read_alike(bytes, source) {
            Some(read) => Some(read),
            None => self.learn(bytes, source),
        }
    }

    /// Reads an entry that differs from the template only in what varies.
    #[inline]
    fn read_alike(&mut self, bytes: &[u8], source: &mut Source<'_>) -> Option<(Event, usize)> {
        let Self { template, made } = self;
        let mut at = begin(bytes, source, made)?;
        let (mut action, mut address, mut size, mut time_us, mut stack) = (StrId(0), 0, 0, 0, StackId(0));
        let mut words = template.words.iter();
        for step in &template.steps {
            // Whole words, of which the last one is compared in part.
            if word(bytes, at)? & step.first.mask != step.first.bits {
                return None;
            }
            if step.more > 0 {
                let (ahead, _) = bytes.get(at + WORD..at + WORD + step.more * WORD)?.as_chunks::<WORD>();
                for (ahead, word) in ahead.iter().zip(&mut words) {
                    if u64::from_le_bytes(*ahead) & word.mask != word.bits {
                        return None;
                    }
                }
            }
            at += step.len;
            if let Some(text) = step.made {
                made.slots.push(text)?;
            }
            match step.field {
                Field::Action => action = source.memo.find_text(slot(bytes, &mut at)?)?,
                Field::Address => address = integer(bytes, &mut at)? as u64,
                Field::Size => size = u64::try_from(integer(bytes, &mut at)?).ok()?,
                Field::Time => time_us = integer(bytes, &mut at)?,
                Field::Frames => {
                    let list = frames(bytes, &mut at, source, made)?;
                    stack = source.builder.known_stack(list)?;
                }
                Field::Tag(name) => {
                    let value = value(bytes, &mut at, source, made)?;
                    if !source.builder.draft(&mut template.draft, name, value).is_done() || value == Value::None {
                        return None;
                    }
                }
                Field::End => {
                    let action = keywords::action(action);
                    if action == Action::Other {
                        return None;
                    }
                    let tag = match template.tag {
                        Some(tag) => tag,
                        None => source.builder.tag(template.draft.tag),
                    };
                    let event = Event { action, address: Address(address), size, time_us, tag, stack };
                    return Some((event, at));
                }
            }
        }
        None
    }

    /// Reads an entry key by key, and adapts the template to it.
    #[inline(never)]
    fn learn(&mut self, bytes: &[u8], source: &mut Source<'_>) -> Option<(Event, usize)> {
        let Self { template, made } = self;
        let mut at = begin(bytes, source, made)?;
        let mut draft = EntryDraft::default();
        let mut places = Vec::new();
        while bytes.get(at) != Some(&op::SETITEMS) {
            let start = at;
            let Value::Str(name) = known(bytes, &mut at, source.memo)? else { return None };
            // Other dicts are recognized by their first key.
            if places.len() >= MOST_KEYS || (places.is_empty() && name != keywords::ACTION) {
                return None;
            }
            let (value_at, nodes) = (at, made.nodes.count);
            let value = value(bytes, &mut at, source, made)?;
            if !source.builder.draft(&mut draft, name, value).is_done() {
                return None;
            }
            let has_node = made.nodes.count > nodes;
            places.push(Place { name, value, start, value_at, end: at, has_node });
        }
        // A dict with a single entry may be filled further.
        if places.len() < 2 || !draft.is_complete() {
            return None;
        }
        template.update(bytes.get(..=at)?, &places, source.builder);
        let event = source.builder.finish_draft(draft).ok()??;
        // The tag of an unknown action holds its name.
        let is_fixed = event.action != Action::Other && !template.has_tag_steps();
        template.tag = is_fixed.then_some(event.tag);
        Some((event, at + 1))
    }
}

/// Reads what precedes the first key.
#[inline]
fn begin(bytes: &[u8], source: &Source<'_>, made: &mut AllMade) -> Option<usize> {
    made.begin(number32(source.builder.node_count()), source.slot);
    let row = number32(source.builder.events.len());
    let at = made.node(Kind::Event(row), bytes, 0)?;
    (bytes.get(at) == Some(&op::MARK)).then_some(at + 1)
}

/// Reads an integer of up to 64 bits.
#[inline]
fn integer(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let ahead = word(bytes, *at)?;
    let (n, len) = match opcode(ahead) {
        op::LONG1 => {
            let len = u32::from(operand_8(ahead));
            if !(1..=8).contains(&len) {
                return None;
            }
            let beside = 64 - 8 * len;
            ((word(bytes, *at + 2)? as i64) << beside >> beside, 2 + len as usize)
        }
        op::BININT => (i64::from(operand_32(ahead) as i32), 5),
        op::BININT2 => (i64::from(operand_32(ahead) & 0xffff), 3),
        op::BININT1 => (i64::from(operand_8(ahead)), 2),
        _ => return None,
    };
    *at += len;
    Some(n)
}

/// Reads a memo read. Returns the slot.
#[inline]
fn slot(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let ahead = word(bytes, *at)?;
    let (slot, len) = match opcode(ahead) {
        op::BINGET => (usize::from(operand_8(ahead)), 2),
        op::LONG_BINGET => (operand_32(ahead) as usize, 5),
        _ => return None,
    };
    *at += len;
    Some(slot)
}

/// Reads a memo read. Returns the value.
#[inline]
fn known(bytes: &[u8], at: &mut usize, memo: &Memo) -> Option<Value> {
    memo.find_value(slot(bytes, at)?)
}

/// Reads a list of frames, or a memo read in its place.
#[inline]
fn frames(bytes: &[u8], at: &mut usize, source: &mut Source<'_>, made: &mut AllMade) -> Option<Value> {
    if bytes.get(*at) != Some(&op::EMPTY_LIST) {
        return known(bytes, at, source.memo);
    }
    let place = made.nodes.count;
    *at = made.node(Kind::EmptyList, bytes, *at + 1)?;
    if bytes.get(*at) != Some(&op::MARK) {
        return Some(Value::Stack(StackId(0)));
    }
    let Ahead::Known(len, stack) = source.runs.look(bytes.get(*at + 1..)?) else { return None };
    *made.nodes.words.get_mut(place)? = Kind::Stack(stack).pack();
    *at += 1 + len;
    Some(Value::Stack(stack))
}

/// Reads any value that is usual in an entry.
#[inline(never)]
fn value(bytes: &[u8], at: &mut usize, source: &mut Source<'_>, made: &mut AllMade) -> Option<Value> {
    match *bytes.get(*at)? {
        op::EMPTY_LIST => frames(bytes, at, source, made),
        op::BINGET | op::LONG_BINGET => known(bytes, at, source.memo),
        op::NONE => {
            *at += 1;
            Some(Value::None)
        }
        op::SHORT_BINUNICODE => {
            let len = usize::from(*bytes.get(*at + 1)?);
            let id = source.builder.symbols.find(bytes.get(*at + 2..*at + 2 + len)?)?;
            *at = made.memoize(Value::Str(id), bytes, *at + 2 + len)?;
            Some(Value::Str(id))
        }
        _ => integer(bytes, at).map(Value::Int),
    }
}

/// Returns the opcode that a [`word`] begins with.
#[inline]
const fn opcode(ahead: u64) -> u8 {
    (ahead & 0xff) as u8
}

/// Returns the byte behind the opcode of a [`word`].
#[inline]
const fn operand_8(ahead: u64) -> u8 {
    (ahead >> 8 & 0xff) as u8
}

/// Returns the four bytes behind the opcode of a [`word`].
#[inline]
const fn operand_32(ahead: u64) -> u32 {
    (ahead >> 8 & 0xffff_ffff) as u32
}

/// Returns the eight bytes at `at`, the first one lowest.
#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk::<WORD>().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::pickle::Machine;
    use trace::limits::ImportLimits;

    /// Writes a pickle of protocol 4, and counts its memo.
    struct Pickler {
        bytes: Vec<u8>,
        slots: u8,
    }

    impl Pickler {
        fn raw(&mut self, bytes: &[u8]) {
            self.bytes.extend_from_slice(bytes);
        }

        /// Stores the last value in the memo: as protocol 4 does, as protocol 2 does, or not at all.
        fn memoize(&mut self, style: u8) {
            match style {
                0 => self.raw(b"\x94"),
                1 => self.raw(&[b'q', self.slots]),
                _ => return,
            }
            self.slots += 1;
        }

        fn text(&mut self, text: &str, style: u8) {
            self.raw(&[0x8c, text.len() as u8]);
            self.raw(text.as_bytes());
            self.memoize(style);
        }

        /// Writes an entry: memo slots 0 to 9 hold its keys, 10 to 13 actions, 14 a frame, 15 a list of frames, 16 an
        /// empty list, and 17 and 18 strings.
        fn entry(&mut self, (style, action, size, stream, metadata, frames): (u8, u8, i64, u8, u8, u8)) {
            self.raw(b"}");
            self.memoize(style);
            self.raw(b"(h\0");
            self.raw(
                match action {
                    0..4 => [b'h', 10 + action],
                    _ => *b"K\x05",
                }
                .as_slice(),
            );
            self.raw(b"h\x01\x8a\x06\0\x02\x34\x12\x00\x7f");
            self.raw(b"h\x02");
            match size {
                0..256 => self.raw(&[b'K', size as u8]),
                256..65_536 => self.raw(&[&b"M"[..], &(size as u16).to_le_bytes()].concat()),
                _ => self.raw(&[&b"\x8a\x08"[..], &size.to_le_bytes()].concat()),
            }
            self.raw(&[b'h', 3, b'K', stream]);
            self.raw(b"h\x04J\x10\x20\x30\x40h\x06");
            self.text("N/A", style);
            if metadata > 0 {
                self.raw(b"h\x07");
                self.raw(match metadata {
                    1 => b"h\x11",
                    2 => b"h\x12",
                    _ => b"N",
                });
            }
            self.raw(b"h\x05");
            match frames {
                0 => {
                    self.raw(b"]");
                    self.memoize(style);
                }
                1 => {
                    self.raw(b"]");
                    self.memoize(style);
                    self.raw(b"(h\x0eh\x0ee");
                }
                2 => self.raw(b"h\x0f"),
                3 => self.raw(b"h\x10"),
                _ => self.raw(b"N"),
            }
            self.raw(b"u");
        }
    }

    /// Reads a pickle in pieces, and describes everything that was read.
    fn read(bytes: &[u8], piece: usize) -> String {
        let mut machine = Machine::new(ImportLimits::default(), 4);
        for piece in bytes.chunks(piece) {
            machine.push(piece).unwrap();
        }
        let read = machine.finish().unwrap();
        let events: Vec<_> = read.builder.events.iter().collect();
        let tags: Vec<_> = read.builder.tags.iter().collect();
        format!("{events:?} {tags:?} {:?} {:?} {}", read.builder.lists, read.root, read.builder.malformed)
    }

    proptest! {
        #[test]
        fn reading_entries_at_once_equals_reading_them_opcode_by_opcode(
            entries in proptest::collection::vec((0_u8..3, 0_u8..5, prop_oneof![0..99_999_i64, any::<i64>()], 0_u8..2, 0_u8..4, 0_u8..5), 1..30),
            overwritten in proptest::option::of(0_usize..30),
        ) {
            let mut pickler = Pickler { bytes: b"\x80\x04](".to_vec(), slots: 0 };
            // Memo slots 0 to 18.
            for text in [
                "action", "addr", "size", "stream", "time_us", "frames", "compile_context", "user_metadata", "name", "filename",
                "alloc", "free_completed", "segment_alloc", "unheard_of",
            ] {
                pickler.text(text, 0);
                pickler.raw(b"0");
            }
            pickler.raw(b"}\x94(h\x08h\x0ah\x09h\x0bX\x04\0\0\0lineK\x03u0]\x94h\x0ea0]\x940");
            pickler.slots += 3;
            pickler.text("one", 0);
            pickler.text("two", 0);
            pickler.raw(b"00");
            prop_assert_eq!(pickler.slots, 19);
            for (i, entry) in entries.into_iter().enumerate() {
                if overwritten == Some(i) {
                    // Time and size change places.
                    pickler.raw(b"h\x04q\x020h\x02q\x040");
                }
                pickler.entry(entry);
            }
            pickler.raw(b"e.");
            prop_assert_eq!(read(&pickler.bytes, usize::MAX), read(&pickler.bytes, 1));
        }
    }
}
