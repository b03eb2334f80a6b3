//! Files of this machine that the page may open, because the user of the server asked for it: `vramscope FILE`.
//!
//! Each file has an address that nobody can guess, which the server tells only to who shows its secret. It stays valid for as
//! long as the server runs, so that the page can be loaded again.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use query::link::Encoded;

use crate::access::fresh_token;

/// The most files that have an address. A further one takes the place of the oldest.
const MOST: usize = 256;

/// Characters of an id.
const ID_CHARS: usize = 64;

/// Whether a text could be the id of a file.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == ID_CHARS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The files.
#[derive(Debug, Default)]
pub struct LocalFiles(Mutex<VecDeque<LocalFile>>);

/// A file.
#[derive(Clone, Debug)]
struct LocalFile {
    id: String,
    path: PathBuf,
}

impl LocalFiles {
    /// Gives a file an address. Returns its path below that of the server: `api/v1/files/ID/NAME`. The error is a sentence
    /// for people.
    pub fn offer(&self, path: &Path) -> Result<String, String> {
        let shown = path.display();
        let metadata = path.metadata().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => format!("{shown}: there is no such file."),
            _ => format!("{shown} can't be read: {error}."),
        })?;
        if !metadata.is_file() {
            return Err(format!("{shown} is not a file. Name a snapshot or a recording."));
        }
        let path = path.canonicalize().map_err(|error| format!("{shown} can't be read: {error}."))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut files = self.lock();
        let known = files.iter().find(|file| file.path == path).map(|file| file.id.clone());
        let id = match known {
            Some(id) => id,
            None => {
                let id = fresh_token()?;
                if files.len() >= MOST {
                    files.pop_front();
                }
                files.push_back(LocalFile { id: id.clone(), path });
                id
            }
        };
        Ok(format!("api/v1/files/{id}/{}", Encoded(&name)))
    }

    /// Returns the path of the file with an id.
    pub(super) fn path(&self, id: &str) -> Option<PathBuf> {
        self.lock().iter().find(|file| file.id == id).map(|file| file.path.clone())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<LocalFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_address() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job 1 é.pickle");
        std::fs::write(&path, b"x").unwrap();
        let files = LocalFiles::default();
        let address = files.offer(&path).unwrap();
        let (id, name) = address.strip_prefix("api/v1/files/").and_then(|rest| rest.split_once('/')).unwrap();
        assert_eq!((is_id(id), name), (true, "job%201%20%C3%A9.pickle"));
        assert_eq!(files.path(id), Some(path.canonicalize().unwrap()));
        assert_eq!(files.offer(&path).unwrap(), address);
        assert_eq!(files.path(""), None);
        let missing = files.offer(&folder.path().join("none")).unwrap_err();
        assert!(missing.ends_with("none: there is no such file."), "{missing}");
        assert!(files.offer(folder.path()).unwrap_err().contains("is not a file"));
    }

    #[test]
    fn the_oldest_file_gives_way() {
        let folder = tempfile::tempdir().unwrap();
        let files = LocalFiles::default();
        let addresses: Vec<String> = (0..=MOST)
            .map(|number| {
                let path = folder.path().join(number.to_string());
                std::fs::write(&path, b"x").unwrap();
                files.offer(&path).unwrap()
            })
            .collect();
        let is_known = |address: &String| address.split('/').nth(3).is_some_and(|id| files.path(id).is_some());
        assert!(!is_known(&addresses[0]) && addresses[1..].iter().all(is_known));
    }
}
