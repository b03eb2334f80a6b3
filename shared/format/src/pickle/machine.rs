//! The machine that executes the opcodes.

use super::entries::Entries;
use super::memo::Memo;
use super::opcode as op;
use super::operand::{counted, operand};
use super::runs::Runs;
use crate::values::Operands;
use crate::values::SnapshotBuilder;
use crate::values::{Kind, Value};
use trace::error::ImportError;
use trace::error::{Checked, damaged, too_much};
use trace::limits::ImportLimits;
use trace::units::Count;

/// The format's name in messages.
pub(crate) const PICKLE: &str = "pickle";
/// Bytes that are first added to an incomplete opcode.
const MORE: usize = 16;

/// Reads one pickle, pushed in pieces.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(super) builder: SnapshotBuilder,
    pub(super) operands: Operands,
    pub(super) memo: Memo,
    pub(super) runs: Runs,
    pub(super) entries: Entries,
    pub(super) frame_changes: u32,
    /// The beginning of an incomplete opcode.
    carry: Vec<u8>,
    /// The offset of the next byte in the pickle.
    pub(super) byte: u64,
    pub(super) protocol: u8,
    pub(super) root: Option<Value>,
}

/// The contents of a pickle.
#[derive(Debug)]
pub(crate) struct Unpickled {
    pub(crate) builder: SnapshotBuilder,
    pub(crate) root: Option<Value>,
    pub(crate) protocol: u8,
    /// Where the pickle was truncated, if it was.
    pub(crate) cut_at: Option<u64>,
}

impl Machine {
    /// Creates a machine for the start of a pickle. `protocol` holds for a pickle that doesn't declare one.
    pub(crate) fn new(limits: ImportLimits, protocol: u8) -> Self {
        Self {
            builder: SnapshotBuilder::new(limits),
            operands: Operands::new(limits.stack_items, limits.depth),
            memo: Memo::default(),
            runs: Runs::new(limits.remembered_bytes),
            entries: Entries::default(),
            frame_changes: 0,
            carry: Vec::new(),
            byte: 0,
            protocol,
            root: None,
        }
    }

    /// Returns the number of trace entries read so far.
    pub(crate) fn events(&self) -> usize {
        self.builder.events.len()
    }

    /// Whether the pickle's end was reached. Bytes after it are ignored.
    pub(crate) fn is_done(&self) -> bool {
        self.root.is_some()
    }

    /// Returns the offset of the first byte behind the pickle, once its end was reached.
    pub(crate) fn ended_at(&self) -> Option<u64> {
        self.is_done().then_some(self.byte)
    }

    /// Returns the approximate bytes of memory of what was read. The cache of repeated lists has a limit of its own.
    pub(crate) fn memory(&self) -> usize {
        self.builder.memory() + self.operands.memory() + self.memo.memory()
    }

    /// Reads more bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        let mut rest = bytes;
        while !self.carry.is_empty() && !rest.is_empty() && !self.is_done() {
            // Only enough to complete the opcode, doubling while it is longer.
            let (more, after) = rest.split_at(rest.len().min(self.carry.len().max(MORE)));
            let mut opcode = std::mem::take(&mut self.carry);
            opcode.extend_from_slice(more);
            let used = self.run(&opcode)?;
            if used == 0 {
                self.carry = opcode;
                rest = after;
            } else {
                // The opcode ends within `more`; the rest of it begins the next opcode.
                let left = opcode.len() - used;
                rest = rest.get(more.len() - left.min(more.len())..).unwrap_or(&[]);
            }
        }
        if rest.is_empty() || self.is_done() {
            return Ok(());
        }
        let used = self.run(rest)?;
        if !self.is_done() {
            self.carry.extend_from_slice(rest.get(used..).unwrap_or(&[]));
        }
        Ok(())
    }

    /// Returns what was read. A truncated pickle is closed as far as possible.
    pub(crate) fn finish(mut self) -> Result<Unpickled, ImportError> {
        let end = self.byte + self.carry.len() as u64;
        let cut_at = self.root.is_none().then_some(end);
        let root = match self.root {
            Some(root) => Some(root),
            None => self.operands.close(&mut self.builder).map_err(|fault| fault.at(PICKLE, end))?,
        };
        Ok(Unpickled { builder: self.builder, root, protocol: self.protocol, cut_at })
    }

    /// Executes the opcodes that are complete in `bytes`. Returns their length.
    fn run(&mut self, bytes: &[u8]) -> Result<usize, ImportError> {
        let mut at = 0;
        let fault = loop {
            match self.step(bytes, at) {
                Ok(Some(next)) => at = next,
                Ok(None) => {
                    self.byte += at as u64;
                    return Ok(at);
                }
                Err(fault) => break fault,
            }
        };
        Err(fault.at(PICKLE, self.byte + at as u64))
    }

    /// Executes the opcode at `at`. Returns the offset of the next one; `None` if this one is incomplete or ends the
    /// pickle.
    #[inline(always)]
    fn step(&mut self, bytes: &[u8], at: usize) -> Checked<Option<usize>> {
        let Some((&code, rest)) = bytes.get(at..).and_then(<[u8]>::split_first) else { return Ok(None) };
        let mut next = at + 1;
        match code {
            op::BINGET => {
                let [slot] = operand!(rest, next, 1);
                self.operands.push(self.memo.get(usize::from(slot))?)?;
            }
            op::LONG_BINGET => {
                let slot = u32::from_le_bytes(operand!(rest, next, 4));
                self.operands.push(self.memo.get(slot as usize)?)?;
            }
            op::MEMOIZE => self.memo.push(self.operands.top()?, self.builder.limits.items)?,
            op::BINPUT => {
                let [slot] = operand!(rest, next, 1);
                self.put(u64::from(slot))?;
            }
            op::LONG_BINPUT => {
                let slot = u32::from_le_bytes(operand!(rest, next, 4));
                self.put(u64::from(slot))?;
            }
            op::MARK => match self.known_frames(rest)? {
                0 => self.operands.mark()?,
                length => next += length,
            },
            op::EMPTY_DICT => match self.whole_entries(rest)? {
                0 => {
                    let dict = self.builder.node(Kind::EmptyDict)?;
                    self.operands.push(dict)?;
                }
                length => next += length,
            },
            op::EMPTY_LIST | op::EMPTY_SET => {
                let list = self.builder.node(Kind::EmptyList)?;
                self.operands.push(list)?;
            }
            op::BININT1 => {
                let [n] = operand!(rest, next, 1);
                self.operands.push(Value::Int(i64::from(n)))?;
            }
            op::BININT2 => {
                let n = u16::from_le_bytes(operand!(rest, next, 2));
                self.operands.push(Value::Int(i64::from(n)))?;
            }
            op::BININT => {
                let n = i32::from_le_bytes(operand!(rest, next, 4));
                self.operands.push(Value::Int(i64::from(n)))?;
            }
            op::LONG1 => {
                let Some((&count, rest)) = rest.split_first() else { return Ok(None) };
                let length = usize::from(count);
                let Some(digits) = rest.get(..length) else { return Ok(None) };
                next += 1 + length;
                match rest.first_chunk::<8>() {
                    // Addresses and times: read eight bytes and shift out those beyond the integer.
                    Some(&eight) if (1..=8).contains(&length) => {
                        let beside = 64 - 8 * u32::from(count);
                        let n = i64::from_le_bytes(eight) << beside >> beside;
                        self.operands.push(Value::Int(n))?;
                    }
                    _ => self.long(digits)?,
                }
            }
            op::SHORT_BINUNICODE => self.string(counted!(self, rest, next, 1, u8))?,
            op::SETITEMS => self.unmarked(Self::set_items)?,
            op::APPENDS | op::ADDITEMS => self.unmarked(Self::append)?,
            op::SETITEM => {
                let place = self.operands.last(2)?;
                self.set_items(place)?;
            }
            op::APPEND => {
                let place = self.operands.last(1)?;
                self.append(place)?;
            }
            op::BINUNICODE | op::BINBYTES => self.string(counted!(self, rest, next, 4, u32))?,
            op::NONE => self.operands.push(Value::None)?,
            op::NEWTRUE => self.operands.push(Value::Bool(true))?,
            op::NEWFALSE => self.operands.push(Value::Bool(false))?,
            _ => return self.rare_step(code, rest, next),
        }
        Ok(Some(next))
    }

    #[inline]
    pub(super) fn put(&mut self, slot: u64) -> Checked {
        self.memo.put(slot, self.operands.top()?, self.builder.limits.items)
    }

    /// Checks a declared string length.
    #[inline]
    pub(super) fn length(&self, length: u64) -> Checked<usize> {
        match usize::try_from(length) {
            Ok(n) if n <= self.builder.limits.string_bytes => Ok(n),
            _ => Err(too_much(format!("a string of {} bytes", Count(length)))),
        }
    }

    #[inline]
    pub(super) fn string(&mut self, text: &[u8]) -> Checked {
        let value = self.builder.string(text)?;
        self.operands.push(value)
    }

    /// Removes the last mark for what handles the values above its place. If that fails, the mark is back, so that what was read
    /// before is as it was.
    #[inline]
    pub(super) fn unmarked(&mut self, handle: impl FnOnce(&mut Self, usize) -> Checked) -> Checked {
        let place = self.operands.unmark()?;
        let handled = handle(self, place);
        if handled.is_err() {
            self.operands.mark_again(place);
        }
        handled
    }

    #[inline]
    pub(super) fn set_items(&mut self, place: usize) -> Checked {
        let dict = self.operands.below(place)?;
        self.builder.set_items(dict, whole_pairs(self.operands.above(place))?)?;
        self.operands.cut(place);
        Ok(())
    }

    #[inline]
    pub(super) fn append(&mut self, place: usize) -> Checked {
        let list = self.operands.below(place)?;
        self.builder.append(list, self.operands.above(place))?;
        self.operands.cut(place);
        Ok(())
    }
}

/// Returns the pairs, if each key has a value.
pub(super) fn whole_pairs(pairs: &[Value]) -> Checked<&[Value]> {
    if pairs.len().is_multiple_of(2) { Ok(pairs) } else { Err(damaged("a key has no value")) }
}
