//! The store of a server: a local log for growing segments, and an archive for sealed ones.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::archive::{Archive, Sealed};
use super::blobs::Blobs;
use super::files::{DiskFiles, Files, MemoryFiles, NEW, new_name, replace};
use super::layout::{
    CATALOGUE, CLOCK, LOG, QUARANTINE, SEGMENTS, checked, open_path, parse_log, pending_path, quarantine_path,
};
use super::quota::Quota;
use super::segment_writer::SegmentWriter;
use super::{Catalogue, Found, Hash, Marks, Purpose, StoreError, StoreResult, Uploads};

/// Stores sessions: growing segments in a folder, sealed ones there or in an object store.
///
/// Names that [`wire::is_session`] refuses are [`StoreError::Missing`]. All functions may wait for a disk or a network: never
/// call them on an async task, or with a lock that a route takes. No wait is without end.
#[derive(Debug)]
pub struct SegmentStore {
    files: Arc<dyn Files>,
    archive: Arc<Archive>,
    quota: Arc<Quota>,
    /// The number of the next probe: several may run at once.
    probes: AtomicU64,
}

impl SegmentStore {
    /// Opens the store in a folder, created if necessary, for up to `quota` bytes of segments. The error is a sentence for
    /// people; most often another server uses the folder.
    pub fn open(folder: &Path, quota: u64) -> Result<Self, String> {
        Ok(Self::in_folder(Arc::new(DiskFiles::open(folder)?), quota))
    }

    /// Opens the store in a folder whose sealed segments are kept in an object store, for up to `quota` bytes of segments.
    /// `variables` hold its credentials. The error is a sentence for people.
    pub fn open_with_objects(
        folder: &Path,
        url: &str,
        variables: impl Iterator<Item = (String, String)>,
        quota: u64,
    ) -> Result<Self, String> {
        let store = Self::start(folder, url, variables, quota)?;
        store.archive.wait_until_open()?;
        Ok(store)
    }

    /// Opens the same store as [`Self::open_with_objects`], without waiting for the object store: segments stay in the folder
    /// until it answers. Also returns a future that resolves to a sentence for people when this server can't use the object
    /// store, or can't any more.
    pub fn start_with_objects(
        folder: &Path,
        url: &str,
        variables: impl Iterator<Item = (String, String)>,
        quota: u64,
    ) -> Result<(Self, BoxFuture<'static, String>), String> {
        let store = Self::start(folder, url, variables, quota)?;
        let refused = store.archive.refused().boxed();
        Ok((store, refused))
    }

    fn start(
        folder: &Path,
        url: &str,
        variables: impl Iterator<Item = (String, String)>,
        quota: u64,
    ) -> Result<Self, String> {
        let files: Arc<dyn Files> = Arc::new(DiskFiles::open(folder)?);
        let archive = Archive::open(url, variables, Arc::clone(&files))?;
        Ok(Self::new(files, archive, quota))
    }

    /// Creates an empty store in memory.
    pub fn in_memory(quota: u64) -> Self {
        Self::in_folder(Arc::new(MemoryFiles::default()), quota)
    }

    /// Creates the store of a folder that also keeps the sealed segments.
    pub fn in_folder(files: Arc<dyn Files>, quota: u64) -> Self {
        let archive = Archive::in_folder(Arc::clone(&files));
        Self::new(files, archive, quota)
    }

    /// Creates the store of a folder that is only looked at, also while a server uses it. Fails if there is no such folder.
    pub fn look(
        folder: &Path,
        url: Option<&str>,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, String> {
        let files: Arc<dyn Files> = Arc::new(DiskFiles::look(folder)?);
        let archive = match url {
            Some(url) => Archive::look(url, variables, Arc::clone(&files))?,
            None => Archive::in_folder(Arc::clone(&files)),
        };
        Ok(Self::of(files, archive, 0))
    }

    fn new(files: Arc<dyn Files>, archive: Archive, quota: u64) -> Self {
        // Nobody saw what was not complete when the server ended.
        for folder in [LOG, SEGMENTS, QUARANTINE] {
            let entries = files.list(folder).unwrap_or_default().into_iter();
            for entry in entries.filter(|entry| !entry.is_folder && entry.name.ends_with(NEW)) {
                let _ = files.remove(&format!("{folder}/{}", entry.name));
            }
        }
        Self::of(files, archive, quota)
    }

    fn of(files: Arc<dyn Files>, archive: Archive, quota: u64) -> Self {
        Self { files, archive: Arc::new(archive), quota: Arc::new(Quota::new(quota)), probes: AtomicU64::new(0) }
    }

    /// Returns the local folder, and where sealed segments are kept: shared traces are kept beside them.
    pub fn shared(&self) -> (Arc<dyn Files>, Arc<dyn Blobs>) {
        (Arc::clone(&self.files), Arc::clone(self.archive.blobs()))
    }

    /// Visits the segments in the folder of the log.
    fn log(&self, mut visit: impl FnMut(&str, Found)) -> StoreResult {
        for entry in self.files.list(LOG)? {
            if let Some((session, number, hash)) = parse_log(&entry.name).filter(|_| !entry.is_folder) {
                visit(session, Found { number, bytes: entry.bytes, hash });
            }
        }
        Ok(())
    }

    /// Returns the segments of the archive together with those of the log. Nothing is missed that moves from the log to
    /// the archive meanwhile: a segment that is sealed or uploaded.
    fn with_log<T>(
        &self,
        archived: impl FnOnce() -> StoreResult<T>,
        wants: impl Fn(&str) -> bool,
    ) -> StoreResult<BTreeMap<String, Vec<Found>>>
    where
        T: IntoIterator<Item = (String, Vec<Sealed>)>,
    {
        let mut before = Vec::new();
        // The bytes of each segment, by what tells it from others: a session may have thousands.
        let mut all: BTreeMap<String, HashMap<(u32, Option<Hash>), u64>> = BTreeMap::new();
        self.log(|session, found| {
            if wants(session) {
                before.push((session.to_owned(), found));
            }
        })?;
        for (session, segments) in archived()? {
            all.entry(session).or_default().extend(segments.into_iter().map(Found::from).map(Found::entry));
        }
        // A segment that was uploaded just before a crash is in both places.
        self.log(|session, found| {
            if wants(session) {
                let (key, bytes) = found.entry();
                all.entry(session.to_owned()).or_default().entry(key).or_insert(bytes);
            }
        })?;
        for (session, found) in before {
            let known = all.entry(session).or_default();
            let is_sealed_now = found.hash.is_none() && known.keys().any(|(number, _)| *number == found.number);
            if !is_sealed_now {
                let (key, bytes) = found.entry();
                known.entry(key).or_insert(bytes);
            }
        }
        Ok(all.into_iter().map(|(session, segments)| (session, in_order(segments))).collect())
    }

    /// Reads a sealed segment, which may still be in the log.
    fn read_sealed(&self, session: &str, sealed: Sealed, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        let path = pending_path(session, sealed.number, sealed.hash)?;
        match self.files.read(&path, from, most).map_err(StoreError::from) {
            // It never moves from the archive to the log.
            Err(StoreError::Missing) => self.archive.read(session, sealed, from, most),
            read => read,
        }
    }
}

impl Found {
    /// Returns its number and hash, which identify a segment within its session, and its length.
    fn entry(self) -> ((u32, Option<Hash>), u64) {
        ((self.number, self.hash), self.bytes)
    }

    fn sealed(&self) -> Option<Sealed> {
        self.hash.map(|hash| Sealed { number: self.number, hash, bytes: self.bytes })
    }
}

/// Returns segments in the order of their numbers. A sealed segment comes before a growing one of its number.
fn in_order(segments: impl IntoIterator<Item = ((u32, Option<Hash>), u64)>) -> Vec<Found> {
    let found = segments.into_iter().map(|((number, hash), bytes)| Found { number, bytes, hash });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|found| (found.number, found.hash.is_none()));
    found
}

impl SegmentStore {
    /// Returns the segments of all sessions, in the order of their numbers.
    pub fn list(&self) -> StoreResult<BTreeMap<String, Vec<Found>>> {
        let all = self.with_log(|| self.archive.list(), |_| true)?;
        self.quota.release(self.quota.used());
        self.quota.add(all.values().flatten().map(|found| found.bytes).sum());
        Ok(all)
    }

    /// Returns the segments of one session, in the order of their numbers; none if there is no such session. A segment that
    /// was being sealed when the server crashed is there twice.
    pub fn segments(&self, session: &str) -> StoreResult<Vec<Found>> {
        let archived = || Ok([(session.to_owned(), self.archive.segments(checked(session)?)?)]);
        Ok(self.with_log(archived, |name| name == session)?.remove(session).unwrap_or_default())
    }

    /// Returns the segments of one session that are on the local disk, in the order of their numbers. Asks no network.
    pub fn local_segments(&self, session: &str) -> StoreResult<Vec<Found>> {
        let mut segments = Vec::new();
        self.log(|name, found| {
            if name == session {
                segments.push(found.entry());
            }
        })?;
        Ok(in_order(segments))
    }

    /// Begins a segment. Nobody sees it before [`SegmentWriter::publish`] or [`SegmentWriter::seal`].
    pub fn begin(&self, session: &str, number: u32, purpose: Purpose) -> StoreResult<SegmentWriter> {
        SegmentWriter::create((&self.files, &self.archive, &self.quota), session, number, purpose)
    }

    /// Reads up to `most` bytes of a segment from the offset `from`; fewer only at its end. A segment that was growing when
    /// it was found may be sealed by now.
    pub fn read(&self, session: &str, found: Found, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        if let Some(sealed) = found.sealed() {
            return self.read_sealed(checked(session)?, sealed, from, most);
        }
        match self.read_open(session, found.number, from, most) {
            // It was sealed since it was found.
            Err(StoreError::Missing) => {
                let is_it = |other: &Found| other.number == found.number;
                let sealed = self.segments(session)?.into_iter().filter(is_it).find_map(|found| found.sealed());
                self.read_sealed(session, sealed.ok_or(StoreError::Missing)?, from, most)
            }
            read => read,
        }
    }

    /// Reads up to `most` bytes of the growing segment of a number, even if a sealed one has the same number.
    pub fn read_open(&self, session: &str, number: u32, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        Ok(self.files.read(&open_path(session, number)?, from, most)?)
    }

    /// Deletes the growing segment of a number, whose content is sealed elsewhere. Does nothing if there is none.
    pub fn remove_open(&self, session: &str, number: u32) -> StoreResult {
        let path = open_path(session, number)?;
        let mut bytes = 0;
        self.log(|name, found| {
            if name == session && found.number == number && found.hash.is_none() {
                bytes = found.bytes;
            }
        })?;
        self.files.remove(&path)?;
        self.quota.release(bytes);
        Ok(())
    }

    /// Moves a damaged segment to the folder `quarantine`, of which the server never deletes anything.
    pub fn set_aside(&self, session: &str, found: Found) -> StoreResult {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let aside = quarantine_path(session, found.number, i64::try_from(now.as_micros()).unwrap_or(i64::MAX))?;
        match found.sealed() {
            None => self.files.rename(&open_path(session, found.number)?, &aside)?,
            Some(sealed) => {
                let pending = pending_path(session, sealed.number, sealed.hash)?;
                match self.files.rename(&pending, &aside).map_err(StoreError::from) {
                    // It is in the archive alone.
                    Err(StoreError::Missing) => self.archive.give_back(session, sealed, &aside)?,
                    // It may be there as well.
                    moved => moved.and_then(|()| self.archive.remove(session, &[sealed]))?,
                }
            }
        }
        self.quota.release(found.bytes);
        Ok(())
    }

    /// Deletes a segment. Does nothing if there is none.
    pub fn remove_segment(&self, session: &str, found: Found) -> StoreResult {
        let is_there = match found.sealed() {
            None => {
                let is_there = self.local_segments(session)?.contains(&found);
                self.files.remove(&open_path(session, found.number)?)?;
                is_there
            }
            Some(sealed) => {
                self.files.remove(&pending_path(session, sealed.number, sealed.hash)?)?;
                self.archive.remove(session, &[sealed])?;
                true
            }
        };
        if is_there {
            self.quota.release(found.bytes);
        }
        Ok(())
    }

    /// Deletes a session with everything that is kept of it, except for what was set aside.
    pub fn remove(&self, session: &str) -> StoreResult {
        let segments = self.segments(session)?;
        let mut sealed = Vec::new();
        for found in &segments {
            self.files.remove(&match found.hash {
                None => open_path(session, found.number)?,
                Some(hash) => pending_path(session, found.number, hash)?,
            })?;
            sealed.extend(found.sealed());
        }
        let removed = self.archive.remove(session, &sealed);
        // What could not be deleted is there, and counts.
        let left = if removed.is_err() { self.segments(session).unwrap_or_default() } else { Vec::new() };
        let bytes = |segments: &[Found]| segments.iter().map(|found| found.bytes).sum::<u64>();
        self.quota.release(bytes(&segments).saturating_sub(bytes(&left)));
        removed?;
        self.archive.set_marks(session, None)
    }

    /// Returns the marks of a session; the default if it has none, or if they can't be read.
    pub fn marks(&self, session: &str) -> StoreResult<Marks> {
        Ok(self.archive.marks(checked(session)?)?.map(|bytes| Marks::from_bytes(&bytes)).unwrap_or_default())
    }

    /// Replaces the marks of a session, durably and atomically.
    pub fn set_marks(&self, session: &str, marks: &Marks) -> StoreResult {
        let bytes = (*marks != Marks::default()).then(|| marks.to_bytes());
        self.archive.set_marks(checked(session)?, bytes.as_deref())
    }

    /// Returns the catalogue as it was saved last; empty if it is missing or damaged.
    pub fn catalogue(&self) -> Catalogue {
        let read = self.files.read(CATALOGUE, 0, usize::MAX);
        read.ok().and_then(|bytes| Catalogue::from_bytes(&bytes)).unwrap_or_default()
    }

    /// Saves the catalogue. From then on, no local copy of an uploaded segment is needed to know that there is a session.
    pub fn save_catalogue(&self, catalogue: &Catalogue) -> StoreResult {
        replace(&*self.files, CATALOGUE, &catalogue.to_bytes())?;
        self.archive.settle(catalogue);
        Ok(())
    }

    /// Returns the time of the clock of retention that was saved last, in microseconds since the epoch.
    pub fn retention_us(&self) -> Option<i64> {
        serde_json::from_slice(&self.files.read(CLOCK, 0, usize::MAX).ok()?).ok()
    }

    /// Saves the time of the clock of retention.
    pub fn set_retention_us(&self, time_us: i64) -> StoreResult {
        Ok(replace(&*self.files, CLOCK, time_us.to_string().as_bytes())?)
    }

    /// Returns the files of the folder `quarantine`: for each the session, its name and its length in bytes.
    pub fn quarantine(&self) -> StoreResult<Vec<(String, String, u64)>> {
        let mut aside = Vec::new();
        for session in self.files.list(QUARANTINE)?.into_iter().filter(|entry| entry.is_folder) {
            for entry in self.files.list(&format!("{QUARANTINE}/{}", session.name))? {
                aside.push((session.name.clone(), entry.name, entry.bytes));
            }
        }
        aside.sort();
        Ok(aside)
    }

    /// Returns the paths of symbolic links in the folder that are not followed, as far as they were met.
    pub fn unfollowed(&self) -> Vec<String> {
        self.files.unfollowed()
    }

    /// Returns the bytes of all segments.
    pub fn usage(&self) -> u64 {
        self.quota.used()
    }

    /// Checks that so many bytes can be written.
    pub fn probe(&self, bytes: usize) -> StoreResult {
        self.quota.check(bytes as u64)?;
        let path = new_name(&format!("{LOG}/probe-{}", self.probes.fetch_add(1, Ordering::Relaxed)));
        let written = self.files.create(&path).and_then(|mut file| {
            file.append(&vec![0; bytes])?;
            file.sync()
        });
        self.files.remove(&path)?;
        Ok(written?)
    }

    /// Whether deleting a session that has ended makes room on the local disk. With an object store it doesn't.
    pub fn is_local(&self) -> bool {
        self.archive.is_local()
    }

    /// Fails with the reason if sealed segments can't be reached at all: their object store has not answered yet, or belongs
    /// to another server.
    pub fn check_reachable(&self) -> StoreResult {
        self.archive.check_reachable()
    }

    /// Returns how much waits to be uploaded.
    pub fn uploads(&self) -> Uploads {
        self.archive.uploads()
    }

    /// Cancels every request that waits for a network, and each later one. Called when the program ends.
    pub fn stop(&self) {
        self.archive.stop();
    }
}

impl From<Sealed> for Found {
    fn from(Sealed { number, hash, bytes }: Sealed) -> Self {
        Self { number, bytes, hash: Some(hash) }
    }
}
