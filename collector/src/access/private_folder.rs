//! Folders that hold secrets: used only if nobody else can read or change what is in them.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::Path;

/// Creates a folder that only this user can access, with the folders that lead to it. One that exists is checked. Returns a
/// sentence for people on failure.
pub fn create_private_folder(folder: &Path) -> Result<(), String> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    // Of one that exists, what it is says more than why it can't be created.
    let created = builder.create(folder);
    if is_private_folder(folder)? {
        return Ok(());
    }
    let why = created.err().map_or_else(|| "it is gone again".to_owned(), |error| error.to_string());
    Err(format!("{} can't be created: {why}.", folder.display()))
}

/// Checks that only this user can access a folder. Returns whether it exists, or a sentence for people.
pub fn is_private_folder(folder: &Path) -> Result<bool, String> {
    let shown = folder.display();
    // Of the path itself: a link could be turned to another place at any time.
    let metadata = match fs::symlink_metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(format!("{shown} can't be looked at: {error}.")),
    };
    if !metadata.is_dir() {
        return Err(format!("{shown} is a link or a file, and has to be a folder. Remove it."));
    }
    if !is_own(&metadata) {
        return Err(format!("{shown} belongs to another user. Set XDG_STATE_HOME to a folder of yours."));
    }
    if is_open_to_others(&metadata) {
        return Err(format!(
            "Other users of this machine have access to {shown}, which holds secrets. Run: chmod 700 {shown}"
        ));
    }
    Ok(true)
}

/// Whether a file or folder belongs to the user as whom this process acts.
#[cfg(unix)]
pub(super) fn is_own(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(metadata) == rustix::process::geteuid().as_raw()
}

/// Whether another user than the owner may read, change or enter a file or folder.
#[cfg(unix)]
pub(super) fn is_open_to_others(metadata: &Metadata) -> bool {
    const GROUP_AND_OTHERS: u32 = 0o077;
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & GROUP_AND_OTHERS != 0
}

/// Other systems have no such numbers and bits; their folders of users are private by default.
#[cfg(not(unix))]
pub(super) fn is_own(_: &Metadata) -> bool {
    true
}

#[cfg(not(unix))]
pub(super) fn is_open_to_others(_: &Metadata) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn a_folder_that_others_could_read_or_turn_elsewhere_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b");
        assert_eq!((is_private_folder(&folder), create_private_folder(&folder)), (Ok(false), Ok(())));
        assert_eq!(create_private_folder(&folder), Ok(()), "it exists by now");
        for mode in [0o701, 0o710, 0o740, 0o770, 0o777, 0o1777] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            let error = create_private_folder(&folder).unwrap_err();
            assert!(error.ends_with(&format!("chmod 700 {}", folder.display())), "{mode:o}: {error}");
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let link = home.path().join("link");
        symlink(&folder, &link).unwrap();
        let (dangling, file) = (home.path().join("dangling"), home.path().join("file"));
        symlink(home.path().join("nowhere"), &dangling).unwrap();
        fs::write(&file, "").unwrap();
        for path in [&link, &dangling, &file] {
            let error = create_private_folder(path).unwrap_err();
            assert!(error.contains("has to be a folder"), "{error}");
        }
        assert!(create_private_folder(&file.join("inside")).unwrap_err().contains("can't be looked at"));
        // Only the administrator can give a folder away.
        match chown(&folder, Some(65_534), None) {
            Ok(()) => assert!(is_private_folder(&folder).unwrap_err().contains("belongs to another user")),
            Err(error) => println!("skipped: no folder of another user can be made: {error}"),
        }
    }
}
