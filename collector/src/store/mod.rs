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
mod quota;
mod record;
mod segment_store;
mod shelf;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::Duration;

pub use archive::{Archive, FolderArchive, ObjectArchive, Sealed};
pub use catalogue::Catalogue;
pub use hash::{Hash, Hasher};
pub use label::Label;
pub use marks::Marks;
pub use record::{DeviceTotals, Record, RecordDevice, SegmentInfo, SessionTotals};
pub use segment_store::SegmentStore;
pub use shelf::{FolderShelf, ObjectShelf, Shelf};

/// Why an operation of a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store has as many bytes as it may keep.
    #[error("the store is full: what may be deleted was deleted; delete or unpin sessions, or raise --keep-bytes")]
    Full,
    /// The disk that has the folder of data has no room left, or no room for another file.
    #[error("the disk of the server's folder of data is full; free space on it")]
    DiskFull,
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
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Self::DiskFull,
            io::ErrorKind::NotFound => Self::Missing,
            _ => Self::Io(error),
        }
    }
}

/// The result of an operation of a store.
pub type StoreResult<T = ()> = Result<T, StoreError>;

/// A segment, as it was found. Its number and its hash tell it from all others of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its number within the session.
    pub number: u32,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its hash, for a sealed segment; `None` for one that was still growing.
    pub hash: Option<Hash>,
}

/// Segments that are sealed and not in their object store yet. A store without one has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uploads {
    /// How many there are.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long the oldest has waited since it was sealed, or since the server started.
    pub oldest: Duration,
    /// Uploaded segments whose local files are kept until the catalogue knows their sessions.
    pub copies: u64,
}

/// Stores sessions. Names that [`wire::is_session`] refuses are [`StoreError::Missing`]. All functions may wait
/// for a disk or a network: never call them on an async task, or with a lock that a route takes. No wait is without end.
pub trait TraceStore: Send + Sync + fmt::Debug {
    /// Returns the segments of all sessions, in the order of their numbers.
    fn list(&self) -> StoreResult<BTreeMap<String, Vec<Found>>>;
    /// Returns the segments of one session, in the order of their numbers; none if there is no such session. A segment that
    /// was being sealed when the server crashed is there twice.
    fn segments(&self, session: &str) -> StoreResult<Vec<Found>>;
    /// Returns the segments of one session that are on the local disk, in the order of their numbers. Asks no network.
    fn local_segments(&self, session: &str) -> StoreResult<Vec<Found>>;
    /// Begins a segment. Nobody sees it before [`SegmentWriter::publish`] or [`SegmentWriter::seal`].
    fn begin(&self, session: &str, number: u32, purpose: Purpose) -> StoreResult<Box<dyn SegmentWriter>>;
    /// Reads up to `most` bytes of a segment from the offset `from`; fewer only at its end. A segment that was growing when
    /// it was found may be sealed by now.
    fn read(&self, session: &str, found: Found, from: u64, most: usize) -> StoreResult<Vec<u8>>;
    /// Reads up to `most` bytes of the growing segment of a number, even if a sealed one has the same number.
    fn read_open(&self, session: &str, number: u32, from: u64, most: usize) -> StoreResult<Vec<u8>>;
    /// Deletes the growing segment of a number, whose content is sealed elsewhere. Does nothing if there is none.
    fn remove_open(&self, session: &str, number: u32) -> StoreResult;
    /// Sets a damaged segment aside, where the server never deletes it.
    fn set_aside(&self, session: &str, found: Found) -> StoreResult;
    /// Deletes a segment. Does nothing if there is none.
    fn remove_segment(&self, session: &str, found: Found) -> StoreResult;
    /// Deletes a session with everything that is kept of it, except for what was set aside.
    fn remove(&self, session: &str) -> StoreResult;
    /// Returns what was decided about a session; the default if nothing was, or if it can't be read.
    fn marks(&self, session: &str) -> StoreResult<Marks>;
    /// Replaces what was decided about a session, durably and atomically.
    fn set_marks(&self, session: &str, marks: &Marks) -> StoreResult;
    /// Returns the catalogue as it was saved last; empty if it is missing or damaged.
    fn catalogue(&self) -> Catalogue;
    /// Saves the catalogue. From then on, no local copy of an uploaded segment is needed to know that there is a session.
    fn save_catalogue(&self, catalogue: &Catalogue) -> StoreResult;
    /// Returns the time of the clock of retention that was saved last, in microseconds since the epoch.
    fn retention_us(&self) -> Option<i64>;
    /// Saves the time of the clock of retention.
    fn set_retention_us(&self, time_us: i64) -> StoreResult;
    /// Returns what was set aside: for each file the session, the file's name and its length in bytes.
    fn quarantine(&self) -> StoreResult<Vec<(String, String, u64)>>;
    /// Returns the paths of symbolic links in the folder that are not followed, as far as they were met.
    fn unfollowed(&self) -> Vec<String>;
    /// Returns the bytes of all segments.
    fn usage(&self) -> u64;
    /// Whether deleting a session that has ended makes room on the local disk. With an object store it doesn't.
    fn is_local(&self) -> bool;
    /// Checks that so many bytes can be written.
    fn probe(&self, bytes: usize) -> StoreResult;
    /// Fails with the reason if sealed segments can't be reached at all: their object store has not answered yet, or belongs
    /// to another server.
    fn check_reachable(&self) -> StoreResult;
    /// Returns what waits to be uploaded.
    fn uploads(&self) -> Uploads;
    /// Gives up every request that waits for a network, and each later one: for a program that ends.
    fn stop(&self);
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
