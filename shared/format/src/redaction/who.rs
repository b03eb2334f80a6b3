//! The names of users and hosts that a trace gives away.

use std::collections::BTreeSet;

use crate::Header;
use trace::Snapshot;
use trace::frames::{FrameId, StrId};
use trace::narrow::number32;

/// Folders whose subfolders are named after users.
const HOMES: [&[u8]; 6] = [b"home", b"homes", b"Users", b"users", b"user", b"scratch"];
/// Names that say nothing about a person: those of images and of shared folders.
const NOBODY: [&[u8]; 9] =
    [b"ubuntu", b"root", b"runner", b"user", b"users", b"shared", b"Shared", b"Public", b"linuxbrew"];
/// The fewest bytes of a name that is searched for outside of its folder: shorter ones occur by chance.
pub(super) const NAME_BYTES: usize = 3;

/// The names of users and hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Who {
    /// Users, as their home folders are named.
    pub(super) users: BTreeSet<Vec<u8>>,
    /// The host, in full and without its domain.
    pub(super) hosts: BTreeSet<Vec<u8>>,
}

impl Who {
    /// Collects the names in a trace and its header.
    pub(super) fn of(header: &Header, snapshot: &Snapshot) -> Self {
        let mut users = BTreeSet::new();
        let symbols = &snapshot.symbols;
        let files: BTreeSet<StrId> =
            (0..number32(symbols.frame_count())).map(|id| symbols.frame(FrameId(id)).filename).collect();
        let others_than_files = (0..number32(symbols.string_count())).map(StrId).filter(|id| !files.contains(id));
        let texts = others_than_files.map(|id| symbols.bytes(id));
        let others = [header.name.as_bytes(), header.job.as_bytes(), header.settings.conf.as_bytes()];
        let words = texts.chain(others).flat_map(tokens);
        // In a text, a space ends a path. The path of a frame may contain spaces.
        let paths = files.iter().map(|id| symbols.bytes(*id));
        let names = words.chain(paths).filter_map(home).map(|(name, _)| name);
        users.extend(names.filter(|name| !NOBODY.contains(name)).map(<[u8]>::to_vec));
        let host = header.host.as_bytes();
        let short = host.split(|byte| *byte == b'.').next().unwrap_or_default();
        let hosts = [host, short].into_iter().filter(|name| name.len() >= NAME_BYTES).map(<[u8]>::to_vec).collect();
        Self { users, hosts }
    }
}

/// Returns whether a byte separates the parts of a path.
pub(super) fn is_separator(byte: u8) -> bool {
    matches!(byte, b'/' | b'\\')
}

/// Returns whether a byte ends a path in a text.
pub(super) fn is_gap(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'(' | b')' | b',' | b';' | b'=' | b'<' | b'>' | b'|')
}

/// Returns the parts of a text that may be paths.
fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| is_gap(*byte)).filter(|token| token.iter().any(|byte| is_separator(*byte)))
}

/// Returns the user whose home folder a path is in, and the number of bytes up to the end of that folder.
pub(super) fn home(path: &[u8]) -> Option<(&[u8], usize)> {
    let mut at = 0;
    let mut is_after_homes = false;
    for part in path.split(|byte| is_separator(*byte)) {
        let end = at + part.len();
        // The last component is taken for a file if it has an extension.
        let is_folder = end < path.len() || !part.contains(&b'.');
        // The first part of `/root/x` is empty.
        let is_root = part == b"root" && at == 1;
        if (is_after_homes || is_root) && is_folder && !part.is_empty() {
            return Some((part, end));
        }
        is_after_homes = HOMES.contains(&part);
        at = end + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_folders_are_found() {
        for (path, want) in [
            ("/home/alice/train.py", Some(("alice", 11))),
            ("/data/home/bob/x/y.py", Some(("bob", 14))),
            ("C:\\Users\\Carol\\x.py", Some(("Carol", 14))),
            ("/scratch/dave/x", Some(("dave", 13))),
            ("/root/x.py", Some(("root", 5))),
            ("/srv/root/x.py", None),
            ("/home/alice", Some(("alice", 11))),
            ("/Users/John Smith/x.py", Some(("John Smith", 17))),
            ("/opt/home/x.py", None),
            ("/usr/lib/python3/x.py", None),
            ("train.py", None),
            ("", None),
        ] {
            let found = home(path.as_bytes()).map(|(name, end)| (String::from_utf8_lossy(name).into_owned(), end));
            assert_eq!(found, want.map(|(name, end)| (name.to_owned(), end)), "{path}");
        }
    }
}
