//! Decisions of people and of retention about a session: the only stored data of it that can change.

use serde::{Deserialize, Serialize};

/// The marks of a session. Without them it is kept as long as retention allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Marks {
    /// Whether retention keeps it whatever its age, and deletes it for space only when nothing else is left.
    pub is_pinned: bool,
    /// When retention announced that it will be deleted, by the clock of retention; `None` unless it was announced.
    pub announced_us: Option<i64>,
    /// The number of its first segment that is kept; the ones before it were deleted by retention. 0 if none was.
    pub first_segment: u32,
}

impl Marks {
    /// Reads marks; the default if they can't be read, which keeps the session.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // Marks hold nothing that JSON can't represent.
        serde_json::to_vec(self).unwrap_or_default()
    }
}
