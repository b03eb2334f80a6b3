//! Folders for tests to write into, gone when the test is over, however it ends.

use std::ffi::OsStr;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty folder in the system's temporary one, for as long as the value lives.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// A small disk is mounted there.
    is_disk: bool,
}

/// What all names begin with; the process follows.
const PREFIX: &str = "vramscope-test-";

/// Tells folders of one process apart.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// What killed processes left is cleared away once.
static SWEPT: Once = Once::new();

impl Folder {
    /// Makes one, with a name in its path that says whose it is.
    pub fn new(name: &str) -> io::Result<Self> {
        SWEPT.call_once(|| sweep(&std::env::temp_dir()));
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("{PREFIX}{}-{number}-{name}", std::process::id()));
        // Of a process that had the same number.
        remove(&path);
        std::fs::create_dir(&path)?;
        Ok(Self { path, is_disk: false })
    }

    /// One that is a disk of so many MiB; `None` where the user may mount none.
    pub fn disk(name: &str, mib: u32) -> io::Result<Option<Self>> {
        let mut new = Self::new(name)?;
        let size = format!("size={mib}m");
        let words = ["-t", "tmpfs", "-o", &size, "tmpfs"].map(OsStr::new);
        new.is_disk = succeeds("mount", words.into_iter().chain([new.path.as_os_str()]));
        Ok(new.is_disk.then_some(new))
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl AsRef<OsStr> for Folder {
    fn as_ref(&self) -> &OsStr {
        self.path.as_os_str()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_disk {
            unmount(&self.path);
        }
        remove(&self.path);
    }
}

/// Clears away what processes left that are there no more: a test that is killed can't. Only where the system tells
/// which are.
fn sweep(folder: &Path) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let path = entry.path();
            if is_mounted(&path) {
                unmount(&path);
            }
            remove(&path);
        }
    }
}

fn is_mounted(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(1).map(Path::new) == Some(path))
}

/// Whoever still has a file of it open keeps it from going at once, but not from going.
fn unmount(path: &Path) {
    if !succeeds("umount", [path]) {
        succeeds("umount", [OsStr::new("--lazy"), path.as_os_str()]);
    }
}

fn succeeds(program: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// What can't be removed is the system's to remove: the test itself has said how it went.
fn remove(path: &Path) {
    let _ = std::fs::remove_dir_all(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_empty_and_gone_when_its_test_is_over_or_fails() {
        let folder = Folder::new("mine").unwrap();
        std::fs::create_dir_all(folder.join("a/b")).unwrap();
        let other = Folder::new("mine").unwrap();
        assert_eq!(std::fs::read_dir(&other).unwrap().count(), 0);
        let path = folder.to_path_buf();
        let failed = std::panic::catch_unwind(move || {
            assert!(folder.join("a/b").is_file(), "it is a folder");
        });
        assert!(failed.is_err() && !path.exists());
    }

    #[test]
    fn what_a_killed_test_left_is_cleared_away_and_nothing_else() {
        let home = Folder::new("sweep").unwrap();
        // No process has a number above the system's bound, which is 2^22.
        let names = [
            format!("{PREFIX}4194305-0-killed"),
            format!("{PREFIX}{}-0-mine", std::process::id()),
            "vramscope-other".to_owned(),
            format!("{PREFIX}odd"),
        ];
        for name in &names {
            std::fs::create_dir_all(home.join(name).join("inside")).unwrap();
        }
        sweep(&home);
        assert_eq!(names.map(|name| home.join(name).exists()), [!cfg!(target_os = "linux"), true, true, true]);
    }
}
