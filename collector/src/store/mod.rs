//! Stores sessions, each as a sequence of numbered segments.
//!
//! ```text
//! begin ─► append, sync ─► append, sync … ─► seal ─► an immutable file, named by the hash of its bytes
//!          the log: local, synced before every acknowledgement      in a folder or in an object store
//! ```
//! A segment is a recording by itself. It begins and, once it is sealed, ends with a [`Label`] that names the session, so
//! everything that is known of a session can be restored from its segments alone. Segments are found by listing the folders:
//! the [catalogue](Catalogue) is a cache that makes a start quick.
//!
//! Nothing is deleted that can't be proven garbage: a damaged segment is set aside in a folder of its own.
//!
//! Everything else reaches a store through [`SegmentStore`] alone. Beneath it are two traits: [`Files`](files::Files) for the
//! local disk, and [`Blobs`] for where sealed segments and shared traces are kept. One set of tests holds for all
//! combinations.

mod archive;
mod blobs;
mod catalogue;
pub mod files;
mod hash;
mod label;
mod layout;
mod marks;
mod quota;
mod record;
mod segment_store;
mod segment_writer;

use std::io;
use std::time::Duration;

pub use blobs::{Blobs, FolderBlobs};
pub use catalogue::Catalogue;
pub use hash::{Hash, Hasher};
pub use label::Label;
pub use marks::Marks;
pub use record::{DeviceTotals, Record, RecordDevice, SegmentInfo, SessionTotals};
pub use segment_store::SegmentStore;
pub use segment_writer::SegmentWriter;

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

/// A segment in a listing. Its number and its hash identify it within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its number within the session.
    pub number: u32,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its hash, for a sealed segment; `None` for one that was still growing.
    pub hash: Option<Hash>,
}

/// Sealed segments that wait for their upload to an object store. A store without one has none.
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

/// Why a segment is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To grow. The store's limit applies.
    Grow,
    /// To take the place of another one, which will be removed. The store's limit does not apply.
    Copy,
}
