//! Reads JSON as `json.dumps` writes it, pushed in pieces of any size.
//!
//! The tokenizer is written by hand: the numbers of a snapshot need all 64 bits, Python writes `NaN` and `Infinity`,
//! which are not JSON, and the available push parsers need a call for each byte. What a text becomes is up to a [`Target`]:
//! a snapshot, which may be long, or the tree of a short document. For the latter alone, `serde_json` would add 6 kB to the
//! page's engine.

use crate::values::Value;
use trace::error::{Checked, damaged, too_much};
use trace::units::Count;

/// The most characters of a number.
const DIGITS: usize = 1_024;

/// What the values of a text become.
pub(crate) trait Target {
    /// Whether strings may have control characters as they are. JSON forbids it; of a snapshot as much as possible is read.
    const TAKES_CONTROLS: bool;

    /// Begins an object or a list inside of `depth` others.
    fn begin(&mut self, is_object: bool, depth: usize) -> Checked;
    /// Ends the innermost object or list, which is inside of `depth` others.
    fn end(&mut self, is_object: bool, depth: usize) -> Checked;
    /// Takes a string: a key, whose value follows, or a value.
    fn string(&mut self, text: &[u8]) -> Checked;
    /// Takes a number, a boolean or `null`.
    fn scalar(&mut self, value: Value) -> Checked;
    /// Notes that another item of a list follows.
    fn next_item(&mut self) -> Checked;
}

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
pub(crate) struct JsonReader<T> {
    pub(crate) target: T,
    /// For each depth, whether it is an object.
    open: Vec<bool>,
    want: Want,
    token: Token,
    text: Vec<u8>,
    string_bytes: usize,
    byte: u64,
}

impl<T: Target> JsonReader<T> {
    /// Creates a reader of a text whose strings have at most `string_bytes`.
    pub(crate) fn new(target: T, string_bytes: usize) -> Self {
        let (open, text) = (Vec::new(), Vec::new());
        Self { target, open, want: Want::Value, token: Token::None, text, string_bytes, byte: 0 }
    }

    /// Whether the end was reached. Bytes after it are ignored.
    pub(crate) fn is_done(&self) -> bool {
        self.want == Want::Nothing
    }

    /// Returns the offset of the first byte that was not read: where the text ended, or where the last [`Self::push`] failed.
    pub(crate) fn byte(&self) -> u64 {
        self.byte
    }

    /// Returns the bytes of memory that it occupies beside its target.
    pub(crate) fn memory(&self) -> usize {
        self.open.capacity()
    }

    /// Reads more bytes. After an error nothing more can be read.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Checked {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_done() {
            let used = self.step(rest)?;
            self.byte += used as u64;
            rest = rest.get(used..).unwrap_or(&[]);
        }
        Ok(())
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
                    self.target.next_item()?;
                }
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' if matches!(self.want, Want::Value | Want::ValueOrEnd) => {
                self.token = Token::Word;
                return self.word(ahead);
            }
            _ if byte.is_ascii_graphic() => {
                return Err(damaged(format!("“{}” is not expected there", char::from(byte))));
            }
            _ => return Err(damaged(format!("the byte 0x{byte:02x} is not expected there"))),
        }
        Ok(1)
    }

    fn begin(&mut self, is_object: bool) -> Checked {
        self.target.begin(is_object, self.open.len())?;
        self.open.push(is_object);
        self.want = if is_object { Want::KeyOrEnd } else { Want::ValueOrEnd };
        Ok(())
    }

    fn end(&mut self, is_object: bool) -> Checked {
        if self.open.pop() != Some(is_object) {
            return Err(damaged("a closing bracket does not match the opening one"));
        }
        self.target.end(is_object, self.open.len())?;
        self.done();
        Ok(())
    }

    /// Notes that a value is complete.
    fn done(&mut self) {
        self.want = if self.open.is_empty() { Want::Nothing } else { Want::CommaOrEnd };
    }

    fn string(&mut self, ahead: &[u8], mut escaping: bool) -> Checked<usize> {
        let end = ahead.iter().position(|&byte| {
            let ends = byte == b'"' && !escaping;
            escaping = byte == b'\\' && !escaping;
            ends
        });
        let part = ahead.get(..end.unwrap_or(ahead.len())).unwrap_or(&[]);
        if self.text.len() + part.len() > self.string_bytes {
            return Err(too_much(format!("a string of more than {} bytes", Count(self.string_bytes as u64))));
        }
        if !T::TAKES_CONTROLS && part.iter().any(|&byte| byte < b' ') {
            return Err(damaged("a string has control characters"));
        }
        if end.is_none() {
            self.text.extend_from_slice(part);
            self.token = Token::String { escaping };
            return Ok(ahead.len());
        }
        if self.text.is_empty() && !part.contains(&b'\\') {
            self.target.string(part)?;
        } else {
            self.text.extend_from_slice(part);
            let text = unescaped(&self.text)?;
            self.text.clear();
            self.target.string(&text)?;
        }
        self.token = Token::None;
        if matches!(self.want, Want::Key | Want::KeyOrEnd) {
            self.want = Want::Colon;
        } else {
            self.done();
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
            let value = scalar(&self.text)?;
            self.text.clear();
            self.target.scalar(value)?;
            self.done();
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
            return Err(damaged("a word is neither a number nor true, false or null"));
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
