//! The memo: values that a pickle stores for reuse, four bytes a slot.

use rustc_hash::FxHashMap;

use crate::values::{Kind, Value};
use trace::PlainColumn;
use trace::error::{Checked, damaged, too_much};
use trace::frames::{FrameId, StackId, StrId};
use trace::narrow::number32;

/// How many slots may be skipped before a number counts as out of sequence. Picklers count by one.
const GAP: usize = 16;
/// The most slots out of sequence. No pickler makes any.
const SPARSE: usize = 1 << 16;
/// The tag of a string.
const TEXT: u32 = 1;
/// An empty slot.
const UNSET: u32 = u32::MAX;

/// Slots by number. Each trace entry takes one, its frames another and some of its strings one each, so a slot is a tag
/// of four bits and a number of 28; larger values are stored in a table.
#[derive(Debug, Default)]
pub(super) struct Memo {
    slots: PlainColumn<u32>,
    sparse: FxHashMap<u32, u32>,
    odd: Vec<Value>,
    /// The number of filled slots.
    count: usize,
    /// Whether a slot was overwritten since this was last cleared.
    pub(super) overwritten: bool,
}

impl Memo {
    /// Returns the bytes of memory that it occupies.
    pub(super) fn memory(&self) -> usize {
        self.slots.memory() + self.odd.capacity() * size_of::<Value>() + self.sparse.capacity() * 2 * size_of::<u64>()
    }

    /// Stores a value in the next slot, as `MEMOIZE` does.
    #[inline]
    pub(super) fn push(&mut self, value: Value, limit: usize) -> Checked {
        if self.count != self.slots.len() {
            return self.put(self.count as u64, value, limit);
        }
        if self.count >= limit || self.odd.len() >= limit {
            return Err(too_much(format!("more than {limit} values in the memo")));
        }
        let word = self.pack(value);
        self.slots.push(word);
        self.count += 1;
        Ok(())
    }

    /// Stores values in the next slots, as many as [`Self::next`] allows, given as [`Self::word`] packs them.
    #[inline]
    pub(super) fn push_words(&mut self, words: &[u32]) {
        words.iter().for_each(|&word| self.slots.push(word));
        self.count += words.len();
    }

    /// Stores a value in slot `index`.
    #[inline]
    pub(super) fn put(&mut self, index: u64, value: Value, limit: usize) -> Checked {
        if index == self.slots.len() as u64 && self.sparse.is_empty() && self.count == self.slots.len() {
            return self.push(value, limit);
        }
        self.put_anywhere(index, value, limit)
    }

    fn put_anywhere(&mut self, index: u64, value: Value, limit: usize) -> Checked {
        let Ok(number) = u32::try_from(index) else {
            return Err(damaged("the number of an object has more than 32 bits"));
        };
        if self.count >= limit || self.odd.len() >= limit {
            return Err(too_much(format!("more than {limit} values in the memo")));
        }
        let word = self.pack(value);
        let index = number as usize;
        match self.find(index) {
            Some(_) => self.overwritten = true,
            None => self.count += 1,
        }
        if index < self.slots.len() {
            self.slots.set(index, word);
        } else if index - self.slots.len() <= GAP {
            while self.slots.len() < index {
                self.slots.push(UNSET);
            }
            self.slots.push(word);
        } else {
            self.sparse.insert(number, word);
            if self.sparse.len() > SPARSE {
                return Err(too_much(format!("more than {SPARSE} memo numbers out of sequence")));
            }
        }
        Ok(())
    }

    fn find(&self, index: usize) -> Option<u32> {
        match self.slots.get(index) {
            Some(word) if word != UNSET => Some(word),
            _ if self.sparse.is_empty() => None,
            _ => self.sparse.get(&u32::try_from(index).ok()?).copied(),
        }
    }

    /// Returns the number of the next slot, if `more` values can be stored in sequence from it on.
    #[inline]
    pub(super) fn next(&self, more: usize, limit: usize) -> Option<usize> {
        let is_sequential = self.count == self.slots.len() && self.sparse.is_empty();
        (is_sequential && self.count + more <= limit && self.odd.len() + more <= limit).then_some(self.count)
    }

    /// Returns the value in slot `index`; `None` if it is empty or its number is out of sequence.
    #[inline]
    pub(super) fn find_value(&self, index: usize) -> Option<Value> {
        self.slots.get(index).filter(|&word| word != UNSET).map(|word| self.unpack(word))
    }

    /// Returns the string in slot `index`; `None` if there is none, or its number is out of sequence.
    #[inline]
    pub(super) fn find_text(&self, index: usize) -> Option<StrId> {
        let word = self.slots.get(index)?;
        (word >> Kind::BITS == TEXT).then_some(StrId(word & Kind::MAX))
    }

    /// Returns the value in slot `index`.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Checked<Value> {
        match self.slots.get(index) {
            Some(word) if word != UNSET => Ok(self.unpack(word)),
            _ => self.get_sparse(index),
        }
    }

    #[cold]
    fn get_sparse(&self, index: usize) -> Checked<Value> {
        match self.find(index) {
            Some(word) => Ok(self.unpack(word)),
            None => Err(damaged(format!("it refers to an object that does not exist (memo {index})"))),
        }
    }

    /// Returns the slot of a value that fits into one.
    #[inline]
    pub(super) fn word(value: Value) -> Option<u32> {
        let (tag, number) = match value {
            Value::Node(id) => (0, id),
            Value::Str(id) => (TEXT, id.0),
            Value::Pair(id) => (2, id),
            Value::Frame(id) => (3, id.0),
            Value::Stack(id) => (4, id.0),
            Value::Event(row) => (5, row),
            Value::None => (6, 0),
            Value::Bool(b) => (7, u32::from(b)),
            Value::Odd => (8, 0),
            Value::Int(_) | Value::Big(_) | Value::Float(_) => return None,
        };
        (number <= Kind::MAX).then_some(tag << Kind::BITS | number)
    }

    #[inline]
    fn pack(&mut self, value: Value) -> u32 {
        if let Some(word) = Self::word(value) {
            return word;
        }
        // Below `ImportLimits::items`, as each of these takes a slot.
        let number = number32(self.odd.len());
        self.odd.push(value);
        9 << Kind::BITS | number & Kind::MAX
    }

    #[inline]
    fn unpack(&self, word: u32) -> Value {
        let number = word & Kind::MAX;
        match word >> Kind::BITS {
            0 => Value::Node(number),
            TEXT => Value::Str(StrId(number)),
            2 => Value::Pair(number),
            3 => Value::Frame(FrameId(number)),
            4 => Value::Stack(StackId(number)),
            5 => Value::Event(number),
            6 => Value::None,
            7 => Value::Bool(number == 1),
            9 => self.odd.get(number as usize).copied().unwrap_or(Value::Odd),
            _ => Value::Odd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_returns_what_was_stored() {
        let mut memo = Memo::default();
        let values = [
            Value::Node(5),
            Value::Str(StrId(9)),
            Value::Int(-3),
            Value::Big(u64::MAX),
            Value::Float(0.5),
            Value::None,
            Value::Bool(true),
            Value::Str(StrId(1 << 29)),
        ];
        for value in values {
            memo.push(value, 100).unwrap();
        }
        for (i, value) in values.into_iter().enumerate() {
            assert_eq!(memo.get(i).unwrap(), value);
        }
        assert!(memo.get(values.len()).is_err());
        assert!(!memo.overwritten);
        memo.put(2, Value::None, 100).unwrap();
        assert!(memo.overwritten);
        assert_eq!(memo.get(2).unwrap(), Value::None);
    }

    #[test]
    fn numbers_far_apart_cost_no_more_than_themselves() {
        let mut memo = Memo::default();
        memo.put(4_000_000_000, Value::Int(1), 1000).unwrap();
        memo.put(3, Value::Int(2), 1000).unwrap();
        assert_eq!(memo.get(4_000_000_000).unwrap(), Value::Int(1));
        assert_eq!(memo.get(3).unwrap(), Value::Int(2));
        assert!(memo.get(2).is_err());
        assert!(memo.slots.len() < 10);
        // MEMOIZE counts what is filled, as Python does: two slots are, so the next is number 2.
        memo.push(Value::Int(3), 1000).unwrap();
        assert_eq!(memo.get(2).unwrap(), Value::Int(3));
        assert!(memo.put(1 << 40, Value::None, 1000).is_err());
    }

    #[test]
    fn the_number_of_slots_is_bounded() {
        let mut memo = Memo::default();
        assert!((0..20).all(|_| memo.push(Value::None, 20).is_ok()));
        assert!(memo.push(Value::None, 20).is_err());
    }
}
