//! Uploads: traces that arrive in parts.
//!
//! Each part is a file of its own, which appears in one step when all of it is durable. So an upload goes on where it stood
//! after any interruption, of the network or of the server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;

use super::check::Check;
use super::layout::{ABOUT, parse_part, part_name, upload_folder};
use super::password::Password;
use super::{ShareError, ShareResult};
use crate::store::files::{Files, OpenFile, replace};
use crate::store::{StoreError, StoreResult};

/// The ending of a part that is not complete.
const NEW: &str = ".new";
/// Bytes that the description of an upload has at most.
const ABOUT_BYTES: usize = 64 << 10;

/// What is stored of an upload beside its parts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    /// The hash of the token that the link will have.
    pub(super) link: String,
    /// The hash of the token that will delete it.
    pub(super) delete: String,
    /// The announced bytes.
    pub(super) bytes: u64,
    /// The announced hash, if there is one.
    pub(super) hash: Option<String>,
    /// The link's name.
    pub(super) name: String,
    /// The seconds until the link expires, from its making on.
    pub(super) expires_seconds: Option<u64>,
    /// The link's password.
    pub(super) password: Option<Password>,
    /// Whether the link opens without a token of the server.
    pub(super) is_public: bool,
    /// The name of the token that uploads.
    pub(super) owner: String,
}

/// How far an upload has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The bytes that are stored, from the first on.
    pub received: u64,
    /// The bytes that were announced.
    pub bytes: u64,
}

/// An upload.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) record: Record,
    folder: String,
    standing: Mutex<Standing>,
    following: Mutex<Following>,
}

/// How far an upload was checked before its end. Whoever checks it holds the lock.
#[derive(Debug, Default)]
pub(super) enum Following {
    /// Not at all.
    #[default]
    Not,
    /// Some of its parts were.
    Checked(Box<Check>),
    /// None is any more: it is finished or given up, or left to its end because something is wrong with it.
    Over,
}

impl Following {
    /// Takes the check out, if there is one.
    pub(super) fn take(&mut self) -> Option<Check> {
        match std::mem::take(self) {
            Self::Checked(check) => Some(*check),
            Self::Not => None,
            Self::Over => {
                *self = Self::Over;
                None
            }
        }
    }
}

#[derive(Debug)]
struct Standing {
    received: u64,
    /// Whether a request writes to it.
    is_busy: bool,
    /// When something arrived last.
    touched: Instant,
}

impl Upload {
    fn new(folder: String, record: Record, received: u64) -> Self {
        let standing = Mutex::new(Standing { received, is_busy: false, touched: Instant::now() });
        Self { record, folder, standing, following: Mutex::default() }
    }

    /// Creates an empty upload.
    pub(super) fn create(files: &dyn Files, id: &str, record: Record) -> ShareResult<Self> {
        let folder = upload_folder(id)?;
        let about = serde_json::to_vec(&record).map_err(|error| StoreError::Io(error.into()))?;
        replace(files, &format!("{folder}/{ABOUT}"), &about)?;
        Ok(Self::new(folder, record, 0))
    }

    /// Finds an upload that an earlier server had not finished.
    pub(super) fn find(files: &dyn Files, id: &str) -> StoreResult<Self> {
        let folder = upload_folder(id)?;
        let about = files.read(&format!("{folder}/{ABOUT}"), 0, ABOUT_BYTES)?;
        let damaged = |_| StoreError::Damaged("the description of an upload is malformed".to_owned());
        let record = serde_json::from_slice(&about).map_err(damaged)?;
        let received = parts(files, &folder)?.last().map_or(0, |(from, bytes)| from + bytes);
        Ok(Self::new(folder, record, received))
    }

    /// Removes everything of an upload. Its description goes first: parts without one are removed at the next start.
    pub(super) fn remove(files: &dyn Files, id: &str) -> StoreResult {
        let folder = upload_folder(id)?;
        files.remove(&format!("{folder}/{ABOUT}"))?;
        files.sync_folder(&folder)?;
        for entry in files.list(&folder)? {
            files.remove(&format!("{folder}/{}", entry.name))?;
        }
        Ok(files.remove_folder(&folder)?)
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how far it has come.
    pub(super) fn progress(&self) -> Progress {
        Progress { received: self.standing().received, bytes: self.record.bytes }
    }

    /// Returns the time since something arrived; `None` while a request writes.
    pub(super) fn idle(&self) -> Option<Duration> {
        let standing = self.standing();
        (!standing.is_busy).then(|| standing.touched.elapsed())
    }

    /// Returns the path of a file in its folder.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// Waits for who checks it, and keeps others from doing so meanwhile.
    pub(super) fn following(&self) -> MutexGuard<'_, Following> {
        self.following.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the parts that have arrived, unless somebody is doing so. `place` is asked for the right to begin.
    pub(super) fn follow(
        &self,
        files: &dyn Files,
        place: impl FnOnce() -> Option<OwnedSemaphorePermit>,
    ) -> ShareResult {
        let Ok(mut following) = self.following.try_lock() else { return Ok(()) };
        let mut check = match &*following {
            Following::Over => return Ok(()),
            Following::Checked(_) => following.take(),
            Following::Not => place().map(|place| Check::begin(files, self, Some(place))).transpose()?,
        };
        let done = check.as_mut().map_or(Ok(()), |check| check.follow(files, self));
        *following = match check {
            // Or each further part would be checked from the first byte on.
            _ if done.is_err() => Following::Over,
            Some(check) => Following::Checked(Box::new(check)),
            None => Following::Not,
        };
        done
    }

    /// Forgets what was checked, unless somebody is checking it now.
    pub(super) fn forget(&self) {
        if let Ok(mut following) = self.following.try_lock() {
            drop(following.take());
        }
    }

    /// Waits for who checks it, and lets nobody do so any more.
    pub(super) fn close(&self) {
        *self.following() = Following::Over;
    }
}

/// Returns where the parts in a folder begin, and their lengths, as far as each begins where the one before it ends.
fn parts(files: &dyn Files, folder: &str) -> StoreResult<Vec<(u64, u64)>> {
    let entries = files.list(folder)?;
    let mut found: Vec<(u64, u64)> =
        entries.into_iter().filter_map(|entry| Some((parse_part(&entry.name)?, entry.bytes))).collect();
    found.sort_unstable();
    let mut next = 0;
    found.retain(|(from, bytes)| {
        let fits = *from == next;
        next += if fits { *bytes } else { 0 };
        fits
    });
    Ok(found)
}

/// The right to write to an upload, which one request has at a time.
#[derive(Debug)]
pub(super) struct Turn(Arc<Upload>);

impl Turn {
    /// Takes the turn. Returns it with the bytes that were received.
    pub(super) fn take(upload: Arc<Upload>) -> ShareResult<(Self, u64)> {
        let mut standing = upload.standing();
        if standing.is_busy {
            return Err(ShareError::Busy);
        }
        standing.is_busy = true;
        let received = standing.received;
        drop(standing);
        Ok((Self(upload), received))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut standing = self.0.standing();
        (standing.is_busy, standing.touched) = (false, Instant::now());
    }
}

/// Writes one part. One that is dropped before [`Self::commit`] leaves nothing behind.
#[derive(Debug)]
pub struct PartWriter {
    turn: Turn,
    files: Arc<dyn Files>,
    file: Option<Box<dyn OpenFile>>,
    from: u64,
    length: u64,
    most: u64,
}

/// Begins the part at an offset, of at most so many bytes.
pub(super) fn begin_part(upload: Arc<Upload>, files: Arc<dyn Files>, from: u64, most: u64) -> ShareResult<PartWriter> {
    let most = most.min(upload.record.bytes.saturating_sub(from));
    let (turn, received) = Turn::take(upload)?;
    if from != received {
        return Err(ShareError::Offset(received));
    }
    let mut part = PartWriter { turn, files, file: None, from, length: 0, most };
    part.file = Some(part.files.create(&part.new_path())?);
    Ok(part)
}

impl PartWriter {
    fn path(&self) -> String {
        self.turn.0.path(&part_name(self.from))
    }

    fn new_path(&self) -> String {
        self.path() + NEW
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> ShareResult {
        let length = self.length.saturating_add(bytes.len() as u64);
        if length > self.most {
            return Err(ShareError::PartTooLong(self.most));
        }
        if let Some(file) = &mut self.file {
            file.append(bytes)?;
        }
        self.length = length;
        Ok(())
    }

    /// Makes the part durable and counts it as received.
    pub fn commit(mut self) -> ShareResult<Progress> {
        let upload = Arc::clone(&self.turn.0);
        if let Some(mut file) = self.file.take().filter(|_| self.length > 0) {
            let stored = file.sync().and_then(|()| self.files.rename(&self.new_path(), &self.path()));
            if let Err(error) = stored {
                self.file = Some(file);
                return Err(error.into());
            }
            upload.standing().received = self.from + self.length;
        }
        Ok(upload.progress())
    }
}

impl Drop for PartWriter {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // What can't be removed is removed with the upload.
            let _ = self.files.remove(&self.new_path());
        }
    }
}
