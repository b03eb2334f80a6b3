//! Files of the local disk.
//!
//! A folder at the top, such as `wal` or `segments`, may be a symbolic link to a folder of another disk: it is resolved once,
//! at the start, and from then on everything is listed, read and written in its target. No other link is followed. So what is
//! written is always found again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{Entry, Files, OpenFile, folder_of, new_name};
use crate::brief_lock::{BriefLock, assert_none_held};

/// A folder of the local disk, which no other server can open at the same time.
#[derive(Debug)]
pub struct DiskFiles {
    root: PathBuf,
    /// The folders at the top that are symbolic links, with the folders that they lead to.
    linked: BTreeMap<String, PathBuf>,
    /// Links that were met and not followed.
    unfollowed: BriefLock<BTreeSet<PathBuf>>,
    /// Locked for the lifetime of the value; none for a folder that is only looked at.
    _locks: Vec<File>,
}

/// The file that is locked while a server uses the folder.
const LOCK: &str = "lock";

impl DiskFiles {
    /// Opens a folder, created if necessary. The error is a sentence for people; most often another server uses the folder.
    pub fn open(root: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| {
            format!("The folder {} can't be used: {error}. Name another one with --data.", root.display())
        };
        let used = || {
            format!("Another server uses the folder {}. Stop it, or name another folder with --data.", root.display())
        };
        make_folders(root).map_err(failed)?;
        let lock = root.join(LOCK);
        // A symbolic link would be followed and its target created.
        if fs::symlink_metadata(&lock).is_ok_and(|found| !found.is_file()) {
            return Err(failed(io::Error::other(format!("{} is not a regular file", lock.display()))));
        }
        let lock = options().write(true).create(true).truncate(false).open(lock).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(used()),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut files = Self::look(root)?;
        files._locks.push(lock);
        // The file may be deleted while the folder is in use, and a folder may be reached by several paths.
        files._locks.extend(lock_folder(root).ok_or_else(used)?);
        for (name, target) in &files.linked {
            let locked = lock_folder(target).ok_or_else(|| {
                format!(
                    "Another server uses the folder {}, to which {} leads. Stop it, or name another folder with --data.",
                    target.display(),
                    root.join(name).display()
                )
            })?;
            files._locks.extend(locked);
        }
        Ok(files)
    }

    /// Opens a folder to look at, also while a server uses it. The error is a sentence for people.
    pub fn look(root: &Path) -> Result<Self, String> {
        let unreadable = |error: io::Error| format!("The folder {} can't be read: {error}.", root.display());
        if !fs::metadata(root).map_err(unreadable)?.is_dir() {
            return Err(format!("{} is not a folder.", root.display()));
        }
        let mut linked = BTreeMap::new();
        for entry in fs::read_dir(root).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                continue;
            }
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            match entry.path().canonicalize() {
                Ok(target) if target.is_dir() => drop(linked.insert(name, target)),
                _ => {
                    let target = fs::read_link(entry.path()).unwrap_or_default();
                    return Err(format!(
                        "{} is a symbolic link to {}, where no folder is. Mount the disk that has it, or remove the link.",
                        entry.path().display(),
                        target.display()
                    ));
                }
            }
        }
        Ok(Self { root: root.to_owned(), linked, unfollowed: BriefLock::default(), _locks: Vec::new() })
    }

    fn path(&self, path: &str) -> PathBuf {
        assert_none_held();
        let (top, rest) = path.split_once('/').unwrap_or((path, ""));
        match self.linked.get(top) {
            Some(target) if rest.is_empty() => target.clone(),
            Some(target) => target.join(rest),
            None => self.root.join(path),
        }
    }

    /// Creates the folder of a path, and those above it.
    fn make_folder_of(&self, path: &str) -> io::Result<PathBuf> {
        let folder = folder_of(path);
        let ends = folder.match_indices('/').map(|(end, _)| end).chain((!folder.is_empty()).then_some(folder.len()));
        for end in ends {
            make_folder(&self.path(&folder[..end]))?;
        }
        Ok(self.path(folder))
    }

    /// Logs, once for each link, that it is not followed.
    fn note_unfollowed(&self, link: &Path) {
        if self.unfollowed.lock().insert(link.to_owned()) {
            tracing::error!(
                path = %link.display(),
                "a symbolic link is not followed, so what it leads to is missing; put the files themselves in its place"
            );
        }
    }

    /// Moves a file to another disk: copies it under another name first, so that it is there as a whole or not at all.
    fn move_to_other_disk(&self, from: &str, to: &str) -> io::Result<()> {
        // Beside all that is in the folder at the top, where the next start removes what a crash leaves.
        let (top, name) = (to.split('/').next().unwrap_or_default(), to.rsplit('/').next().unwrap_or_default());
        let new = self.path(&new_name(&format!("{top}/{name}")));
        let copied = (|| {
            let mut target = options().write(true).create(true).truncate(true).open(&new)?;
            io::copy(&mut File::open(self.path(from))?, &mut target)?;
            target.sync_all()?;
            fs::rename(&new, self.path(to))
        })();
        copied.inspect_err(|_| drop(fs::remove_file(&new)))?;
        sync(&self.path(folder_of(to)))?;
        fs::remove_file(self.path(from))
    }
}

impl Files for DiskFiles {
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let path = self.path(folder);
        let mut entries = Vec::new();
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => {}
            Ok(found) => {
                if found.is_symlink() {
                    self.note_unfollowed(&path);
                }
                return Ok(entries);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(entries),
            Err(error) => return Err(error),
        }
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let Ok(kind) = entry.file_type() else { continue };
            // No name of the store needs more than ASCII.
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            if kind.is_dir() || folder.is_empty() && self.linked.contains_key(&name) {
                entries.push(Entry { name, is_folder: true, bytes: 0 });
            } else if kind.is_symlink() {
                self.note_unfollowed(&entry.path());
            } else if kind.is_file()
                && let Ok(found) = entry.metadata()
            {
                entries.push(Entry { name, is_folder: false, bytes: found.len() });
            }
        }
        Ok(entries)
    }

    fn unfollowed(&self) -> Vec<String> {
        self.unfollowed.lock().iter().map(|path| path.display().to_string()).collect()
    }

    fn read(&self, path: &str, from: u64, most: usize) -> io::Result<Vec<u8>> {
        let path = self.path(path);
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(ErrorKind::NotFound.into());
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn OpenFile>> {
        self.make_folder_of(path)?;
        // A symbolic link of this name is removed and not followed.
        self.remove(path)?;
        let file = options().read(true).write(true).create_new(true).open(self.path(path))?;
        Ok(Box::new(DiskFile { file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let source = self.path(folder_of(from));
        // A link would be moved, and its target not found under the new name.
        if !fs::symlink_metadata(self.path(from)).is_ok_and(|found| found.is_file()) {
            return Err(ErrorKind::NotFound.into());
        }
        let target = self.make_folder_of(to)?;
        match fs::rename(self.path(from), self.path(to)) {
            Err(error) if error.kind() == ErrorKind::CrossesDevices => self.move_to_other_disk(from, to)?,
            renamed => renamed?,
        }
        sync(&target)?;
        if source != target { sync(&source) } else { Ok(()) }
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        ignore_not_found(fs::remove_file(self.path(path)))
    }

    fn remove_folder(&self, folder: &str) -> io::Result<()> {
        match fs::remove_dir(self.path(folder)) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            other => ignore_not_found(other),
        }
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        sync(&self.path(folder))
    }
}

/// An open file.
#[derive(Debug)]
struct DiskFile {
    file: File,
}

impl OpenFile for DiskFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        assert_none_held();
        self.file.write_all(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length)).map(drop)
    }

    fn sync(&mut self) -> io::Result<()> {
        assert_none_held();
        self.file.sync_data()
    }
}

fn ignore_not_found(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Files are readable by their owner alone: traces name files and lines of the job.
fn options() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes to set"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a folder and those above it. Links above the folder of data are their owner's business.
fn make_folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_folders(above)?;
    }
    make_folder(path)
}

/// Creates a folder, durably. Fails if a symbolic link stands in its place.
fn make_folder(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(found) if found.is_symlink() => {
            return Err(io::Error::other(format!("{} is a symbolic link, which is not followed", path.display())));
        }
        _ => {}
    }
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes to set"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        // Another thread was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => path.parent().filter(|above| !above.as_os_str().is_empty()).map_or(Ok(()), sync),
    }
}

/// Makes the names in a folder durable. Other systems than Unix can't open a folder, and don't need to.
fn sync(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    match File::open(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => opened?.sync_all()?,
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// Locks a folder itself, where the system can; `None` if another process has locked it.
fn lock_folder(folder: &Path) -> Option<Option<File>> {
    // Windows can't open folders, and some network file systems lock only files that are open for writing: there, the lock
    // file alone tells of another server.
    let Ok(opened) = File::open(folder) else { return Some(None) };
    match opened.try_lock() {
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Error(_)) => Some(None),
        Ok(()) => Some(Some(opened)),
    }
}
