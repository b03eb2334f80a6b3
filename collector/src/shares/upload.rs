//! Uploads: traces that arrive in [parts](super::part).

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;

use super::ShareResult;
use super::check::{Arriving, Check};
use super::layout::{ABOUT, parse_part, upload_folder};
use super::password::Password;
use crate::store::files::{Files, replace};
use crate::store::{StoreError, StoreResult};

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
    /// Since when nothing has arrived, if that was noted.
    pub(super) quiet: Option<Quiet>,
}

/// Since when nothing has arrived of an upload.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Quiet {
    /// The bytes that had arrived. If more have since, this is out of date.
    received: u64,
    /// Since when, by the clock of retention, in microseconds since the epoch.
    since_us: i64,
}

/// How far an upload has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The bytes that are stored, from the first on.
    pub received: u64,
    /// The bytes that were announced.
    pub bytes: u64,
    /// Whether a request finishes it now, which may take minutes.
    pub is_finishing: bool,
}

/// An upload.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) id: String,
    pub(super) record: Record,
    folder: String,
    pub(super) files: Arc<dyn Files>,
    state: Mutex<UploadState>,
    /// Notified when a request has ended that wrote to it, or when its link is made.
    ended: Condvar,
    following: Mutex<Following>,
    /// Held by the request that finishes it. Others wait for it.
    pub(super) finishing: Arc<tokio::sync::Mutex<()>>,
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

/// The state of an upload.
#[derive(Debug)]
pub(super) struct UploadState {
    pub(super) received: u64,
    /// The bytes for which it takes room.
    held: u64,
    /// Whether a request writes to it.
    pub(super) is_busy: bool,
    pub(super) phase: Phase,
    /// When something arrived last, or this server found it.
    touched: Instant,
    /// Since when nothing has arrived, once that is noted.
    quiet_us: Option<i64>,
}

/// What can happen to an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Parts can come, and it can be given up.
    Open,
    /// Its link is being made, so it can't be given up.
    Linking,
    /// It is finished or given up.
    Over,
}

impl UploadState {
    /// Notes that bytes have arrived, up to so many.
    pub(super) fn arrived(&mut self, received: u64) {
        (self.received, self.touched, self.quiet_us) = (received, Instant::now(), None);
    }

    /// Returns the time since something arrived; `None` while a request writes.
    pub(super) fn idle(&self) -> Option<Duration> {
        (!self.is_busy).then(|| self.touched.elapsed())
    }

    /// Returns for how long nothing has arrived, also before this server started; `None` while a request writes. `now_us` is
    /// the time of the clock of retention.
    pub(super) fn quiet_for(&self, now_us: i64) -> Option<Duration> {
        let noted = self.quiet_us.map(|since_us| u64::try_from(now_us.saturating_sub(since_us)).unwrap_or(0));
        self.idle().map(|idle| idle.max(Duration::from_micros(noted.unwrap_or(0))))
    }

    /// Whether it was noted since when nothing has arrived.
    pub(super) fn is_quiet_noted(&self) -> bool {
        self.quiet_us.is_some()
    }
}

impl Upload {
    fn new(files: Arc<dyn Files>, id: &str, record: Record, received: u64) -> StoreResult<Self> {
        let quiet = record.quiet.filter(|quiet| quiet.received == received);
        let state = UploadState {
            received,
            held: received,
            is_busy: false,
            phase: Phase::Open,
            touched: Instant::now(),
            quiet_us: quiet.map(|quiet| quiet.since_us),
        };
        Ok(Self {
            id: id.to_owned(),
            folder: upload_folder(id)?,
            record,
            files,
            state: Mutex::new(state),
            ended: Condvar::new(),
            following: Mutex::default(),
            finishing: Arc::default(),
        })
    }

    /// Creates an empty upload, or nothing of it.
    pub(super) fn create(files: Arc<dyn Files>, id: &str, record: Record) -> ShareResult<Self> {
        let upload = Self::new(files, id, record, 0)?;
        upload.write_record(&upload.record).inspect_err(|_| {
            // What can't be removed has no complete description, so it is removed at the next start.
            let _ = Self::remove(&*upload.files, id);
        })?;
        Ok(upload)
    }

    fn write_record(&self, record: &Record) -> ShareResult {
        let about = serde_json::to_vec(record).map_err(|error| StoreError::Io(error.into()))?;
        Ok(replace(&*self.files, &self.path(ABOUT), &about)?)
    }

    /// Finds an upload that an earlier server had not finished.
    pub(super) fn find(files: Arc<dyn Files>, id: &str) -> StoreResult<Self> {
        let folder = upload_folder(id)?;
        let about = files.read(&format!("{folder}/{ABOUT}"), 0, ABOUT_BYTES)?;
        let damaged = |_| StoreError::Damaged("the description of an upload is malformed".to_owned());
        let record = serde_json::from_slice(&about).map_err(damaged)?;
        let received = parts(&*files, &folder)?.last().map_or(0, |(from, bytes)| from + bytes);
        Self::new(files, id, record, received)
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

    /// Removes everything of it once it is over, when nobody reads it any more.
    pub(super) fn clear(&self) -> StoreResult {
        *self.following() = Following::Over;
        Self::remove(&*self.files, &self.id)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, UploadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, at most for a time, while something is so.
    pub(super) fn wait_while(
        &self,
        most: Duration,
        is_so: impl Fn(&UploadState) -> bool,
    ) -> MutexGuard<'_, UploadState> {
        let waited = self.ended.wait_timeout_while(self.state(), most, |state| is_so(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Wakes those who wait.
    pub(super) fn wake(&self) {
        self.ended.notify_all();
    }

    /// Returns how far it has come.
    pub(super) fn progress(&self) -> Progress {
        let is_finishing = self.finishing.try_lock().is_err();
        Progress { received: self.state().received, bytes: self.record.bytes, is_finishing }
    }

    /// Returns the bytes for which it takes room.
    pub(super) fn held(&self) -> u64 {
        self.state().held
    }

    /// Takes room for so many bytes in all. Whoever calls it has made sure that there is room.
    pub(super) fn hold(&self, bytes: u64) {
        self.state().held = bytes;
    }

    /// Notes on the disk since when nothing has arrived, for a server that starts later. Whoever calls it writes to it.
    pub(super) fn note_quiet(&self, now_us: i64) -> ShareResult {
        let quiet = {
            let mut state = self.state();
            let idle_us = i64::try_from(state.touched.elapsed().as_micros()).unwrap_or(i64::MAX);
            let since_us = now_us.saturating_sub(idle_us);
            state.quiet_us = Some(since_us);
            Quiet { received: state.received, since_us }
        };
        self.write_record(&Record { quiet: Some(quiet), ..self.record.clone() })
    }

    /// Waits for who checks it, and keeps others from doing so meanwhile.
    pub(super) fn following(&self) -> MutexGuard<'_, Following> {
        self.following.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the parts that have arrived, unless somebody is doing so. `place` is asked for the right to begin.
    pub(super) fn follow(&self, place: impl FnOnce() -> Option<OwnedSemaphorePermit>) -> ShareResult {
        let Ok(mut following) = self.following.try_lock() else { return Ok(()) };
        let mut check = match &*following {
            Following::Over => return Ok(()),
            Following::Checked(_) => following.take(),
            Following::Not => place().map(|place| Check::begin(self, Some(place))).transpose()?,
        };
        let done = check.as_mut().map_or(Ok(()), |check| check.follow(self));
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
}

impl Arriving for Upload {
    fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    fn hash(&self) -> Option<&str> {
        self.record.hash.as_deref()
    }

    fn received(&self) -> u64 {
        self.state().received
    }

    fn is_over(&self) -> bool {
        self.state().phase == Phase::Over
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
