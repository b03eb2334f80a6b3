//! Chance, from the operating system.

use shared::wire::{SESSION_CHARS, session_id};

use super::PublishError;

/// A name that nobody else has and nobody can guess: of a session, or its key.
pub(super) fn name() -> Result<String, PublishError> {
    let mut bytes = [0; SESSION_CHARS];
    getrandom::fill(&mut bytes).map_err(|error| PublishError::Chance(error.to_string()))?;
    Ok(session_id(bytes))
}

/// A number to begin with where chance needn't be good.
pub(super) fn seed() -> Result<u64, PublishError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| PublishError::Chance(error.to_string()))?;
    Ok(u64::from_le_bytes(bytes))
}
