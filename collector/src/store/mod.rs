//! Stores sessions: each is a row of numbered segments.
//!
//! ```text
//! begin ─► append, sync ─► append, sync … ─► seal ─► an immutable file, named by the hash of its bytes
//!          the log: local, synced before every acknowledgement      in a folder or in an object store
//! ```
//! A segment is a recording by itself. It begins and, once it is sealed, ends with a [`Label`] that names the session, so
//! everything that is known of a session can be found again from its segments alone. Segments are found by looking, never by
//! a list: the [catalogue](Catalogue) only makes a start quick.
//!
//! Nothing is deleted that can't be proven garbage: a damaged segment is set aside in a folder of its own.
//!
//! Everything else reaches a store through [`TraceStore`] alone, and one set of tests holds for all places where segments can
//! be kept.

mod archive;
mod catalogue;
pub mod files;
mod hash;
mod label;
mod layout;
mod marks;
mod old;
mod quota;
mod record;
mod segment_store;
mod shelf;

use std::collections::BTreeMap;
use std::fmt;
use std::io;

pub use archive::{Archive, FolderArchive, ObjectArchive, Sealed};
pub use catalogue::Catalogue;
pub use hash::{Hash, Hasher};
pub use label::Label;
pub use marks::Marks;
pub use old::OldFolder;
pub use record::{DeviceTotals, Record, RecordDevice, SegmentInfo, SessionTotals};
pub use segment_store::SegmentStore;
pub use shelf::{FolderShelf, ObjectShelf, Shelf};

/// Why an operation of a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk is full, or the store's quota of it.
    #[error("the store is full; free disk space or raise --keep-bytes")]
    Full,
    /// There is no session or segment of this name, or the name is malformed.
    #[error("there is no such session in the store")]
    Missing,
    /// The stored bytes are not what was written.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Another error of the operating system or of an object store.
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

/// A segment, as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its number within the session.
    pub number: u32,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its hash, for a sealed segment; `None` for one that was still growing.
    pub hash: Option<Hash>,
}

/// Stores sessions. Names that [`shared::wire::is_session`] refuses are [`StoreError::Missing`]. All functions may wait
/// for a disk or a network: never call them on an async task.
pub trait TraceStore: Send + Sync + fmt::Debug {
    /// Returns the segments of all sessions, in the order of their numbers.
    fn list(&self) -> StoreResult<BTreeMap<String, Vec<Found>>>;
    /// Returns the segments of one session, in the order of their numbers; none if there is no such session. A segment that
    /// was being sealed when the server crashed is there twice.
    fn segments(&self, session: &str) -> StoreResult<Vec<Found>>;
    /// Begins a segment. Nobody sees it before [`SegmentWriter::publish`] or [`SegmentWriter::seal`].
    fn begin(&self, session: &str, number: u32, purpose: Purpose) -> StoreResult<Box<dyn SegmentWriter>>;
    /// Reads up to `most` bytes of a segment from the offset `from`; fewer only at its end.
    fn read(&self, session: &str, number: u32, from: u64, most: usize) -> StoreResult<Vec<u8>>;
    /// Reads up to `most` bytes of the growing segment of a number, even if a sealed one has the same number.
    fn read_open(&self, session: &str, number: u32, from: u64, most: usize) -> StoreResult<Vec<u8>>;
    /// Deletes the growing segment of a number, whose content is sealed elsewhere. Does nothing if there is none.
    fn remove_open(&self, session: &str, number: u32) -> StoreResult;
    /// Sets a damaged segment aside, where the server never deletes it.
    fn set_aside(&self, session: &str, found: Found) -> StoreResult;
    /// Deletes a segment, sealed or growing. Does nothing if there is none.
    fn remove_segment(&self, session: &str, number: u32) -> StoreResult;
    /// Deletes a session with everything that is kept of it, except for what was set aside.
    fn remove(&self, session: &str) -> StoreResult;
    /// Returns what was decided about a session; the default if nothing was, or if it can't be read.
    fn marks(&self, session: &str) -> StoreResult<Marks>;
    /// Replaces what was decided about a session, durably and atomically.
    fn set_marks(&self, session: &str, marks: &Marks) -> StoreResult;
    /// Returns the catalogue as it was saved last; empty if it is missing or damaged.
    fn catalogue(&self) -> Catalogue;
    /// Saves the catalogue.
    fn save_catalogue(&self, catalogue: &Catalogue) -> StoreResult;
    /// Returns the time of the clock of retention that was saved last, in microseconds since the epoch.
    fn kept_us(&self) -> Option<i64>;
    /// Saves the time of the clock of retention.
    fn set_kept_us(&self, time_us: i64) -> StoreResult;
    /// Returns what was set aside: for each file the session, the file's name and its length in bytes.
    fn quarantine(&self) -> StoreResult<Vec<(String, String, u64)>>;
    /// Returns what earlier versions stored in the same folder.
    fn old(&self) -> OldFolder;
    /// Returns the bytes of all segments.
    fn usage(&self) -> u64;
    /// Checks that so many bytes can be written.
    fn probe(&self, bytes: usize) -> StoreResult;
}

/// Appends to one segment. A writer that is dropped before [`Self::publish`] and [`Self::seal`] leaves nothing behind.
pub trait SegmentWriter: Send + fmt::Debug {
    /// Appends bytes: all of them, or none. A crash may lose them until [`Self::sync`].
    fn append(&mut self, bytes: &[u8]) -> StoreResult;
    /// Makes all appended bytes durable. After an error the segment must not be written any more: what the disk has of it is
    /// unknown.
    fn sync(&mut self) -> StoreResult;
    /// Makes all appended bytes durable and the segment visible, in one step.
    fn publish(&mut self) -> StoreResult;
    /// Makes all appended bytes durable and the segment immutable, in one step. Returns its hash.
    fn seal(self: Box<Self>) -> StoreResult<Hash>;
    /// Returns the length in bytes.
    fn length(&self) -> u64;
    /// Whether more can be appended: nothing failed in a way that leaves the file's content unknown.
    fn is_usable(&self) -> bool;
}

/// What a segment is begun for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To grow. The store's limit applies.
    Grow,
    /// To take the place of another one, which will be removed. The store's limit does not apply.
    Copy,
}
