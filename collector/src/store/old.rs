//! The folder of earlier versions.
//!
//! ```text
//! sessions/{session}/session.json       the record
//! sessions/{session}/{number}.vramscope segments without labels
//! ```

use std::sync::Arc;

use shared::format::EXTENSION;
use shared::wire::is_session;

use super::files::Files;
use super::layout::checked;
use super::{StoreError, StoreResult};

const SESSIONS: &str = "sessions";
const RECORD: &str = "session.json";
/// Bytes of a record: far more than any version wrote.
const RECORD_BYTES: usize = 64 << 20;

/// Reads and removes what earlier versions stored.
#[derive(Debug)]
pub struct OldFolder {
    files: Arc<dyn Files>,
}

impl OldFolder {
    pub(super) fn new(files: Arc<dyn Files>) -> Self {
        Self { files }
    }

    /// Returns the names of the sessions.
    pub fn sessions(&self) -> StoreResult<Vec<String>> {
        let entries = self.files.list(SESSIONS)?.into_iter();
        Ok(entries.filter(|entry| entry.is_folder && is_session(&entry.name)).map(|entry| entry.name).collect())
    }

    /// Returns the record of a session; `None` if it is missing.
    pub fn record(&self, session: &str) -> StoreResult<Option<Vec<u8>>> {
        let path = format!("{}/{RECORD}", folder(session)?);
        match self.files.read(&path, 0, RECORD_BYTES).map_err(StoreError::from) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StoreError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the numbers and lengths in bytes of a session's segments, in order.
    pub fn segments(&self, session: &str) -> StoreResult<Vec<(u32, u64)>> {
        let mut segments = Vec::new();
        for entry in self.files.list(&folder(session)?)? {
            let number = entry.name.strip_suffix(EXTENSION).and_then(|stem| stem.strip_suffix('.'));
            if let Some(number) = number.filter(|stem| stem.len() == 8).and_then(|stem| stem.parse().ok()) {
                segments.push((number, entry.bytes));
            }
        }
        segments.sort_unstable();
        Ok(segments)
    }

    /// Reads up to `most` bytes of a segment from the offset `from`; fewer only at its end.
    pub fn read(&self, session: &str, number: u32, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        Ok(self.files.read(&segment(session, number)?, from, most)?)
    }

    /// Removes a session.
    pub fn remove(&self, session: &str) -> StoreResult {
        for (number, _) in self.segments(session)? {
            self.files.remove(&segment(session, number)?)?;
        }
        let folder = folder(session)?;
        // The record last: a crash in between leaves a session without segments, whose removal is repeated.
        for name in [RECORD, "session.new"] {
            self.files.remove(&format!("{folder}/{name}"))?;
        }
        self.files.remove_folder(&folder)?;
        Ok(self.files.remove_folder(SESSIONS)?)
    }
}

fn folder(session: &str) -> StoreResult<String> {
    Ok(format!("{SESSIONS}/{}", checked(session)?))
}

fn segment(session: &str, number: u32) -> StoreResult<String> {
    Ok(format!("{}/{number:08}.{EXTENSION}", folder(session)?))
}
