//! The store of a server: a local log for segments that grow, and an archive for sealed ones.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::archive::{Archive, FolderArchive, ObjectArchive, Sealed};
use super::files::{DiskFiles, Files, MemoryFiles, OpenFile, replace};
use super::hash::Hasher;
use super::layout::{
    CATALOGUE, CLOCK, LOG, NEW, QUARANTINE, checked, open_path, parse_log, pending_path, quarantine_path,
};
use super::quota::Quota;
use super::shelf::{FolderShelf, Shelf};
use super::{Catalogue, Found, Hash, Marks, OldFolder, Purpose, SegmentWriter, StoreError, StoreResult, TraceStore};

/// Stores sessions in a folder, and sealed segments there or in an object store.
#[derive(Debug)]
pub struct SegmentStore {
    files: Arc<dyn Files>,
    archive: Arc<dyn Archive>,
    shelf: Arc<dyn Shelf>,
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
        let files: Arc<dyn Files> = Arc::new(DiskFiles::open(folder)?);
        let archive = ObjectArchive::open(url, variables, Arc::clone(&files))?;
        let shelf = Arc::new(archive.shelf());
        Ok(Self::new(files, Arc::new(archive), shelf, quota))
    }

    /// Creates an empty store in memory.
    pub fn in_memory(quota: u64) -> Self {
        Self::in_folder(Arc::new(MemoryFiles::default()), quota)
    }

    /// Creates the store of a folder that also keeps the sealed segments.
    pub fn in_folder(files: Arc<dyn Files>, quota: u64) -> Self {
        let archive = Arc::new(FolderArchive::new(Arc::clone(&files)));
        let shelf = Arc::new(FolderShelf::new(Arc::clone(&files)));
        Self::new(files, archive, shelf, quota)
    }

    /// Creates the store of a folder that is only looked at, also while a server uses it. Fails if there is no such folder.
    pub fn look(
        folder: &Path,
        url: Option<&str>,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, String> {
        let files: Arc<dyn Files> = Arc::new(DiskFiles::look(folder)?);
        let shelf = Arc::new(FolderShelf::new(Arc::clone(&files)));
        let archive: Arc<dyn Archive> = match url {
            Some(url) => Arc::new(ObjectArchive::look(url, variables, Arc::clone(&files))?),
            None => Arc::new(FolderArchive::new(Arc::clone(&files))),
        };
        Ok(Self { files, archive, shelf, quota: Arc::new(Quota::new(0)), probes: AtomicU64::new(0) })
    }

    /// Creates the store of a folder whose sealed segments are kept in an archive, and shared traces on a shelf.
    pub fn new(files: Arc<dyn Files>, archive: Arc<dyn Archive>, shelf: Arc<dyn Shelf>, quota: u64) -> Self {
        // Nobody saw what was not complete when the server ended.
        for entry in files.list(LOG).unwrap_or_default().into_iter().filter(|entry| entry.name.ends_with(NEW)) {
            let _ = files.remove(&format!("{LOG}/{}", entry.name));
        }
        Self { files, archive, shelf, quota: Arc::new(Quota::new(quota)), probes: AtomicU64::new(0) }
    }

    /// Returns the local folder and the shelf, for shared traces.
    pub fn shared(&self) -> (Arc<dyn Files>, Arc<dyn Shelf>) {
        (Arc::clone(&self.files), Arc::clone(&self.shelf))
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
        let mut all: BTreeMap<String, Vec<Found>> = BTreeMap::new();
        self.log(|session, found| {
            if wants(session) {
                before.push((session.to_owned(), found));
            }
        })?;
        for (session, segments) in archived()? {
            all.entry(session).or_default().extend(segments.into_iter().map(Found::from));
        }
        // A segment that was uploaded just before a crash is in both places.
        let is_known = |known: &[Found], found: &Found| known.iter().any(|other| other.name() == found.name());
        self.log(|session, found| {
            if wants(session) {
                let known = all.entry(session.to_owned()).or_default();
                if !is_known(known, &found) {
                    known.push(found);
                }
            }
        })?;
        for (session, found) in before {
            let known = all.entry(session).or_default();
            let is_sealed_now = found.hash.is_none() && known.iter().any(|other| other.number == found.number);
            if !is_sealed_now && !is_known(known, &found) {
                known.push(found);
            }
        }
        for segments in all.values_mut() {
            // A sealed segment comes before a growing one of its number.
            segments.sort_by_key(|found| (found.number, found.hash.is_none()));
        }
        Ok(all)
    }

    fn sealed(&self, session: &str, number: u32) -> StoreResult<Sealed> {
        let found = self.archive.segments(checked(session)?)?.into_iter().find(|sealed| sealed.number == number);
        found.ok_or(StoreError::Missing)
    }

    /// Returns the path of a sealed segment that waits to be uploaded.
    fn pending(&self, session: &str, number: u32) -> StoreResult<Option<String>> {
        let mut found = None;
        self.log(|name, segment| {
            if name == session && segment.number == number {
                found = segment.hash.or(found);
            }
        })?;
        found.map(|hash| pending_path(session, number, hash)).transpose()
    }
}

impl Found {
    /// Returns what tells a segment from all others of its session.
    fn name(&self) -> (u32, Option<Hash>) {
        (self.number, self.hash)
    }
}

impl TraceStore for SegmentStore {
    fn list(&self) -> StoreResult<BTreeMap<String, Vec<Found>>> {
        let all = self.with_log(|| self.archive.list(), |_| true)?;
        self.quota.release(self.quota.used());
        self.quota.add(all.values().flatten().map(|found| found.bytes).sum());
        Ok(all)
    }

    fn segments(&self, session: &str) -> StoreResult<Vec<Found>> {
        let archived = || Ok([(session.to_owned(), self.archive.segments(checked(session)?)?)]);
        Ok(self.with_log(archived, |name| name == session)?.remove(session).unwrap_or_default())
    }

    fn begin(&self, session: &str, number: u32, purpose: Purpose) -> StoreResult<Box<dyn SegmentWriter>> {
        let path = open_path(session, number)?;
        let new = format!("{path}{NEW}");
        let file = self.files.create(&new)?;
        Ok(Box::new(Writer {
            file: Some(file),
            path: new,
            published: None,
            purpose,
            is_usable: true,
            session: session.to_owned(),
            number,
            length: 0,
            hasher: Hasher::default(),
            files: Arc::clone(&self.files),
            archive: Arc::clone(&self.archive),
            quota: Arc::clone(&self.quota),
        }))
    }

    fn read(&self, session: &str, number: u32, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        // A segment may be sealed between two looks, but never the other way round.
        match self.read_open(session, number, from, most) {
            Err(StoreError::Missing) => {}
            other => return other,
        }
        if let Some(path) = self.pending(session, number)? {
            match self.files.read(&path, from, most).map_err(StoreError::from) {
                Err(StoreError::Missing) => {}
                other => return other,
            }
        }
        self.archive.read(session, self.sealed(session, number)?, from, most)
    }

    fn read_open(&self, session: &str, number: u32, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        Ok(self.files.read(&open_path(session, number)?, from, most)?)
    }

    fn remove_open(&self, session: &str, number: u32) -> StoreResult {
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

    fn set_aside(&self, session: &str, found: Found) -> StoreResult {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let aside = quarantine_path(session, found.number, i64::try_from(now.as_micros()).unwrap_or(i64::MAX))?;
        match found.hash {
            None => self.files.rename(&open_path(session, found.number)?, &aside)?,
            Some(hash) => {
                let sealed = Sealed { number: found.number, hash, bytes: found.bytes };
                let moved = match self.pending(session, found.number)? {
                    Some(path) => self.files.rename(&path, &aside).map_err(StoreError::from),
                    None => Err(StoreError::Missing),
                };
                match moved {
                    // It was uploaded, perhaps just now.
                    Err(StoreError::Missing) => self.archive.give_back(session, sealed, &aside)?,
                    other => other?,
                }
            }
        }
        self.quota.release(found.bytes);
        Ok(())
    }

    fn remove_segment(&self, session: &str, number: u32) -> StoreResult {
        for found in self.segments(session)?.into_iter().filter(|found| found.number == number) {
            match found.hash {
                None => self.files.remove(&open_path(session, number)?)?,
                Some(hash) => {
                    self.files.remove(&pending_path(session, number, hash)?)?;
                    self.archive.remove(session, Sealed { number, hash, bytes: found.bytes })?;
                }
            }
            self.quota.release(found.bytes);
        }
        Ok(())
    }

    fn remove(&self, session: &str) -> StoreResult {
        let segments = self.segments(session)?;
        let mut numbers: Vec<u32> = segments.iter().map(|found| found.number).collect();
        numbers.dedup();
        for &number in &numbers {
            self.remove_segment(session, number)?;
        }
        self.archive.set_marks(session, None)
    }

    fn marks(&self, session: &str) -> StoreResult<Marks> {
        Ok(self.archive.marks(checked(session)?)?.map(|bytes| Marks::from_bytes(&bytes)).unwrap_or_default())
    }

    fn set_marks(&self, session: &str, marks: &Marks) -> StoreResult {
        let bytes = (*marks != Marks::default()).then(|| marks.to_bytes());
        self.archive.set_marks(checked(session)?, bytes.as_deref())
    }

    fn catalogue(&self) -> Catalogue {
        let read = self.files.read(CATALOGUE, 0, usize::MAX);
        read.ok().and_then(|bytes| Catalogue::from_bytes(&bytes)).unwrap_or_default()
    }

    fn save_catalogue(&self, catalogue: &Catalogue) -> StoreResult {
        Ok(replace(&*self.files, CATALOGUE, &catalogue.to_bytes())?)
    }

    fn kept_us(&self) -> Option<i64> {
        serde_json::from_slice(&self.files.read(CLOCK, 0, usize::MAX).ok()?).ok()
    }

    fn set_kept_us(&self, time_us: i64) -> StoreResult {
        Ok(replace(&*self.files, CLOCK, time_us.to_string().as_bytes())?)
    }

    fn quarantine(&self) -> StoreResult<Vec<(String, String, u64)>> {
        let mut aside = Vec::new();
        for session in self.files.list(QUARANTINE)?.into_iter().filter(|entry| entry.is_folder) {
            for entry in self.files.list(&format!("{QUARANTINE}/{}", session.name))? {
                aside.push((session.name.clone(), entry.name, entry.bytes));
            }
        }
        aside.sort();
        Ok(aside)
    }

    fn old(&self) -> OldFolder {
        OldFolder::new(Arc::clone(&self.files))
    }

    fn usage(&self) -> u64 {
        self.quota.used()
    }

    fn probe(&self, bytes: usize) -> StoreResult {
        self.quota.check(bytes as u64)?;
        let path = format!("{LOG}/probe-{}{NEW}", self.probes.fetch_add(1, Ordering::Relaxed));
        let written = self.files.create(&path).and_then(|mut file| {
            file.append(&vec![0; bytes])?;
            file.sync()
        });
        self.files.remove(&path)?;
        Ok(written?)
    }
}

impl From<Sealed> for Found {
    fn from(Sealed { number, hash, bytes }: Sealed) -> Self {
        Self { number, bytes, hash: Some(hash) }
    }
}

/// A segment that is being written.
#[derive(Debug)]
struct Writer {
    /// The file; `None` once the segment is sealed.
    file: Option<Box<dyn OpenFile>>,
    path: String,
    /// The path under which it is visible; `None` before that.
    published: Option<String>,
    purpose: Purpose,
    is_usable: bool,
    session: String,
    number: u32,
    length: u64,
    hasher: Hasher,
    files: Arc<dyn Files>,
    archive: Arc<dyn Archive>,
    quota: Arc<Quota>,
}

impl Writer {
    fn file(&mut self) -> StoreResult<&mut Box<dyn OpenFile>> {
        self.file.as_mut().ok_or(StoreError::Missing)
    }
}

impl SegmentWriter for Writer {
    fn append(&mut self, bytes: &[u8]) -> StoreResult {
        match self.purpose {
            Purpose::Grow => self.quota.reserve(bytes.len() as u64)?,
            Purpose::Copy => self.quota.add(bytes.len() as u64),
        }
        let length = self.length;
        let file = self.file()?;
        if let Err(error) = file.append(bytes) {
            // A partial write is removed. If even that fails, it follows the last whole batch and is left out later.
            self.is_usable &= file.truncate(length).is_ok();
            self.quota.release(bytes.len() as u64);
            return Err(error.into());
        }
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> StoreResult {
        let synced = self.file()?.sync();
        // The system may have dropped what it could not write, and a later sync would not tell.
        self.is_usable &= synced.is_ok();
        Ok(synced?)
    }

    fn publish(&mut self) -> StoreResult {
        self.sync()?;
        let path = open_path(&self.session, self.number)?;
        self.files.rename(&self.path, &path)?;
        self.path.clone_from(&path);
        self.published = Some(path);
        Ok(())
    }

    fn seal(mut self: Box<Self>) -> StoreResult<Hash> {
        self.sync()?;
        let hash = self.hasher.finish();
        let sealed = Sealed { number: self.number, hash, bytes: self.length };
        self.archive.take(&self.session, sealed, &self.path)?;
        self.file = None;
        Ok(hash)
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn is_usable(&self) -> bool {
        self.is_usable && self.file.is_some()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.file.take().is_some() && self.published.is_none() {
            // Nobody saw it. What can't be removed now counts as incomplete later.
            let _ = self.files.remove(&self.path);
            self.quota.release(self.length);
        }
    }
}
