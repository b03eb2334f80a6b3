//! Messages for a disk that has no room.

use std::io;

/// Whether an error says that a disk has no room: for bytes, for another file, or for more of this user.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns why something can't be written. The system's message for a full disk is "no space left on device", which
/// could be mistaken for the GPU's memory.
pub fn why(error: &io::Error) -> String {
    match error.kind() {
        // The error already has such a text.
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
