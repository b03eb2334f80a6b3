//! Secrets: stored as hashes and compared in constant time.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The hash of a token or of a session's key. Both are long and random, so a plain hash is enough.
#[derive(Clone, Debug)]
pub struct Secret(String);

impl Secret {
    /// Hashes a secret.
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Creates the secret from its hash, as [`Self::as_str`] returns it.
    pub fn from_hash(hash: &str) -> Self {
        Self(hash.to_owned())
    }

    /// Returns the hash in hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a text is the secret.
    pub fn is(&self, text: &str) -> bool {
        self.is_same(&Self::of(text))
    }

    /// Whether two secrets are the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

/// Bytes of a new token.
const FRESH_BYTES: usize = 32;

/// Returns a new token: 256 random bits in hexadecimal digits. Returns a sentence for people on failure.
pub fn fresh_token() -> Result<String, String> {
    let mut bytes = [0; FRESH_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| format!("The system has no random numbers: {error}."))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_itself_passes() {
        let secret = Secret::of("abc");
        assert_eq!(secret.as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(secret.is("abc") && Secret::from_hash(secret.as_str()).is("abc"));
        assert!(!secret.is("") && !secret.is("abd") && !Secret::from_hash("").is("abc"));
    }
}
