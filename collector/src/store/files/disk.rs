//! Files of the local disk.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{Entry, Files, OpenFile, folder_of};

/// A folder of the local disk, which no other server can open at the same time.
#[derive(Debug)]
pub struct DiskFiles {
    root: PathBuf,
    /// Locked for the lifetime of the value; `None` for a folder that is only looked at.
    _lock: Option<File>,
}

/// The file that is locked while a server uses the folder.
const LOCK: &str = "lock";

impl DiskFiles {
    /// Opens a folder, created if necessary. The error is a sentence for people; most often another server uses the folder.
    pub fn open(root: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| {
            format!("The folder {} can't be used: {error}. Name another one with --data.", root.display())
        };
        make_folder(root).map_err(failed)?;
        let lock = root.join(LOCK);
        // A symbolic link would be followed and its target created.
        if fs::symlink_metadata(&lock).is_ok_and(|found| !found.is_file()) {
            return Err(failed(io::Error::other(format!("{} is not a regular file", lock.display()))));
        }
        let lock = options().write(true).create(true).truncate(false).open(lock).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { root: root.to_owned(), _lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => Err(format!(
                "Another server uses the folder {}. Stop it, or name another folder with --data.",
                root.display()
            )),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Opens a folder to look at, also while a server uses it. The error is a sentence for people.
    pub fn look(root: &Path) -> Result<Self, String> {
        match fs::metadata(root) {
            Ok(found) if found.is_dir() => Ok(Self { root: root.to_owned(), _lock: None }),
            Ok(_) => Err(format!("{} is not a folder.", root.display())),
            Err(error) => Err(format!("The folder {} can't be read: {error}.", root.display())),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

impl Files for DiskFiles {
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let path = self.path(folder);
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            return Ok(Vec::new());
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let Ok(kind) = entry.file_type() else { continue };
            // No name of the store needs more than ASCII.
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            if kind.is_dir() {
                entries.push(Entry { name, is_folder: true, bytes: 0 });
            } else if kind.is_file()
                && let Ok(found) = entry.metadata()
            {
                entries.push(Entry { name, is_folder: false, bytes: found.len() });
            }
        }
        Ok(entries)
    }

    fn read(&self, path: &str, from: u64, most: usize) -> io::Result<Vec<u8>> {
        let path = self.path(path);
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn OpenFile>> {
        make_folder(&self.path(folder_of(path)))?;
        // A symbolic link of this name is removed and not followed.
        self.remove(path)?;
        let file = options().read(true).write(true).create_new(true).open(self.path(path))?;
        Ok(Box::new(DiskFile { file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (source, target) = (self.path(folder_of(from)), self.path(folder_of(to)));
        if fs::symlink_metadata(self.path(from)).is_err() {
            return Err(io::ErrorKind::NotFound.into());
        }
        make_folder(&target)?;
        fs::rename(self.path(from), self.path(to))?;
        sync(&target)?;
        if source != target { sync(&source) } else { Ok(()) }
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        is_missing_well(fs::remove_file(self.path(path)))
    }

    fn remove_folder(&self, folder: &str) -> io::Result<()> {
        match fs::remove_dir(self.path(folder)) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            other => is_missing_well(other),
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
        self.file.write_all(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length)).map(drop)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn is_missing_well(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
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

/// Creates a folder and those above it, each of them durable.
fn make_folder(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above {
        make_folder(above)?;
    }
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes to set"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        // Another thread was faster, or a folder is reached through a link that its owner made.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => above.map_or(Ok(()), sync),
    }
}

/// Makes the names in a folder durable. Other systems than Unix can't open a folder, and don't need to.
fn sync(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    match File::open(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => opened?.sync_all()?,
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
