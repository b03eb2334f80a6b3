//! The paths of files in the store's folder.
//!
//! ```text
//! lock                                               held while a server uses the folder
//! catalogue                                          what is known of each session, to start quickly; can be rebuilt
//! clock.json                                         the clock of retention
//! wal/{session}.{number}.vramscope                   segments that grow: the write-ahead log
//! wal/{session}.{number}.{hash}.vramscope            sealed segments that wait to be uploaded to an object store
//! segments/{session}/{number}.{hash}.vramscope       sealed segments, unless they are in an object store
//! segments/{session}/marks.json                      whether the session is pinned, or announced for deletion
//! quarantine/{session}/{number}.{time}.vramscope     damaged segments, set aside and never deleted by the server
//! owner                                              a random name of this folder, for the lease in an object store
//! *.new                                              files that were not complete when the server ended
//! ```
//! A number has eight digits, or more if it needs them. A hash is the BLAKE3 hash of the whole file in hexadecimal digits.
//! Every path is built here, from a session's valid name, a number and a hash, so no name from outside can leave the folder.

use format::EXTENSION;
use wire::is_session;

use super::{Hash, StoreError, StoreResult};

/// The folder of segments that grow.
pub(super) const LOG: &str = "wal";
/// The folder of sealed segments.
pub(super) const SEGMENTS: &str = "segments";
/// The folder of damaged segments.
pub(super) const QUARANTINE: &str = "quarantine";
/// The catalogue.
pub(super) const CATALOGUE: &str = "catalogue";
/// The clock of retention.
pub(super) const CLOCK: &str = "clock.json";
/// The file with a random name of this folder, for the lease in an object store.
pub(super) const OWNER: &str = "owner";
/// The lease of a server, in an object store.
pub(super) const LEASE: &str = "lease.json";
/// The marks of a session, in its folder.
pub(super) const MARKS: &str = "marks.json";

/// Returns a session's name if it is valid.
pub(super) fn checked(session: &str) -> StoreResult<&str> {
    if is_session(session) { Ok(session) } else { Err(StoreError::Missing) }
}

/// Returns the path of a segment that grows.
pub(super) fn open_path(session: &str, number: u32) -> StoreResult<String> {
    Ok(format!("{LOG}/{}.{number:08}.{EXTENSION}", checked(session)?))
}

/// Returns the path of a sealed segment that waits to be uploaded.
pub(super) fn pending_path(session: &str, number: u32, hash: Hash) -> StoreResult<String> {
    Ok(format!("{LOG}/{}.{}", checked(session)?, sealed_name(number, hash)))
}

/// Returns the folder of a session's sealed segments.
pub(super) fn session_folder(session: &str) -> StoreResult<String> {
    Ok(format!("{SEGMENTS}/{}", checked(session)?))
}

/// Returns the path of a sealed segment.
pub(super) fn sealed_path(session: &str, number: u32, hash: Hash) -> StoreResult<String> {
    Ok(format!("{}/{}", session_folder(session)?, sealed_name(number, hash)))
}

/// Returns the path of a session's marks.
pub(super) fn marks_path(session: &str) -> StoreResult<String> {
    Ok(format!("{}/{MARKS}", session_folder(session)?))
}

/// Returns the path at which a damaged segment is set aside at a time.
pub(super) fn quarantine_path(session: &str, number: u32, time_us: i64) -> StoreResult<String> {
    Ok(format!("{QUARANTINE}/{}/{number:08}.{time_us}.{EXTENSION}", checked(session)?))
}

fn sealed_name(number: u32, hash: Hash) -> String {
    format!("{number:08}.{hash}.{EXTENSION}")
}

/// Reads the name of a sealed segment.
pub(super) fn parse_sealed(name: &str) -> Option<(u32, Hash)> {
    let mut parts = name.split('.');
    let parsed = (parse_number(parts.next()?)?, Hash::parse(parts.next()?)?);
    (parts.next() == Some(EXTENSION) && parts.next().is_none()).then_some(parsed)
}

/// Reads the name of a file of the folder [`LOG`]: the session, the number, and the hash if the segment is sealed.
pub(super) fn parse_log(name: &str) -> Option<(&str, u32, Option<Hash>)> {
    let (session, rest) = name.split_once('.')?;
    if !is_session(session) {
        return None;
    }
    if let Some((number, hash)) = parse_sealed(rest) {
        return Some((session, number, Some(hash)));
    }
    let (number, extension) = rest.split_once('.')?;
    (extension == EXTENSION).then_some((session, parse_number(number)?, None))
}

/// Reads a number as [`sealed_name`] writes it.
fn parse_number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number: &u32| format!("{number:08}") == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "abcdefghijklmnopqrstuvwxyz";

    #[test]
    fn names_are_read_as_they_are_written() {
        let hash = Hash::of(b"x");
        for number in [0, 1, 99_999_999, 100_000_000, u32::MAX] {
            assert_eq!(parse_sealed(&sealed_name(number, hash)), Some((number, hash)));
        }
        let name = |path: StoreResult<String>| path.unwrap().rsplit_once('/').unwrap().1.to_owned();
        assert_eq!(parse_log(&name(open_path(SESSION, 7))), Some((SESSION, 7, None)));
        assert_eq!(parse_log(&name(pending_path(SESSION, 7, hash))), Some((SESSION, 7, Some(hash))));
        assert_eq!(parse_sealed(&name(sealed_path(SESSION, 7, hash))), Some((7, hash)));
        for name in ["", "x", "marks.json", "00000001.vramscope", "0000001.aa.vramscope", "00000001.zz.vramscope"] {
            assert_eq!(parse_sealed(name), None, "{name}");
        }
        // A disk that ignores the case of letters would open another file by its name in small letters.
        let capitals = hash.to_string().to_uppercase();
        for name in [
            format!("00000001.{capitals}.vramscope"),
            format!("000000001.{hash}.vramscope"),
            format!("4294967296.{hash}.vramscope"),
        ] {
            assert_eq!(parse_sealed(&name), None, "{name}");
        }
        for name in ["", "x.00000001.vramscope", "abcdefghijklmnopqrstuvwxyz.00000001.vramscope.new", "lock"] {
            assert_eq!(parse_log(name), None, "{name}");
        }
    }

    #[test]
    fn no_path_is_built_from_another_name() {
        for name in ["", "..", ".", "/etc", "../abcdefghijklmnopqrstuvwx", &"A".repeat(26), &"a".repeat(27)] {
            assert!(open_path(name, 1).is_err() && session_folder(name).is_err(), "{name}");
            assert!(quarantine_path(name, 1, 1).is_err() && sealed_path(name, 1, Hash::of(b"")).is_err(), "{name}");
        }
    }
}
