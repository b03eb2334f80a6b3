//! Where shared traces and their links stand, in the store's folder or in its object store.
//!
//! ```text
//! shares/links/{hash of the token}.json              a link
//! shares/traces/{hash of the bytes}.vramscope        a trace
//! shares/uploads/{id}/about.json                     an upload; always in the local folder
//! shares/uploads/{id}/{first byte}.part              a part of it
//! shares/uploads/{id}/whole                          what it becomes, until it is complete
//! ```
//! Every path is built here, from hashes, numbers and checked ids, so no text from outside can leave these folders.

use format::EXTENSION;
use wire::is_session;

use crate::store::{Hash, StoreError, StoreResult};

/// The folder of links.
pub(super) const LINKS: &str = "shares/links";
/// The folder of traces.
pub(super) const TRACES: &str = "shares/traces";
/// The folder of uploads.
pub(super) const UPLOADS: &str = "shares/uploads";
/// The file that describes an upload, in its folder.
pub(super) const ABOUT: &str = "about.json";
/// The ending of a link's file.
const LINK: &str = ".json";
/// The ending of a part.
const PART: &str = ".part";

/// Returns the path of a link.
pub(super) fn link_path(hash: &str) -> String {
    format!("{LINKS}/{hash}{LINK}")
}

/// Reads the name of a link's file.
pub(super) fn parse_link(name: &str) -> Option<&str> {
    let hash = name.strip_suffix(LINK)?;
    (hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(hash)
}

/// Returns the path of a trace. `name` is what [`content_name`] made.
pub(super) fn content_path(name: &str) -> String {
    format!("{TRACES}/{name}")
}

/// Returns the name of a trace's file.
pub(super) fn content_name(hash: Hash) -> String {
    format!("{hash}.{EXTENSION}")
}

/// Reads the name of a trace's file.
pub(super) fn parse_content(name: &str) -> Option<Hash> {
    Hash::parse(name.strip_suffix(EXTENSION)?.strip_suffix('.')?)
}

/// Returns the folder of an upload.
pub(super) fn upload_folder(id: &str) -> StoreResult<String> {
    if is_session(id) { Ok(format!("{UPLOADS}/{id}")) } else { Err(StoreError::Missing) }
}

/// Returns the name of the part of an upload that begins at an offset. Names sort by that offset.
pub(super) fn part_name(from: u64) -> String {
    format!("{from:020}{PART}")
}

/// Reads the name of a part.
pub(super) fn parse_part(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(PART)?;
    (digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_no_other() {
        let hash = Hash::of(b"x");
        assert_eq!(parse_content(&content_name(hash)), Some(hash));
        assert_eq!(parse_part(&part_name(77)), Some(77));
        assert_eq!(parse_link(&format!("{hash}.json")), Some(&*hash.to_string()));
        for name in ["", "..", "x.json", "00.part", "../../etc/passwd.json", ".vramscope", "about.json"] {
            assert!(
                parse_content(name).is_none() && parse_part(name).is_none() && parse_link(name).is_none(),
                "{name}"
            );
        }
        for id in ["", "..", "../abcdefghijklmnopqrstuvwx", "/etc"] {
            assert!(upload_folder(id).is_err(), "{id}");
        }
    }
}
