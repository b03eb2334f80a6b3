//! Files in memory: for servers that keep nothing, and for tests with failing disks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Entry, Files, OpenFile, folder_of};
use crate::brief_lock::assert_none_held;

/// Files in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The bytes of each file by its number: an open file keeps its number when it is renamed.
    files: BTreeMap<u64, Vec<u8>>,
    names: BTreeMap<String, u64>,
    folders: BTreeSet<String>,
    next: u64,
    /// Every change so far; `None` unless it is recorded.
    journal: Option<Vec<Change>>,
    /// The number of calls that change something, until one fails.
    calls_to_failure: Option<u64>,
    failure: Option<io::ErrorKind>,
    /// Whether only one call fails.
    fails_once: bool,
    /// Bytes of all files that the disk has room for; `None` for any number.
    capacity: Option<u64>,
}

/// A change to the files, as a disk sees it.
#[derive(Clone, Debug)]
enum Change {
    Create { path: String, file: u64 },
    Append { file: u64, bytes: Vec<u8> },
    Truncate { file: u64, length: usize },
    Sync { file: u64 },
    Rename { from: String, to: String },
    Remove { path: String },
    SyncFolder { folder: String },
}

/// What a disk makes of changes that were not synced when the power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerCut {
    /// They are lost.
    LosesAll,
    /// They are all there.
    KeepsAll,
    /// Names are there, and of each file's last bytes the first half.
    KeepsHalf,
    /// Names are there, and zeros stand in place of each file's last bytes.
    LeavesZeros,
}

impl PowerCut {
    /// Every behavior.
    pub const ALL: [Self; 4] = [Self::LosesAll, Self::KeepsAll, Self::KeepsHalf, Self::LeavesZeros];
}

impl MemoryFiles {
    /// Creates an empty folder that records every change, for [`Self::after`].
    pub fn recording() -> Self {
        let files = Self::default();
        files.lock().journal = Some(Vec::new());
        files
    }

    /// Returns the number of recorded changes.
    pub fn changes(&self) -> usize {
        self.lock().journal.as_ref().map_or(0, Vec::len)
    }

    /// Returns the files as they are if the power failed after so many changes.
    pub fn after(&self, changes: usize, cut: PowerCut) -> Self {
        let journal = self.lock().journal.clone().unwrap_or_default();
        let mut disk = SimulatedDisk::default();
        for change in journal.into_iter().take(changes) {
            disk.apply(change);
        }
        Self { state: Arc::new(Mutex::new(disk.cut(cut))) }
    }

    /// Lets the call after the next `calls` calls that change something fail with an error, and each one after it until
    /// [`Self::heal`].
    pub fn fail_after(&self, calls: u64, error: io::ErrorKind) {
        let mut state = self.lock();
        (state.calls_to_failure, state.failure, state.fails_once) = (Some(calls), Some(error), false);
    }

    /// Lets only the call after the next `calls` calls that change something fail with an error.
    pub fn fail_once_after(&self, calls: u64, error: io::ErrorKind) {
        self.fail_after(calls, error);
        self.lock().fails_once = true;
    }

    /// Gives the disk a capacity in bytes, or takes it away. Beyond it, a write stores what fits and fails.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity = bytes;
    }

    /// Lets calls succeed again.
    pub fn heal(&self) {
        self.lock().calls_to_failure = None;
    }

    /// Changes the bytes of a file, as a damaged disk does.
    pub fn damage(&self, path: &str, damage: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        if let Some(file) = state.names.get(path).copied()
            && let Some(bytes) = state.files.get_mut(&file)
        {
            damage(bytes);
        }
    }

    /// Returns the paths of all files.
    pub fn paths(&self) -> Vec<String> {
        self.lock().names.keys().cloned().collect()
    }

    /// A panic can't leave the state inconsistent, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call that changes something.
    fn change(&self) -> io::Result<MutexGuard<'_, State>> {
        assert_none_held();
        let mut state = self.lock();
        match &mut state.calls_to_failure {
            Some(0) => {
                if state.fails_once {
                    state.calls_to_failure = None;
                }
                return Err(state.failure.unwrap_or(io::ErrorKind::Other).into());
            }
            Some(calls) => *calls -= 1,
            None => {}
        }
        Ok(state)
    }
}

impl State {
    fn record(&mut self, change: impl FnOnce() -> Change) {
        if let Some(journal) = &mut self.journal {
            journal.push(change());
        }
    }

    fn file(&mut self, path: &str) -> io::Result<u64> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the bytes that the disk has room for; `None` for any number.
    fn free(&self) -> Option<usize> {
        let used = self.files.values().map(|bytes| bytes.len() as u64).sum();
        Some(usize::try_from(self.capacity?.saturating_sub(used)).unwrap_or(usize::MAX))
    }

    fn add_folders(&mut self, path: &str) {
        let mut folder = folder_of(path);
        while !folder.is_empty() {
            self.folders.insert(folder.to_owned());
            folder = folder_of(folder);
        }
    }

    /// Drops the bytes of a file that has no name any more.
    fn drop_nameless(&mut self, file: Option<u64>) {
        if let Some(file) = file.filter(|file| !self.names.values().any(|named| named == file)) {
            self.files.remove(&file);
        }
    }
}

impl Files for MemoryFiles {
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        assert_none_held();
        let state = self.lock();
        let inside = |path: &str| {
            let rest = if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') };
            rest.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_owned)
        };
        let folders = state.folders.iter().filter_map(|path| inside(path));
        let folders = folders.map(|name| Entry { name, is_folder: true, bytes: 0 });
        let files = state.names.iter().filter_map(|(path, file)| {
            let bytes = state.files.get(file).map_or(0, |bytes| bytes.len() as u64);
            Some(Entry { name: inside(path)?, is_folder: false, bytes })
        });
        Ok(folders.chain(files).collect())
    }

    fn read(&self, path: &str, from: u64, most: usize) -> io::Result<Vec<u8>> {
        assert_none_held();
        let mut state = self.lock();
        let file = state.file(path)?;
        let bytes = state.files.get(&file).map_or(&[][..], Vec::as_slice);
        let rest = usize::try_from(from).ok().and_then(|from| bytes.get(from..)).unwrap_or(&[]);
        Ok(rest.get(..most).unwrap_or(rest).to_vec())
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn OpenFile>> {
        let mut state = self.change()?;
        let file = state.next;
        state.next += 1;
        state.add_folders(path);
        state.files.insert(file, Vec::new());
        let earlier = state.names.insert(path.to_owned(), file);
        state.drop_nameless(earlier);
        state.record(|| Change::Create { path: path.to_owned(), file });
        Ok(Box::new(MemoryFile { files: self.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.change()?;
        let file = state.file(from)?;
        state.names.remove(from);
        state.add_folders(to);
        let earlier = state.names.insert(to.to_owned(), file);
        state.drop_nameless(earlier);
        state.record(|| Change::Rename { from: from.to_owned(), to: to.to_owned() });
        drop(state);
        self.sync_folder(folder_of(to))?;
        self.sync_folder(folder_of(from))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.change()?;
        let removed = state.names.remove(path);
        state.drop_nameless(removed);
        state.record(|| Change::Remove { path: path.to_owned() });
        Ok(())
    }

    fn remove_folder(&self, folder: &str) -> io::Result<()> {
        let mut state = self.change()?;
        let prefix = format!("{folder}/");
        let is_used = state.names.keys().chain(&state.folders).any(|path| path.starts_with(&prefix));
        if !is_used {
            state.folders.remove(folder);
        }
        Ok(())
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.change()?.record(|| Change::SyncFolder { folder: folder.to_owned() });
        Ok(())
    }
}

/// An open file.
#[derive(Debug)]
struct MemoryFile {
    files: MemoryFiles,
    file: u64,
}

impl OpenFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.files.change()?;
        let free = state.free().unwrap_or(usize::MAX);
        let fits = bytes.get(..free).unwrap_or(bytes);
        if let Some(file) = state.files.get_mut(&self.file) {
            file.extend_from_slice(fits);
        }
        state.record(|| Change::Append { file: self.file, bytes: fits.to_vec() });
        if fits.len() < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let mut state = self.files.change()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if let Some(file) = state.files.get_mut(&self.file) {
            file.truncate(length);
        }
        state.record(|| Change::Truncate { file: self.file, length });
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let file = self.file;
        self.files.change()?.record(|| Change::Sync { file });
        Ok(())
    }
}

/// A disk with a cache in front of it.
#[derive(Debug, Default)]
struct SimulatedDisk {
    /// Bytes and durable bytes of each file.
    files: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
    /// Names, and durable names.
    names: BTreeMap<String, u64>,
    durable: BTreeMap<String, u64>,
}

impl SimulatedDisk {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Create { path, file } => {
                self.files.insert(file, Default::default());
                self.names.insert(path, file);
            }
            Change::Append { file, bytes } => self.files.entry(file).or_default().0.extend(bytes),
            Change::Truncate { file, length } => self.files.entry(file).or_default().0.truncate(length),
            Change::Sync { file } => {
                let (now, durable) = self.files.entry(file).or_default();
                durable.clone_from(now);
            }
            Change::Rename { from, to } => {
                if let Some(file) = self.names.remove(&from) {
                    self.names.insert(to, file);
                }
            }
            Change::Remove { path } => drop(self.names.remove(&path)),
            Change::SyncFolder { folder } => {
                self.durable.retain(|path, _| folder_of(path) != folder);
                let names = self.names.iter().filter(|(path, _)| folder_of(path) == folder);
                self.durable.extend(names.map(|(path, file)| (path.clone(), *file)));
            }
        }
    }

    fn cut(self, cut: PowerCut) -> State {
        let Self { files, names, durable } = self;
        let keep = |(now, durable): (Vec<u8>, Vec<u8>)| {
            let is_longer = now.starts_with(&durable);
            let unsynced = now.len().saturating_sub(durable.len());
            match cut {
                PowerCut::LosesAll => durable,
                PowerCut::KeepsAll => now,
                _ if !is_longer => durable,
                PowerCut::KeepsHalf => now[..durable.len() + unsynced / 2].to_vec(),
                PowerCut::LeavesZeros => [durable, vec![0; unsynced]].concat(),
            }
        };
        let names = if cut == PowerCut::LosesAll { durable } else { names };
        let next = files.keys().max().map_or(0, |last| last + 1);
        let files = files.into_iter().map(|(file, bytes)| (file, keep(bytes))).collect();
        let mut state = State { files, names: names.clone(), next, ..State::default() };
        for path in names.keys() {
            state.add_folders(path);
        }
        state
    }
}
