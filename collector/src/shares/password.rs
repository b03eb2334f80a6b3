//! Passwords of links, kept as Argon2id hashes.

use argon2::Argon2;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::{ShareError, ShareResult, random};

/// Bytes of a salt, and of a hash.
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// A password's hash. The parameters are the library's: Argon2id with 19 MiB and two passes, as OWASP recommends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Password {
    salt: [u8; SALT_BYTES],
    hash: [u8; HASH_BYTES],
}

impl Password {
    /// Hashes a password with a new salt.
    pub(super) fn of(text: &str) -> ShareResult<Self> {
        let salt = random::<SALT_BYTES>()?;
        Ok(Self { salt, hash: hash(text, &salt)? })
    }

    /// Whether a text is the password.
    pub(super) fn is(&self, text: &str) -> bool {
        hash(text, &self.salt).is_ok_and(|hash| hash.ct_eq(&self.hash).into())
    }
}

fn hash(text: &str, salt: &[u8]) -> ShareResult<[u8; HASH_BYTES]> {
    let mut hash = [0; HASH_BYTES];
    let hashed = Argon2::default().hash_password_into(text.as_bytes(), salt, &mut hash);
    hashed.map_err(|error| ShareError::Hashing(error.to_string()))?;
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_itself_passes_and_two_hashes_differ() {
        let password = Password::of("correct horse").unwrap();
        assert!(password.is("correct horse") && !password.is("correct horse ") && !password.is(""));
        assert_ne!(Password::of("correct horse").unwrap(), password);
    }
}
