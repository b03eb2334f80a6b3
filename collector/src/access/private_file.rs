//! Files that hold secrets: read only if nobody else can read them.

use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::path::Path;
use std::time::SystemTime;

use super::private_folder::{is_open_to_others, is_own};

/// Identifies a version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// The file's number in its file system, where there is one: a renamed file may have any time.
    number: u64,
    /// Its permissions, where there are some: changing them changes no time.
    mode: u32,
}

impl Stamp {
    /// Returns the version of a file that is there now; `None` if there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self::from(&metadata))
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let (number, mode) = {
            use std::os::unix::fs::MetadataExt;
            (metadata.ino(), metadata.mode())
        };
        #[cfg(not(unix))]
        let (number, mode) = (0, 0);
        Self { bytes: metadata.len(), modified: metadata.modified().ok(), number, mode }
    }
}

/// Reads a file of at most `most` bytes that, on Unix, only its owner may read. Returns a sentence for people on failure.
pub fn read_private(path: &Path, most: u64) -> Result<String, String> {
    let shown = path.display();
    let failed = |error: std::io::Error| format!("{shown} can't be read: {error}.");
    let file = File::open(path).map_err(failed)?;
    // Of the open file: the path could lead to another one by now.
    let metadata = file.metadata().map_err(failed)?;
    if is_open_to_others(&metadata) {
        return Err(format!(
            "Other users of this machine can read {shown}, which holds a token. Run: chmod 600 {shown}"
        ));
    }
    let text = read_all(file, most).map_err(failed)?;
    text.ok_or_else(|| format!("{shown} is too long: a file of tokens has at most {most} bytes."))
}

/// Reads a file of at most `most` bytes, whoever else can read it. `None` if it is longer or can't be read.
pub(super) fn read(path: &Path, most: u64) -> Option<String> {
    read_all(File::open(path).ok()?, most).ok()?
}

fn read_all(file: File, most: u64) -> std::io::Result<Option<String>> {
    let mut text = String::new();
    file.take(most.saturating_add(1)).read_to_string(&mut text)?;
    Ok((text.len() as u64 <= most).then_some(text))
}

/// Reads a file of at most `most` bytes that this user wrote and nobody else can change; `None` if there is none.
pub fn read_own(path: &Path, most: u64) -> Option<String> {
    // Nothing else is opened: a pipe would be waited for, and a link leads to what somebody else may have written.
    let is_ours = |metadata: &Metadata| metadata.is_file() && is_own(metadata) && !is_changed_by_others(metadata);
    std::fs::symlink_metadata(path).ok().filter(is_ours)?;
    let file = File::open(path).ok()?;
    file.metadata().ok().filter(is_ours)?;
    read_all(file, most).ok()?
}

/// Writes a file that only this user can read, in place of one of that name. Nobody finds half of it.
pub fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let draft = path.with_extension("draft");
    // One that a killed process left.
    let _ = std::fs::remove_file(&draft);
    let mut options = File::options();
    // A file or a link of that name is not followed.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&draft)?.write_all(bytes)?;
    std::fs::rename(&draft, path)
}

#[cfg(unix)]
fn is_changed_by_others(metadata: &Metadata) -> bool {
    const WRITTEN_BY_GROUP_AND_OTHERS: u32 = 0o022;
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & WRITTEN_BY_GROUP_AND_OTHERS != 0
}

#[cfg(not(unix))]
fn is_changed_by_others(_: &Metadata) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_files_of_their_owner_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        fs::write(&path, "12345678").unwrap();
        for (mode, most, wanted) in [
            (0o600, 8, None),
            (0o400, 8, None),
            (0o600, 7, Some("at most 7 bytes")),
            (0o640, 8, Some("chmod 600 ")),
            (0o604, 8, Some("chmod 600 ")),
            (0o620, 8, Some("chmod 600 ")),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let read = read_private(&path, most);
            match wanted {
                None => assert_eq!(read.as_deref(), Ok("12345678"), "{mode:o}"),
                Some(wanted) => assert!(read.as_ref().is_err_and(|error| error.contains(wanted)), "{mode:o}: {read:?}"),
            }
        }
        assert!(read_private(&folder.path().join("none"), 8).unwrap_err().contains("can't be read"));
    }

    #[test]
    fn a_private_file_is_written_whole_and_only_files_of_this_user_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (folder.path().join("1.json"), folder.path().join("elsewhere"));
        fs::write(&elsewhere, "other").unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.path().join("1.draft")).unwrap();
        for text in ["one", "two"] {
            write_private(&path, text.as_bytes()).unwrap();
            assert_eq!(read_own(&path, 3).as_deref(), Some(text));
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "other", "no link is followed");
        assert_eq!((read_own(&path, 2), read_own(folder.path(), 9)), (None, None));
        for (mode, is_read) in [(0o644, true), (0o620, false), (0o602, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_own(&path, 3).is_some(), is_read, "{mode:o}");
        }
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        assert_eq!(read_own(&link, 9), None);
    }
}
