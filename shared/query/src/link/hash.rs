//! The identity of a file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Hexadecimal digits of the text form.
const DIGITS: usize = 32;

/// The identity of a file: the first 128 bits of the BLAKE3 hash of its bytes, as they are on disk. A compressed file
/// has another identity than its content.
///
/// 128 bits are half a digest, so that links stay short. Two files of the same identity don't occur by accident, and
/// somebody who constructs such a pair gains a view that doesn't fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileHash(u128);

impl FileHash {
    /// Takes the identity from a BLAKE3 digest of a file's bytes.
    pub fn of_digest(digest: &[u8; 32]) -> Self {
        Self(digest.iter().take(DIGITS / 2).fold(0, |bits, byte| bits << 8 | u128::from(*byte)))
    }

    /// Parses 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hash = text.len() == DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        u128::from_str_radix(text, 16).ok().filter(|_| is_hash).map(Self)
    }
}

impl fmt::Display for FileHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_the_first_half_of_a_digest() {
        let mut digest = [0; 32];
        (digest[0], digest[15], digest[16]) = (0x0a, 0xff, 0x77);
        let hash = FileHash::of_digest(&digest);
        assert_eq!(hash.to_string(), "0a0000000000000000000000000000ff");
        assert_eq!(FileHash::parse(&hash.to_string()), Some(hash));
    }

    #[test]
    fn other_texts_are_no_identity() {
        let short = "0".repeat(31);
        for text in ["", "0", &short, &"0".repeat(33), &format!("+{short}"), &format!("g{short}"), &"é".repeat(16)] {
            assert_eq!(FileHash::parse(text), None, "{text}");
        }
    }
}
