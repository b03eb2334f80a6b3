//! Stores sessions: for each a record that describes it, and its log segments.
//!
//! A log segment is a byte sequence that grows only at its end. The store doesn't interpret it (`crate::ingest` writes
//! whole recordings). Everything else reaches a store through [`TraceStore`] alone, and one set of tests holds for all
//! implementations.

#[cfg(test)]
mod contract;
mod disk;
mod memory;
mod record;

use std::fmt;
use std::io;

pub use disk::DiskStore;
pub use memory::MemoryStore;
pub use record::{DeviceTotals, Record, RecordDevice, SegmentInfo, SessionTotals};

/// Why an operation of a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk is full, or the store's quota of it.
    #[error("the store is full; free disk space or raise --keep-bytes")]
    Full,
    /// There is no session or log segment of this name, or the name is malformed.
    #[error("there is no such session in the store")]
    Missing,
    /// There is a session of this name already.
    #[error("the store has a session of this name already")]
    Exists,
    /// The stored bytes are not what was written.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Another error of the operating system.
    #[error("the store can't be read or written: {0}")]
    Io(io::Error),
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Self::Full,
            io::ErrorKind::NotFound => Self::Missing,
            _ => Self::Io(error),
        }
    }
}

/// The result of an operation of a store.
pub type StoreResult<T = ()> = Result<T, StoreError>;

/// Stores sessions. Names that [`shared::wire::is_session`] refuses are [`StoreError::Missing`]. All functions may wait
/// for a disk: never call them on an async task.
pub trait TraceStore: Send + Sync + fmt::Debug {
    /// Returns the names of all sessions, in no particular order.
    fn sessions(&self) -> StoreResult<Vec<String>>;
    /// Creates a session with its first record and no log segment. Fails with [`StoreError::Exists`] if there is one.
    fn create(&self, session: &str, record: &[u8]) -> StoreResult;
    /// Returns the record that was written last.
    fn record(&self, session: &str) -> StoreResult<Vec<u8>>;
    /// Replaces the record, durably and atomically.
    fn set_record(&self, session: &str, record: &[u8]) -> StoreResult;
    /// Creates an empty log segment, in place of any earlier one of this number.
    fn begin_segment(&self, session: &str, number: u32) -> StoreResult<Box<dyn SegmentWriter>>;
    /// Opens a log segment to append after its first `length` bytes; the bytes after them are removed.
    fn open_segment(&self, session: &str, number: u32, length: u64) -> StoreResult<Box<dyn SegmentWriter>>;
    /// Returns the numbers and lengths in bytes of the log segments, in order.
    fn segments(&self, session: &str) -> StoreResult<Vec<(u32, u64)>>;
    /// Reads up to `most` bytes of a log segment from the offset `from`; fewer only at its end.
    fn read(&self, session: &str, number: u32, from: u64, most: usize) -> StoreResult<Vec<u8>>;
    /// Deletes a log segment. Does nothing if there is none.
    fn remove_segment(&self, session: &str, number: u32) -> StoreResult;
    /// Deletes a session with its record and log segments.
    fn remove(&self, session: &str) -> StoreResult;
    /// Returns the bytes of all log segments.
    fn usage(&self) -> u64;
    /// Checks that so many bytes can be written.
    fn probe(&self, bytes: usize) -> StoreResult;
}

/// Appends to one log segment. At most one may be open for each.
pub trait SegmentWriter: Send + fmt::Debug {
    /// Appends bytes: all of them, or none. Readers see them at once; a crash may lose them until [`Self::sync`].
    fn append(&mut self, bytes: &[u8]) -> StoreResult;
    /// Makes all appended bytes durable.
    fn sync(&mut self) -> StoreResult;
    /// Returns the length in bytes.
    fn length(&self) -> u64;
}
