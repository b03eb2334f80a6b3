//! Reads JSON as `json.dumps` writes it, pushed in pieces of any size.
//!
//! The tokenizer is written by hand: the numbers of a snapshot need all 64 bits, Python writes `NaN` and `Infinity`,
//! which are not JSON, and the available push parsers need a call for each byte.

use crate::values::Operands;
use crate::values::SnapshotBuilder;
use crate::values::{Kind, Value};
use trace::error::{Checked, ImportError, damaged, too_much};
use trace::limits::ImportLimits;
use trace::units::Count;

/// The format's name in messages.
pub(super) const JSON: &str = "JSON";
/// List items that are appended at once, so that a long trace never fills the stack. At least a thousand: see
/// [`SnapshotBuilder::append`].
const BATCH: usize = 1_024;
/// The most characters of a number.
const DIGITS: usize = 1_024;

/// What may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

/// A token that is incomplete at the end of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    None,
    /// A string; `escaping` if its last byte is a backslash that escapes the next.
    String {
        escaping: bool,
    },
    /// A number or a name.
    Word,
}

/// Reads one JSON text.
#[derive(Debug)]
pub(super) struct Json {
    builder: SnapshotBuilder,
    operands: Operands,
    /// For each depth, whether it is an object.
    open: Vec<bool>,
    want: Want,
    token: Token,
    text: Vec<u8>,
    byte: u64,
    root: Option<Value>,
}

impl Json {
    pub(super) fn new(limits: ImportLimits) -> Self {
        Self {
            builder: SnapshotBuilder::new(limits),
            operands: Operands::new(limits.stack_items, limits.depth),
            open: Vec::new(),
            want: Want::Value,
            token: Token::None,
            text: Vec::new(),
            byte: 0,
            root: None,
        }
    }

    /// Returns the number of trace entries read so far.
    pub(super) fn events(&self) -> usize {
        self.builder.events.len()
    }

    /// Whether the end was reached. Bytes after it are ignored.
    pub(super) fn is_done(&self) -> bool {
        self.root.is_some()
    }

    /// Returns the offset of the first byte behind the text, once its end was reached.
    pub(super) fn ended_at(&self) -> Option<u64> {
        self.is_done().then_some(self.byte)
    }

    /// Returns the approximate bytes of memory of what was read.
    pub(super) fn memory(&self) -> usize {
        self.builder.memory() + self.operands.memory() + self.open.capacity()
    }

    /// Reads more bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            let ahead = bytes.get(at..).unwrap_or(&[]);
            match self.step(ahead) {
                Ok(used) => at += used,
                Err(fault) => return Err(fault.at(JSON, self.byte + at as u64)),
            }
        }
        self.byte += at as u64;
        Ok(())
    }

    /// Returns what was read, the root, and where the text was truncated, if it was.
    pub(super) fn finish(mut self) -> Result<(SnapshotBuilder, Option<Value>, Option<u64>), ImportError> {
        let cut_at = self.root.is_none().then_some(self.byte);
        let root = match self.root {
            Some(root) => Some(root),
            None => self.operands.close(&mut self.builder).map_err(|fault| fault.at(JSON, self.byte))?,
        };
        Ok((self.builder, root, cut_at))
    }

    /// Reads the next token, or the available part of it. Returns its length.
    fn step(&mut self, ahead: &[u8]) -> Checked<usize> {
        match self.token {
            Token::String { escaping } => return self.string(ahead, escaping),
            Token::Word => return self.word(ahead),
            Token::None => {}
        }
        let Some(&byte) = ahead.first() else { return Ok(0) };
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'"' if matches!(self.want, Want::Value | Want::ValueOrEnd | Want::Key | Want::KeyOrEnd) => {
                self.token = Token::String { escaping: false };
            }
            b'{' | b'[' if matches!(self.want, Want::Value | Want::ValueOrEnd) => self.begin(byte == b'{')?,
            b'}' if matches!(self.want, Want::KeyOrEnd | Want::CommaOrEnd) => self.end(true)?,
            b']' if matches!(self.want, Want::ValueOrEnd | Want::CommaOrEnd) => self.end(false)?,
            b':' if self.want == Want::Colon => self.want = Want::Value,
            b',' if self.want == Want::CommaOrEnd => {
                if self.open.last() == Some(&true) {
                    self.want = Want::Key;
                } else {
                    self.want = Want::Value;
                    if self.operands.above_mark() >= BATCH {
                        self.flush()?;
                    }
                }
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' if matches!(self.want, Want::Value | Want::ValueOrEnd) => {
                self.token = Token::Word;
                return self.word(ahead);
            }
            _ => return Err(damaged(format!("unexpected character (0x{byte:02x})"))),
        }
        Ok(1)
    }

    fn begin(&mut self, is_object: bool) -> Checked {
        // An object is converted when it is complete. Only the outermost is filled entry by entry, so that it may be
        // truncated.
        let target = match (is_object, self.open.is_empty()) {
            (true, true) => self.builder.node(Kind::EmptyDict)?,
            (true, false) => Value::None,
            (false, _) => self.builder.node(Kind::EmptyList)?,
        };
        self.operands.push(target)?;
        self.operands.mark()?;
        self.open.push(is_object);
        self.want = if is_object { Want::KeyOrEnd } else { Want::ValueOrEnd };
        Ok(())
    }

    fn end(&mut self, is_object: bool) -> Checked {
        if self.open.pop() != Some(is_object) {
            return Err(damaged("a closing bracket does not match the opening one"));
        }
        if is_object {
            let place = self.operands.unmark()?;
            if self.open.is_empty() {
                let root = self.operands.below(place)?;
                self.builder.set_items(root, self.operands.above(place))?;
                self.operands.cut(place);
            } else {
                let object = self.builder.whole_dict(self.operands.above(place))?;
                self.operands.cut(place);
                self.operands.pop()?;
                self.operands.push(object)?;
            }
        } else {
            self.flush()?;
            self.operands.unmark()?;
        }
        self.done()
    }

    /// Appends the waiting items to the innermost list.
    fn flush(&mut self) -> Checked {
        let place = self.operands.unmark()?;
        let list = self.operands.below(place)?;
        self.builder.append(list, self.operands.above(place))?;
        self.operands.cut(place);
        self.operands.mark()
    }

    /// Handles a complete value.
    fn done(&mut self) -> Checked {
        self.want = Want::CommaOrEnd;
        if self.open.is_empty() {
            self.want = Want::Nothing;
            self.root = Some(self.operands.pop()?);
        }
        Ok(())
    }

    fn string(&mut self, ahead: &[u8], mut escaping: bool) -> Checked<usize> {
        let end = ahead.iter().position(|&byte| {
            let ends = byte == b'"' && !escaping;
            escaping = byte == b'\\' && !escaping;
            ends
        });
        let part = ahead.get(..end.unwrap_or(ahead.len())).unwrap_or(&[]);
        if self.text.len() + part.len() > self.builder.limits.string_bytes {
            let limit = self.builder.limits.string_bytes as u64;
            return Err(too_much(format!("a string of more than {} bytes", Count(limit))));
        }
        if end.is_none() {
            self.text.extend_from_slice(part);
            self.token = Token::String { escaping };
            return Ok(ahead.len());
        }
        let value = if self.text.is_empty() && !part.contains(&b'\\') {
            self.builder.string(part)?
        } else {
            self.text.extend_from_slice(part);
            let text = unescaped(&self.text)?;
            self.text.clear();
            self.builder.string(&text)?
        };
        self.token = Token::None;
        self.operands.push(value)?;
        if matches!(self.want, Want::Key | Want::KeyOrEnd) {
            self.want = Want::Colon;
        } else {
            self.done()?;
        }
        Ok(part.len() + 1)
    }

    fn word(&mut self, ahead: &[u8]) -> Checked<usize> {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        let end = ahead.iter().position(|b| !is_part(b));
        let part = ahead.get(..end.unwrap_or(ahead.len())).unwrap_or(&[]);
        if self.text.len() + part.len() > DIGITS {
            return Err(damaged("a number is too long"));
        }
        self.text.extend_from_slice(part);
        if end.is_some() {
            self.token = Token::None;
            let value = match scalar(&self.text)? {
                Value::Odd => self.builder.odd(),
                value => value,
            };
            self.text.clear();
            self.operands.push(value)?;
            self.done()?;
        }
        Ok(part.len())
    }
}

/// Parses a number or a name.
fn scalar(word: &[u8]) -> Checked<Value> {
    let text = std::str::from_utf8(word).unwrap_or("");
    Ok(match text {
        "null" => Value::None,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "NaN" => Value::Float(f64::NAN),
        "Infinity" => Value::Float(f64::INFINITY),
        "-Infinity" => Value::Float(f64::NEG_INFINITY),
        _ if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
            return Err(damaged("an unknown word"));
        }
        _ => {
            if let Ok(n) = text.parse() {
                Value::Int(n)
            } else if let Ok(n) = text.parse() {
                Value::Big(n)
            } else if text.strip_prefix('-').unwrap_or(text).bytes().all(|b| b.is_ascii_digit()) && text != "-" {
                // More than 64 bits.
                Value::Odd
            } else {
                text.parse().map(Value::Float).map_err(|_| damaged("a number can't be read"))?
            }
        }
    })
}

/// Returns a string's bytes with its escapes resolved.
fn unescaped(raw: &[u8]) -> Checked<Vec<u8>> {
    let bad = || damaged("an escape in a string can't be read");
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        let (&escape, after) = rest.split_first().ok_or_else(bad)?;
        rest = after;
        text.push(match escape {
            b'"' | b'\\' | b'/' => escape,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (code, after) = hex4(rest).ok_or_else(bad)?;
                rest = after;
                let mut code = code;
                // A surrogate pair.
                if (0xd800..0xdc00).contains(&code)
                    && let Some((low, after)) = rest.strip_prefix(b"\\u").and_then(hex4)
                    && (0xdc00..0xe000).contains(&low)
                {
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    rest = after;
                }
                let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            _ => return Err(bad()),
        });
    }
    Ok(text)
}

fn hex4(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_first_chunk::<4>()?;
    let code = digits.iter().try_fold(0, |n, &b| Some(n << 4 | char::from(b).to_digit(16)?))?;
    Some((code, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], piece: usize) -> Result<(Value, SnapshotBuilder), ImportError> {
        let mut json = Json::new(ImportLimits::default());
        for part in text.chunks(piece) {
            json.push(part)?;
        }
        let (builder, root, cut_at) = json.finish()?;
        assert_eq!(cut_at, None);
        Ok((root.unwrap(), builder))
    }

    #[test]
    fn scalars_are_read_whatever_the_pieces() {
        let text =
            br#"[1, -2, 18446744073709551615, 1.5e3, NaN, -Infinity, true, null, "a\u00e9\ud83d\ude00\"\n", {}]"#;
        for piece in [1, 2, 3, 7, 1000] {
            let (root, builder) = read(text, piece).unwrap();
            let Value::Node(id) = root else { panic!("{root:?}") };
            let Kind::List(place) = builder.kind(id) else { panic!() };
            let items = builder.kept.get(place);
            assert_eq!(items[..4], [Value::Int(1), Value::Int(-2), Value::Big(u64::MAX), Value::Float(1500.0)]);
            assert!(matches!(items[4], Value::Float(f) if f.is_nan()));
            assert_eq!(items[5..8], [Value::Float(f64::NEG_INFINITY), Value::Bool(true), Value::None]);
            assert_eq!(builder.symbols.unshown(items[8].str().unwrap()), "aé😀\"\n");
        }
    }

    #[test]
    fn malformed_json_is_refused() {
        for text in ["[1 2]", "{1:2}", "[}", "{\"a\" 1}", "[nul]", "[\"\\x\"]", "[--]", "]", "[1.2.3]"] {
            assert!(read(text.as_bytes(), 100).is_err(), "{text}");
        }
        let nested = "[".repeat(1_000_000);
        assert!(matches!(read(nested.as_bytes(), 4096), Err(ImportError::TooMuch { .. })));
    }
}
