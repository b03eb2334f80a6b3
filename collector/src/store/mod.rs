//! Where sessions are kept: for each a record about it, and its segments.
//!
//! A segment is bytes that only grow at their end; what they mean is not known here (`crate::ingest` writes whole
//! recordings). Everything above reaches a store through [`TraceStore`] alone, and one set of tests holds for every kind
//! of store.

#[cfg(test)]
mod contract;
mod cut;
mod disk;
mod memory;
mod record;

use std::fmt;
use std::io;

pub use cut::{Cut, Piece};
pub use disk::DiskStore;
pub use memory::MemoryStore;
pub use record::{DeviceTotals, Record, RecordDevice, SegmentInfo, Totals};

/// Why a store can't do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk, or what it may take of it, is full.
    #[error("there is no room left in the store")]
    Full,
    /// It has nothing of this name, or the name is none.
    #[error("the store has no such session")]
    Missing,
    /// It has one of this name already.
    #[error("the store has a session of this name")]
    Exists,
    /// What it has is not what was written.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// What the system says.
    #[error("the store can't be used: {0}")]
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

/// What a store gives back.
pub type StoreResult<T = ()> = Result<T, StoreError>;

/// Keeps sessions. A session's name has the form of [`shared::wire::is_session`]; every other one is [`StoreError::Missing`].
/// Functions may wait for a disk: never call them where others wait in turn.
pub trait TraceStore: Send + Sync + fmt::Debug {
    /// The names of all sessions, in no order.
    fn sessions(&self) -> StoreResult<Vec<String>>;
    /// Makes a session without a segment, with its first record. [`StoreError::Exists`] where there is one.
    fn create(&self, session: &str, record: &[u8]) -> StoreResult;
    /// The record that was written last.
    fn record(&self, session: &str) -> StoreResult<Vec<u8>>;
    /// Replaces the record: durably, and as a whole or not at all.
    fn set_record(&self, session: &str, record: &[u8]) -> StoreResult;
    /// Begins an empty segment, in place of one of this number that was there.
    fn begin_segment(&self, session: &str, number: u32) -> StoreResult<Box<dyn SegmentWriter>>;
    /// Goes on with a segment behind its first `length` bytes; the others are dropped.
    fn open_segment(&self, session: &str, number: u32, length: u64) -> StoreResult<Box<dyn SegmentWriter>>;
    /// The segments' numbers and lengths in bytes, in order.
    fn segments(&self, session: &str) -> StoreResult<Vec<(u32, u64)>>;
    /// Up to `most` bytes of a segment; fewer only at its end.
    fn read(&self, session: &str, number: u32, from: u64, most: usize) -> StoreResult<Vec<u8>>;
    /// Drops a segment. Nothing happens where there is none.
    fn remove_segment(&self, session: &str, number: u32) -> StoreResult;
    /// Drops a session with all that it has.
    fn remove(&self, session: &str) -> StoreResult;
    /// Bytes of all segments.
    fn usage(&self) -> u64;
    /// Whether so many bytes can be written.
    fn probe(&self, bytes: usize) -> StoreResult;
}

/// Adds to one segment. Only one may be open for each.
pub trait SegmentWriter: Send + fmt::Debug {
    /// Adds bytes at the end: all of them, or none. Readers see them at once; a crash may lose them.
    fn append(&mut self, bytes: &[u8]) -> StoreResult;
    /// Makes everything that was added safe from a crash.
    fn sync(&mut self) -> StoreResult;
    /// Its length in bytes.
    fn length(&self) -> u64;
}
