//! The hash that names a sealed segment.

use std::fmt;

/// A BLAKE3 hash of the bytes of a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hash(blake3::Hash);

impl Hash {
    /// Hashes bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes))
    }

    /// Reads 64 hexadecimal digits, as they are written: a file whose name has capital letters is another file.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
        blake3::Hash::from_hex(text).ok().map(Self).filter(|_| text.bytes().all(is_digit))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

/// Hashes bytes that come piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the hash of everything that was added.
    pub fn finish(&self) -> Hash {
        Hash(self.0.finalize())
    }
}
