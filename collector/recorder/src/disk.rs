//! Messages for a disk that has no room.

use std::io;

/// Whether an error says that a disk has no room: for bytes, for another file, or for more of this user.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns why something can't be written. The system says "no space left on device" of a full disk, and people who look into
/// a GPU's memory would think of that.
pub fn why(error: &io::Error) -> String {
    match error.kind() {
        // It says so already.
        _ if error.get_ref().is_some() => error.to_string(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "your quota on this disk is used up".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns why a file can't be created. A disk on which `df` shows space may have no room for one more file.
pub fn why_not_created(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk has no room for another file".to_owned(),
        _ => why(error),
    }
}
