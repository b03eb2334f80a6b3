//! Percent-encoding of values.

use std::fmt::{self, Write as _};

/// Percent-encodes the characters that a fragment cannot contain, and those that separate its parts.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<'a>(pub &'a str);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' | b':' | b'*' => {
                    f.write_char(byte.into())?;
                }
                _ => write!(f, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}

/// Decodes percent-encoded text; `None` if it is not UTF-8 or an escape is invalid.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = if byte == b'%' {
            let (high, low) = (rest.next()?, rest.next()?);
            let digit = |c: u8| char::from(c).to_digit(16);
            u8::try_from(digit(high)? * 16 + digit(low)?).ok()?
        } else {
            byte
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}
