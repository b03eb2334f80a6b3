//! Random numbers from the operating system.

use wire::{SESSION_CHARS, session_id};

/// Returns a name that is unique and cannot be guessed: for a session, or as its key.
pub(super) fn random_name() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SESSION_CHARS];
    getrandom::fill(&mut bytes)?;
    Ok(session_id(bytes))
}

/// Returns a seed for a generator that need not be cryptographic.
pub(super) fn random_seed() -> Result<u64, getrandom::Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
