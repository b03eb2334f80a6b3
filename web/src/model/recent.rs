//! Recent files, which the browser can open again.

use query::link::{FileHash, Link};

use super::state::Model;

/// A recent file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recent {
    /// The id by which the browser keeps it.
    pub id: String,
    /// Its name, without a folder.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was opened last, in microseconds since the epoch.
    pub opened_us: i64,
    /// The peak of reserved memory in bytes; 0 if it is not known.
    pub peak: u64,
    /// Whether a request for memory failed.
    pub has_oom: bool,
    /// Its identity, if it was computed.
    pub hash: Option<FileHash>,
    /// Whether the browser keeps a copy, not only a handle of the file.
    pub is_copy: bool,
}

/// How to get the bytes of an open file again after the page is closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Again {
    /// Not at all, or not yet.
    #[default]
    No,
    /// The page or its server has them.
    Here,
    /// The browser keeps the file by this id.
    Kept(String),
}

/// Returns the file that a link is for: the one with its identity, otherwise the newest one with its name whose
/// identity isn't known to differ.
pub fn recent_of<'a>(link: &Link, recent: &'a [Recent]) -> Option<&'a Recent> {
    if link.session.is_some() {
        return None;
    }
    let is_it = |file: &&Recent| file.hash.is_some() && file.hash == link.hash;
    let may_be_it = |file: &&Recent| {
        link.file.as_ref() == Some(&file.name) && (file.hash.is_none() || link.hash.is_none() || file.hash == link.hash)
    };
    recent.iter().find(is_it).or_else(|| recent.iter().find(may_be_it))
}

/// The most recent files that a menu lists.
const LISTED: usize = 8;

/// Returns the newest of the files that were opened lately and are not open now, as many as a menu lists.
pub fn recent_closed(model: &Model) -> impl Iterator<Item = &Recent> {
    let is_open = |recent: &Recent| {
        model.files.iter().any(|file| {
            matches!(&file.again, Again::Kept(id) if *id == recent.id)
                || recent.hash.is_some() && file.hash == recent.hash
        })
    };
    let all = model.recent.as_ref().map_or(&[][..], |recent| recent.as_slice());
    all.iter().filter(move |recent| !is_open(recent)).take(LISTED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{added, after};
    use crate::model::{Action, FileKey, Shared};

    fn recent(id: &str, name: &str, hash: Option<u8>) -> Recent {
        Recent {
            id: id.to_owned(),
            name: name.to_owned(),
            bytes: 1,
            opened_us: 0,
            peak: 0,
            has_oom: false,
            hash: hash.map(|byte| FileHash::of_digest(&[byte; 32])),
            is_copy: true,
        }
    }

    #[test]
    fn a_menu_lists_the_newest_that_are_not_open() {
        let all: Vec<Recent> = (0..20).map(|i| recent(&i.to_string(), &format!("{i}.pickle"), Some(i))).collect();
        let model = after([
            added(0, "renamed"),
            Action::FileHashed { key: FileKey(0), hash: FileHash::of_digest(&[1; 32]) },
            added(1, "2.pickle"),
            Action::FileKept { key: FileKey(1), again: Again::Kept("2".to_owned()) },
            Action::RecentListed(Some(Shared::new(all))),
        ]);
        let listed: Vec<&str> = recent_closed(&model).map(|recent| recent.id.as_str()).collect();
        assert_eq!(listed, ["0", "3", "4", "5", "6", "7", "8", "9"]);
        assert_eq!(recent_closed(&after([])).count(), 0);
    }

    #[test]
    fn a_link_finds_its_file_by_content_and_otherwise_by_name() {
        let all =
            [recent("1", "a", Some(1)), recent("2", "a", None), recent("3", "b", Some(3)), recent("4", "c", Some(4))];
        let found = |name: &str, hash: Option<u8>| {
            let hash = hash.map(|byte| FileHash::of_digest(&[byte; 32]));
            let link = Link { file: Some(name.to_owned()), hash, ..Link::default() };
            recent_of(&link, &all).map(|file| file.id.clone())
        };
        assert_eq!(found("renamed", Some(3)).as_deref(), Some("3"));
        assert_eq!(found("a", Some(9)).as_deref(), Some("2"), "its identity was never found");
        assert_eq!(found("a", None).as_deref(), Some("1"), "the newest");
        assert_eq!(found("c", Some(9)), None, "another file of that name");
        assert_eq!(found("d", None), None);
        let session = Link { session: Some("s".to_owned()), ..Link::default() };
        assert_eq!(recent_of(&session, &all), None);
        assert_eq!(recent_of(&Link::default(), &all), None, "a link to no file");
    }
}
