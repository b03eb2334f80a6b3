//! The machine that executes the opcodes.

use super::entries::Entries;
use super::memo::Memo;
use super::opcode as op;
use super::runs::Runs;
use super::text;
use crate::values::Operands;
use crate::values::SnapshotBuilder;
use crate::values::{Kind, Value};
use trace::error::ImportError;
use trace::error::{Checked, Fault, damaged, too_much, unsupported};
use trace::limits::ImportLimits;
use trace::units::Count;

/// The format's name in messages.
pub(crate) const PICKLE: &str = "pickle";
/// The newest known protocol.
const PROTOCOL: u8 = 5;
/// The most digits of a number that is written as text.
const DIGITS: usize = 1_024;
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
    byte: u64,
    protocol: u8,
    root: Option<Value>,
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
        // An operand of fixed length; returns `None` from the function if it is incomplete.
        macro_rules! operand {
            ($count:literal) => {{
                let Some(&operand) = rest.first_chunk::<$count>() else { return Ok(None) };
                next += $count;
                operand
            }};
        }
        // Bytes that follow their length.
        macro_rules! counted {
            ($count:literal, $int:ty) => {{
                let Some((length, rest)) = rest.split_first_chunk::<$count>() else { return Ok(None) };
                let length = self.length(<$int>::from_le_bytes(*length) as u64)?;
                let Some(text) = rest.get(..length) else { return Ok(None) };
                next += $count + length;
                text
            }};
        }
        // Text up to the end of the line.
        macro_rules! line {
            ($limit:expr) => {{
                let limit = $limit;
                let ahead = rest.get(..rest.len().min(limit + 1)).unwrap_or(rest);
                let Some(end) = ahead.iter().position(|&b| b == b'\n') else {
                    if ahead.len() > limit {
                        return Err(too_much(format!("a line of more than {} bytes", Count(limit as u64))));
                    }
                    return Ok(None);
                };
                next += end + 1;
                let line = ahead.get(..end).unwrap_or(&[]);
                line.strip_suffix(b"\r").unwrap_or(line)
            }};
        }
        match code {
            op::BINGET => {
                let [slot] = operand!(1);
                self.operands.push(self.memo.get(usize::from(slot))?)?;
            }
            op::LONG_BINGET => {
                let slot = u32::from_le_bytes(operand!(4));
                self.operands.push(self.memo.get(slot as usize)?)?;
            }
            op::MEMOIZE => self.memo.push(self.operands.top()?, self.builder.limits.items)?,
            op::BINPUT => {
                let [slot] = operand!(1);
                self.put(u64::from(slot))?;
            }
            op::LONG_BINPUT => {
                let slot = u32::from_le_bytes(operand!(4));
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
                let [n] = operand!(1);
                self.operands.push(Value::Int(i64::from(n)))?;
            }
            op::BININT2 => {
                let n = u16::from_le_bytes(operand!(2));
                self.operands.push(Value::Int(i64::from(n)))?;
            }
            op::BININT => {
                let n = i32::from_le_bytes(operand!(4));
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
            op::SHORT_BINUNICODE => self.string(counted!(1, u8))?,
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
            op::BINUNICODE | op::BINBYTES => self.string(counted!(4, u32))?,
            op::BINUNICODE8 | op::BINBYTES8 | op::BYTEARRAY8 => self.string(counted!(8, u64))?,
            op::SHORT_BINSTRING | op::SHORT_BINBYTES => self.string(counted!(1, u8))?,
            // Signed: a negative length reads as one far beyond every limit.
            op::BINSTRING => self.string(counted!(4, i32))?,
            op::NONE => self.operands.push(Value::None)?,
            op::NEWTRUE => self.operands.push(Value::Bool(true))?,
            op::NEWFALSE => self.operands.push(Value::Bool(false))?,
            op::BINFLOAT => {
                let n = f64::from_be_bytes(operand!(8));
                self.operands.push(Value::Float(n))?;
            }
            op::LONG4 => {
                let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
                let length = u32::from_le_bytes(*length) as usize;
                if length > self.builder.limits.integer_bytes {
                    return Err(too_much(format!("an integer of {} bytes", Count(length as u64))));
                }
                let Some(digits) = rest.get(..length) else { return Ok(None) };
                next += 4 + length;
                self.long(digits)?;
            }
            op::INT => {
                let value = match line!(DIGITS) {
                    b"00" => Value::Bool(false),
                    b"01" => Value::Bool(true),
                    digits => text::integer(digits)?,
                };
                self.number(value)?;
            }
            op::LONG => {
                let value = text::integer(line!(DIGITS))?;
                self.number(value)?;
            }
            op::FLOAT => {
                let value = text::float(line!(DIGITS))?;
                self.operands.push(value)?;
            }
            op::STRING => {
                let text = text::quoted(line!(self.builder.limits.string_bytes))?;
                self.string(&text)?;
            }
            op::UNICODE => {
                let text = text::raw_unicode(line!(self.builder.limits.string_bytes));
                self.string(&text)?;
            }
            op::GET => {
                let slot = text::slot(line!(DIGITS))?;
                let slot =
                    usize::try_from(slot).map_err(|_| damaged("the number of an object has more than 32 bits"))?;
                self.operands.push(self.memo.get(slot)?)?;
            }
            op::PUT => {
                let slot = text::slot(line!(DIGITS))?;
                self.put(slot)?;
            }
            op::TUPLE1 => self.tuple(self.operands.last(1)?)?,
            op::TUPLE2 => self.tuple(self.operands.last(2)?)?,
            op::TUPLE3 => self.tuple(self.operands.last(3)?)?,
            op::EMPTY_TUPLE => {
                let tuple = self.builder.whole_list(&[])?;
                self.operands.push(tuple)?;
            }
            op::TUPLE | op::FROZENSET => self.unmarked(Self::tuple)?,
            op::LIST => self.unmarked(Self::list)?,
            op::DICT => self.unmarked(Self::dict)?,
            op::POP => {
                // As in Python, this may remove a mark.
                if self.operands.above_mark() == 0 {
                    self.operands.unmark()?;
                } else {
                    self.operands.pop()?;
                }
            }
            op::POP_MARK => {
                let place = self.operands.unmark()?;
                self.operands.cut(place);
            }
            op::DUP => self.operands.push(self.operands.top()?)?,
            op::PROTO => {
                let [protocol] = operand!(1);
                if protocol > PROTOCOL {
                    return Err(newer_protocol(protocol));
                }
                self.protocol = protocol;
            }
            // A hint for unpicklers about how much to read at once.
            op::FRAME => {
                let length = u64::from_le_bytes(operand!(8));
                if length > self.builder.limits.plain_bytes {
                    return Err(too_much(format!("a frame of {} bytes", Count(length))));
                }
            }
            op::STOP => {
                if self.root.is_none() {
                    if self.operands.is_marked() {
                        return Err(damaged("it ends within a list or dict"));
                    }
                    self.root = Some(self.operands.pop()?);
                    self.byte += 1;
                }
                return Ok(None);
            }
            other => return Err(refused(other)),
        }
        Ok(Some(next))
    }

    #[inline]
    fn put(&mut self, slot: u64) -> Checked {
        self.memo.put(slot, self.operands.top()?, self.builder.limits.items)
    }

    /// Checks a declared string length.
    #[inline]
    fn length(&self, length: u64) -> Checked<usize> {
        match usize::try_from(length) {
            Ok(n) if n <= self.builder.limits.string_bytes => Ok(n),
            _ => Err(too_much(format!("a string of {} bytes", Count(length)))),
        }
    }

    #[inline]
    fn string(&mut self, text: &[u8]) -> Checked {
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
    fn set_items(&mut self, place: usize) -> Checked {
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

    fn list(&mut self, place: usize) -> Checked {
        let list = self.builder.node(Kind::EmptyList)?;
        self.builder.append(list, self.operands.above(place))?;
        self.replace(place, list)
    }

    fn dict(&mut self, place: usize) -> Checked {
        let dict = self.builder.node(Kind::EmptyDict)?;
        self.builder.set_items(dict, whole_pairs(self.operands.above(place))?)?;
        self.replace(place, dict)
    }

    fn tuple(&mut self, place: usize) -> Checked {
        let tuple = self.builder.whole_list(self.operands.above(place))?;
        self.replace(place, tuple)
    }

    fn replace(&mut self, place: usize, value: Value) -> Checked {
        self.operands.cut(place);
        self.operands.push(value)
    }

    fn number(&mut self, value: Value) -> Checked {
        let value = if value == Value::Odd { self.builder.odd() } else { value };
        self.operands.push(value)
    }

    /// Pushes an integer in two's complement, lowest byte first.
    fn long(&mut self, digits: &[u8]) -> Checked {
        let (low, high) = digits.split_at(digits.len().min(8));
        let negative = digits.last().is_some_and(|&b| b >= 0x80);
        let mut bytes = [if negative { 0xff } else { 0 }; 8];
        for (to, from) in bytes.iter_mut().zip(low) {
            *to = *from;
        }
        let n = i64::from_le_bytes(bytes);
        let value = match (negative, high) {
            (_, []) => Value::Int(n),
            (false, high) if high.iter().all(|&b| b == 0) => match u64::try_from(n) {
                Ok(_) => Value::Int(n),
                Err(_) => Value::Big(n as u64),
            },
            (true, high) if n < 0 && high.iter().all(|&b| b == 0xff) => Value::Int(n),
            _ => Value::Odd,
        };
        self.number(value)
    }
}

/// Returns the pairs, if each key has a value.
fn whole_pairs(pairs: &[Value]) -> Checked<&[Value]> {
    if pairs.len().is_multiple_of(2) { Ok(pairs) } else { Err(damaged("a key has no value")) }
}

/// Returns the fault of a pickle of a later protocol.
#[cold]
pub(crate) fn newer_protocol(protocol: u8) -> Box<Fault> {
    unsupported(
        format!("it uses protocol {protocol}, and this program reads up to {PROTOCOL}"),
        "Save it with protocol 4, or use a newer Vramscope.",
    )
}

#[cold]
fn refused(code: u8) -> Box<Fault> {
    match op::running_code(code) {
        Some(name) => Box::new(Fault::Code(name)),
        None => damaged(format!("the byte 0x{code:02x} is no instruction of a pickle")),
    }
}
