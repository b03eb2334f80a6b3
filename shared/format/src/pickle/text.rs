//! The operands that protocols 0 and 1 write as text.

use crate::values::Value;
use trace::error::{Checked, damaged};

/// Parses the integer of `INT` and `LONG`. Returns [`Value::Odd`] if it has more than 64 bits.
pub(super) fn integer(line: &[u8]) -> Checked<Value> {
    let digits = line.strip_suffix(b"L").unwrap_or(line);
    let text = std::str::from_utf8(digits).unwrap_or("").trim();
    if let Ok(n) = text.parse() {
        return Ok(Value::Int(n));
    }
    if let Ok(n) = text.parse() {
        return Ok(Value::Big(n));
    }
    let unsigned = text.trim_start_matches(['-', '+']);
    if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return Err(damaged("an integer contains characters other than digits"));
    }
    Ok(Value::Odd)
}

/// Parses a floating-point number.
pub(super) fn float(line: &[u8]) -> Checked<Value> {
    let text = std::str::from_utf8(line).unwrap_or("").trim();
    text.parse().map(Value::Float).map_err(|_| damaged("a floating-point number can't be read"))
}

/// Parses the number of a memo slot.
pub(super) fn slot(line: &[u8]) -> Checked<u64> {
    let text = std::str::from_utf8(line).unwrap_or("").trim();
    text.parse().map_err(|_| damaged("the number of an object can't be read"))
}

/// Parses a string as Python 2 prints it: in quotes, with escapes.
pub(super) fn quoted(line: &[u8]) -> Checked<Vec<u8>> {
    let inner = match line {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
        _ => return Err(damaged("a string has no quotes")),
    };
    let mut text = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        let Some((&escape, after)) = rest.split_first() else { break };
        rest = after;
        match escape {
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'x' => {
                let code = digits(rest, 2, 16).and_then(|code| u8::try_from(code).ok());
                text.push(code.ok_or_else(|| damaged("an escape in a string can't be read"))?);
                rest = rest.get(2..).unwrap_or(&[]);
            }
            b'\\' | b'\'' | b'"' => text.push(escape),
            other => text.extend([b'\\', other]),
        }
    }
    Ok(text)
}

/// Decodes the string of `UNICODE`: Latin-1 bytes, and `\u` escapes for other characters.
pub(super) fn raw_unicode(line: &[u8]) -> Vec<u8> {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        let width = match (byte, after.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => 0,
        };
        let code = after.get(1..).filter(|_| width > 0).and_then(|hex| digits(hex, width, 16));
        if let Some(code) = code {
            text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            rest = after.get(1 + width..).unwrap_or(&[]);
        } else {
            text.push(char::from(byte));
            rest = after;
        }
    }
    text.into_bytes()
}

fn digits(text: &[u8], count: usize, radix: u32) -> Option<u32> {
    text.get(..count)?.iter().try_fold(0u32, |n, &b| n.checked_mul(radix)?.checked_add(char::from(b).to_digit(radix)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_operands_read_as_python_reads_them() {
        assert_eq!(integer(b"-12").unwrap(), Value::Int(-12));
        assert_eq!(integer(b"9223372036854775808L").unwrap(), Value::Big(1 << 63));
        assert_eq!(integer(b"18446744073709551616").unwrap(), Value::Odd);
        assert!(integer(b"1x").is_err());
        assert!(integer(b"").is_err());
        assert_eq!(float(b"1e-3").unwrap(), Value::Float(0.001));
        assert!(float(b"one").is_err());
        assert_eq!(quoted(br"'a\x41\n\'\\'").unwrap(), b"aA\n'\\");
        assert_eq!(quoted(br#""it's""#).unwrap(), b"it's");
        assert!(quoted(b"abc").is_err());
        assert!(quoted(b"'").is_err());
        assert_eq!(raw_unicode(b"a\\u00e9\xe9\\U0001f600\\n"), "aéé😀\\n".as_bytes());
        assert_eq!(raw_unicode(b"\\u12"), b"\\u12");
        assert_eq!(raw_unicode(b"\\ud800"), "\u{fffd}".as_bytes());
    }
}
