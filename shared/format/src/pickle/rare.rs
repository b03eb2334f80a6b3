//! The opcodes that are rare in today's snapshots. They are apart from the loop over the others, which browsers optimize the sooner the
//! shorter it is.

use super::machine::{Machine, whole_pairs};
use super::opcode as op;
use super::operand::{counted, operand};
use super::text;
use crate::values::{Kind, Value};
use trace::error::{Checked, Fault, damaged, too_much, unsupported};
use trace::units::Count;

/// The most digits of a number that is written as text.
const DIGITS: usize = 1_024;
/// The newest known protocol.
const PROTOCOL: u8 = 5;

impl Machine {
    /// Executes an opcode whose operands begin `rest`, at the offset `next`. Returns the offset of the next one; `None` if this one
    /// is incomplete or ends the pickle.
    #[inline(never)]
    pub(super) fn rare_step(&mut self, code: u8, rest: &[u8], mut next: usize) -> Checked<Option<usize>> {
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
            op::BINUNICODE8 | op::BINBYTES8 | op::BYTEARRAY8 => self.string(counted!(self, rest, next, 8, u64))?,
            op::SHORT_BINSTRING | op::SHORT_BINBYTES => self.string(counted!(self, rest, next, 1, u8))?,
            // Signed: a negative length reads as one far beyond every limit.
            op::BINSTRING => self.string(counted!(self, rest, next, 4, i32))?,
            op::BINFLOAT => {
                let n = f64::from_be_bytes(operand!(rest, next, 8));
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
                let [protocol] = operand!(rest, next, 1);
                if protocol > PROTOCOL {
                    return Err(newer_protocol(protocol));
                }
                self.protocol = protocol;
            }
            // A hint for unpicklers about how much to read at once.
            op::FRAME => {
                let length = u64::from_le_bytes(operand!(rest, next, 8));
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
    pub(super) fn long(&mut self, digits: &[u8]) -> Checked {
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
