//! Writes values as a protocol 4 pickle, passed on in pieces.

use rustc_hash::FxHashMap;

use crate::pickle::opcode as op;

/// CPython's pickler writes this many items of a container at once.
const BATCH: usize = 1000;
/// Bytes of a piece: large enough that the cost of each write is negligible.
const PIECE: usize = 256 << 10;

/// A slot in the reader's memo.
pub(super) type Slot = u32;

/// Writes values in order. Only values that are referred to again take a slot in the memo.
pub(super) struct Writer<'a> {
    out: Vec<u8>,
    sink: &'a mut dyn FnMut(&[u8]),
    slots: Slot,
    /// The slots of fixed strings: keys, actions, states.
    words: FxHashMap<&'static str, Slot>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(sink: &'a mut dyn FnMut(&[u8])) -> Self {
        let mut out = Vec::with_capacity(2 * PIECE);
        out.extend([op::PROTO, 4]);
        Self { out, sink, slots: 0, words: FxHashMap::default() }
    }

    /// Ends the pickle.
    pub(super) fn finish(mut self) {
        self.out.push(op::STOP);
        (self.sink)(&self.out);
    }

    /// Stores the value just written, or the container just begun, in the memo.
    pub(super) fn memoize(&mut self) -> Slot {
        self.out.push(op::MEMOIZE);
        self.slots += 1;
        self.slots - 1
    }

    /// Writes a reference to a slot: the same object for the reader.
    pub(super) fn get(&mut self, slot: Slot) {
        if let Ok(short) = u8::try_from(slot) {
            self.out.extend([op::BINGET, short]);
        } else {
            self.out.push(op::LONG_BINGET);
            self.out.extend(slot.to_le_bytes());
        }
    }

    /// Writes a dict whose keys and values `fill` writes in turn.
    pub(super) fn dict(&mut self, fill: impl FnOnce(&mut Self)) {
        self.out.extend([op::EMPTY_DICT, op::MARK]);
        fill(self);
        self.out.push(op::SETITEMS);
    }

    /// Writes a list with one value for each item.
    pub(super) fn list<T>(&mut self, items: impl Iterator<Item = T>, write: impl FnMut(&mut Self, T)) {
        self.out.push(op::EMPTY_LIST);
        self.append(items, write);
    }

    /// Writes a list that is referred to again: `begun` gets its slot before any item is written.
    pub(super) fn shared_list<T>(
        &mut self,
        begun: impl FnOnce(&mut Self, Slot),
        items: impl Iterator<Item = T>,
        write: impl FnMut(&mut Self, T),
    ) {
        self.out.push(op::EMPTY_LIST);
        let slot = self.memoize();
        begun(self, slot);
        self.append(items, write);
    }

    fn append<T>(&mut self, items: impl Iterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        let mut in_batch = 0;
        for item in items {
            if in_batch == 0 {
                self.out.push(op::MARK);
            }
            write(self, item);
            in_batch += 1;
            if in_batch == BATCH {
                self.out.push(op::APPENDS);
                in_batch = 0;
            }
            if self.out.len() >= PIECE {
                (self.sink)(&self.out);
                self.out.clear();
            }
        }
        if in_batch > 0 {
            self.out.push(op::APPENDS);
        }
    }

    /// Writes a string in full, even if it was written before.
    pub(super) fn text(&mut self, text: &str) {
        match u8::try_from(text.len()) {
            Ok(length) => self.out.extend([op::SHORT_BINUNICODE, length]),
            Err(_) => match u32::try_from(text.len()) {
                Ok(length) => {
                    self.out.push(op::BINUNICODE);
                    self.out.extend(length.to_le_bytes());
                }
                Err(_) => {
                    self.out.push(op::BINUNICODE8);
                    self.out.extend((text.len() as u64).to_le_bytes());
                }
            },
        }
        self.out.extend(text.as_bytes());
    }

    /// Writes a string in full the first time, and as a reference after that.
    pub(super) fn word(&mut self, word: &'static str) {
        if let Some(&slot) = self.words.get(word) {
            return self.get(slot);
        }
        self.text(word);
        let slot = self.memoize();
        self.words.insert(word, slot);
    }

    pub(super) fn int(&mut self, value: impl Into<i128>) {
        let value = value.into();
        if let Ok(byte) = u8::try_from(value) {
            self.out.extend([op::BININT1, byte]);
        } else if let Ok(short) = u16::try_from(value) {
            self.out.push(op::BININT2);
            self.out.extend(short.to_le_bytes());
        } else if let Ok(int) = i32::try_from(value) {
            self.out.push(op::BININT);
            self.out.extend(int.to_le_bytes());
        } else {
            // Two's complement in the fewest bytes that preserve the sign.
            let bytes = value.to_le_bytes();
            let fits = |n: &u8| value >> (8 * n - 1) == 0 || value >> (8 * n - 1) == -1;
            let length = (1..16).find(fits).unwrap_or(16);
            self.out.extend([op::LONG1, length]);
            self.out.extend(bytes.iter().take(length.into()));
        }
    }

    pub(super) fn float(&mut self, value: f64) {
        self.out.push(op::BINFLOAT);
        self.out.extend(value.to_be_bytes());
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.out.push(if value { op::NEWTRUE } else { op::NEWFALSE });
    }

    pub(super) fn none(&mut self) {
        self.out.push(op::NONE);
    }

    /// Joins the last two values to a tuple.
    pub(super) fn pair(&mut self) {
        self.out.push(op::TUPLE2);
    }

    pub(super) fn int_item(&mut self, key: &'static str, value: impl Into<i128>) {
        self.word(key);
        self.int(value);
    }

    pub(super) fn word_item(&mut self, key: &'static str, value: &'static str) {
        self.word(key);
        self.word(value);
    }

    pub(super) fn bool_item(&mut self, key: &'static str, value: bool) {
        self.word(key);
        self.bool(value);
    }
}
