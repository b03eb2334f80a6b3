//! Temporary folders for tests, removed when the test is over, however it ends.

use std::ffi::OsStr;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::sync::Once;

use tempfile::TempDir;

/// An empty temporary folder, removed when the value is dropped.
#[derive(Debug)]
pub struct Folder {
    folder: TempDir,
    /// A small disk is mounted there.
    is_disk: bool,
}

/// The beginning of every name; the number of the process follows.
const PREFIX: &str = "vramscope-test-";

/// Removes the folders of killed processes once.
static SWEPT: Once = Once::new();

impl Folder {
    /// Creates a folder whose path contains `name`.
    pub fn new(name: &str) -> io::Result<Self> {
        SWEPT.call_once(|| sweep(&std::env::temp_dir()));
        let (prefix, suffix) = (format!("{PREFIX}{}-", std::process::id()), format!("-{name}"));
        let folder = tempfile::Builder::new().prefix(&prefix).suffix(&suffix).tempdir()?;
        Ok(Self { folder, is_disk: false })
    }

    /// Creates a folder on a disk of its own with `mib` MiB. Returns `None` if the user may not mount one.
    pub fn disk(name: &str, mib: u32) -> io::Result<Option<Self>> {
        Self::mounted(name, &format!("size={mib}m"))
    }

    /// Creates a folder on a disk of its own that has room for so many files. Returns `None` if the user may not mount one.
    pub fn disk_for_files(name: &str, files: u32) -> io::Result<Option<Self>> {
        // The folder itself takes one of the inodes.
        Self::mounted(name, &format!("size=64m,nr_inodes={}", files + 1))
    }

    fn mounted(name: &str, options: &str) -> io::Result<Option<Self>> {
        let mut new = Self::new(name)?;
        let words = ["-t", "tmpfs", "-o", options, "tmpfs"].map(OsStr::new);
        new.is_disk = succeeds("mount", words.into_iter().chain([new.folder.path().as_os_str()]));
        Ok(new.is_disk.then_some(new))
    }
}

impl Folder {
    /// Writes a file that holds a secret: only its owner may read it. Returns its path.
    pub fn secret(&self, name: &str, text: &str) -> io::Result<String> {
        let path = self.join(name);
        // A new file takes the place of an old one, which may be read meanwhile.
        let new = path.with_extension("new");
        std::fs::write(&new, text)?;
        #[cfg(unix)]
        std::fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        std::fs::rename(&new, &path)?;
        Ok(path.to_string_lossy().into_owned())
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.folder.path()
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl AsRef<OsStr> for Folder {
    fn as_ref(&self) -> &OsStr {
        self.folder.path().as_os_str()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_disk {
            unmount(self.folder.path());
        }
    }
}

/// Removes the folders of processes that have ended: a killed test can't remove its own. Does nothing on systems that
/// don't list their processes.
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
            // Fails if another process was quicker.
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

fn is_mounted(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(1).map(Path::new) == Some(path))
}

/// Unmounts a disk, or has the system do so when its last file is closed.
fn unmount(path: &Path) {
    if !succeeds("umount", [path]) {
        succeeds("umount", [OsStr::new("--lazy"), path.as_os_str()]);
    }
}

fn succeeds(program: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_empty_and_removed_when_its_test_ends_or_fails() {
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
    fn only_folders_of_killed_tests_are_swept() {
        let home = Folder::new("sweep").unwrap();
        // No process has a number above 2^22, the system's limit.
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
