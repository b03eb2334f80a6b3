//! A sealed segment.

use crate::store::layout::{parse_sealed, sealed_path};
use crate::store::{Hash, StoreResult};

/// A sealed segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Sealed {
    /// Its number within the session.
    pub(in crate::store) number: u32,
    /// The hash of its bytes.
    pub(in crate::store) hash: Hash,
    /// Its length in bytes.
    pub(in crate::store) bytes: u64,
}

impl Sealed {
    /// Returns the segment of a file of the archive; `None` for other files.
    pub(super) fn of_file(name: &str, bytes: u64) -> Option<Self> {
        parse_sealed(name).map(|(number, hash)| Self { number, hash, bytes })
    }

    /// Returns its path in the archive.
    pub(super) fn path(&self, session: &str) -> StoreResult<String> {
        sealed_path(session, self.number, self.hash)
    }
}
