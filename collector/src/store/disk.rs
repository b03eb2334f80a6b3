//! A store in a folder of the local disk.
//!
//! ```text
//! DIR/lock                                  held while a server uses the folder
//! DIR/sessions/{session}/session.json       the record
//! DIR/sessions/{session}/00000001.vramscope log segments
//! ```
//! Paths are built only from a session's valid name and a number. Symlinks are not followed: anything but a regular
//! file or folder counts as missing.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shared::format::EXTENSION;
use shared::wire::is_session;

use super::{SegmentWriter, StoreError, StoreResult, TraceStore};

/// Stores sessions in a folder.
#[derive(Debug)]
pub struct DiskStore {
    sessions: PathBuf,
    quota: Arc<Quota>,
    /// Locked for the lifetime of the store.
    _lock: File,
}

/// Bytes that are used, and how many may be.
#[derive(Debug)]
struct Quota {
    used: AtomicU64,
    limit: u64,
}

impl Quota {
    fn reserve(&self, bytes: u64) -> StoreResult {
        let reserve = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.limit);
        let reserved = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve);
        reserved.map(drop).map_err(|_| StoreError::Full)
    }

    fn release(&self, bytes: u64) {
        let release = |used: u64| Some(used.saturating_sub(bytes));
        // Never fails: the closure always returns a value.
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, release);
    }
}

const RECORD: &str = "session.json";

impl DiskStore {
    /// Opens the store in a folder, created if necessary, for up to `quota` bytes of log segments. The error is a
    /// sentence for people; most often another server uses the folder.
    pub fn open(folder: &Path, quota: u64) -> Result<Self, String> {
        let failed = |error: io::Error| {
            format!("The folder {} can't be used: {error}. Name another one with --data.", folder.display())
        };
        let sessions = folder.join("sessions");
        make_folder(&sessions).map_err(failed)?;
        let lock = options().write(true).create(true).truncate(false).open(folder.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "Another server uses the folder {}. Stop it, or name another folder with --data.",
                    folder.display()
                ));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let quota = Arc::new(Quota { used: AtomicU64::new(0), limit: quota });
        let store = Self { sessions, quota, _lock: lock };
        let mut used = 0;
        for session in store.sessions().map_err(|error| failed(io::Error::other(error)))? {
            // Unreadable log segments are reported where they are used.
            used += store.segments(&session).unwrap_or_default().iter().map(|(_, bytes)| bytes).sum::<u64>();
        }
        store.quota.used.store(used, Ordering::Relaxed);
        tracing::debug!(folder = ?folder, bytes = used, "store opened");
        Ok(store)
    }

    /// Returns the folder of an existing session.
    fn folder(&self, session: &str) -> StoreResult<PathBuf> {
        let path = self.path(session)?;
        if fs::symlink_metadata(&path)?.is_dir() { Ok(path) } else { Err(StoreError::Missing) }
    }

    fn path(&self, session: &str) -> StoreResult<PathBuf> {
        if is_session(session) { Ok(self.sessions.join(session)) } else { Err(StoreError::Missing) }
    }

    fn segment(&self, session: &str, number: u32) -> StoreResult<PathBuf> {
        Ok(self.folder(session)?.join(format!("{number:08}.{EXTENSION}")))
    }
}

impl TraceStore for DiskStore {
    fn sessions(&self) -> StoreResult<Vec<String>> {
        let mut sessions = Vec::new();
        for entry in fs::read_dir(&self.sessions)? {
            let entry = entry?;
            if let Some(name) = entry.file_name().to_str().filter(|name| is_session(name))
                && entry.file_type()?.is_dir()
            {
                sessions.push(name.to_owned());
            }
        }
        Ok(sessions)
    }

    fn create(&self, session: &str, record: &[u8]) -> StoreResult {
        let path = self.path(session)?;
        match folder_builder().create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(StoreError::Exists),
            Err(error) => return Err(error.into()),
        }
        sync_folder(&self.sessions)?;
        self.set_record(session, record).inspect_err(|_| {
            // A folder without a record is no session; if it stays behind, it is empty.
            let _ = fs::remove_dir_all(&path);
        })
    }

    fn record(&self, session: &str) -> StoreResult<Vec<u8>> {
        let mut bytes = Vec::new();
        open_regular(&self.folder(session)?.join(RECORD))?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn set_record(&self, session: &str, record: &[u8]) -> StoreResult {
        let folder = self.folder(session)?;
        let new = folder.join("session.new");
        // A symlink here is removed, not followed.
        remove_file(&new)?;
        let mut file = options().write(true).create_new(true).open(&new)?;
        file.write_all(record)?;
        file.sync_all()?;
        fs::rename(&new, folder.join(RECORD))?;
        sync_folder(&folder)
    }

    fn begin_segment(&self, session: &str, number: u32) -> StoreResult<Box<dyn SegmentWriter>> {
        self.remove_segment(session, number)?;
        let file = options().read(true).write(true).create_new(true).open(self.segment(session, number)?)?;
        sync_folder(&self.folder(session)?)?;
        Ok(Box::new(DiskSegment { file, length: 0, quota: Arc::clone(&self.quota) }))
    }

    fn open_segment(&self, session: &str, number: u32, length: u64) -> StoreResult<Box<dyn SegmentWriter>> {
        let path = self.segment(session, number)?;
        let had = open_regular(&path)?.metadata()?.len();
        if had < length {
            return Err(StoreError::Damaged(format!("log segment {number} has {had} bytes instead of {length}")));
        }
        let mut file = options().read(true).write(true).open(path)?;
        if had > length {
            file.set_len(length)?;
            self.quota.release(had - length);
        }
        // These bytes will be acknowledged as stored, so they must be durable.
        file.sync_all()?;
        file.seek(SeekFrom::Start(length))?;
        Ok(Box::new(DiskSegment { file, length, quota: Arc::clone(&self.quota) }))
    }

    fn segments(&self, session: &str) -> StoreResult<Vec<(u32, u64)>> {
        let mut segments = Vec::new();
        for entry in fs::read_dir(self.folder(session)?)? {
            let entry = entry?;
            let path = entry.path();
            let number = path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| stem.len() == 8);
            let Some(number) = number.and_then(|stem| stem.parse().ok()) else { continue };
            if path.extension().is_some_and(|ending| ending == EXTENSION) && entry.file_type()?.is_file() {
                segments.push((number, entry.metadata()?.len()));
            }
        }
        segments.sort_unstable();
        Ok(segments)
    }

    fn read(&self, session: &str, number: u32, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        let mut file = open_regular(&self.segment(session, number)?)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn remove_segment(&self, session: &str, number: u32) -> StoreResult {
        let path = self.segment(session, number)?;
        let Ok(bytes) = fs::symlink_metadata(&path).map(|found| found.len()) else { return Ok(()) };
        remove_file(&path)?;
        self.quota.release(bytes);
        Ok(())
    }

    fn remove(&self, session: &str) -> StoreResult {
        let folder = self.folder(session)?;
        for (number, _) in self.segments(session)? {
            self.remove_segment(session, number)?;
        }
        fs::remove_dir_all(folder)?;
        sync_folder(&self.sessions)
    }

    fn usage(&self) -> u64 {
        self.quota.used.load(Ordering::Relaxed)
    }

    fn probe(&self, bytes: usize) -> StoreResult {
        if self.usage().saturating_add(bytes as u64) > self.quota.limit {
            return Err(StoreError::Full);
        }
        let path = self.sessions.join("probe");
        remove_file(&path)?;
        let mut file = options().write(true).create_new(true).open(&path)?;
        let written = file.write_all(&vec![0; bytes]).and_then(|()| file.sync_data());
        remove_file(&path)?;
        Ok(written?)
    }
}

/// The file of a log segment, open at its end.
#[derive(Debug)]
struct DiskSegment {
    file: File,
    length: u64,
    quota: Arc<Quota>,
}

impl SegmentWriter for DiskSegment {
    fn append(&mut self, bytes: &[u8]) -> StoreResult {
        self.quota.reserve(bytes.len() as u64)?;
        if let Err(error) = self.file.write_all(bytes) {
            self.quota.release(bytes.len() as u64);
            // A partial write is removed. If even that fails, it follows the last whole batch and is removed later.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
            return Err(error.into());
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> StoreResult {
        Ok(self.file.sync_data()?)
    }

    fn length(&self) -> u64 {
        self.length
    }
}

/// Files are readable by their owner alone: traces name files and lines of the job.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn folder_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

fn make_folder(path: &Path) -> io::Result<()> {
    folder_builder().recursive(true).create(path)
}

/// Opens a regular file; refuses symlinks.
fn open_regular(path: &Path) -> StoreResult<File> {
    if fs::symlink_metadata(path)?.is_file() { Ok(File::open(path)?) } else { Err(StoreError::Missing) }
}

fn remove_file(path: &Path) -> StoreResult {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Makes the names in a folder durable. Other systems than Unix can't open a folder, and don't need to.
fn sync_folder(path: &Path) -> StoreResult {
    #[cfg(unix)]
    File::open(path)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
