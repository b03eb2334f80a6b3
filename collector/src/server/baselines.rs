//! The baselines that a server keeps: small files of JSON, each written as a whole.
//!
//! ```text
//! baselines/{name}.json
//! ```
//! Two jobs may add a run at the same time: a baseline is replaced only by who has seen its last version.

use std::collections::BTreeSet;
use std::sync::Arc;

use trace::limits::{BASELINES, BASELINES_BYTES};

use crate::baseline::is_baseline_name;
use crate::brief_lock::BriefLock;
use crate::store::{Blobs, Hasher, StoreError, StoreResult};

/// Their folder.
const FOLDER: &str = "baselines";
/// The ending of their files.
const ENDING: &str = ".json";

/// The baselines of a server. All functions may wait for a disk or a network.
#[derive(Debug)]
pub struct Baselines {
    blobs: Arc<dyn Blobs>,
    /// The names of those that are being changed, which takes as long as the store takes.
    changing: BriefLock<BTreeSet<String>>,
}

/// The right to change a baseline. It ends when this is dropped.
struct Claim<'a> {
    changing: &'a BriefLock<BTreeSet<String>>,
    name: &'a str,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.changing.lock().remove(self.name);
    }
}

/// Which version of a baseline is to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    /// Any, and there may be none.
    Any,
    /// None: it must be new.
    Nothing,
    /// The one with this hash.
    Version(String),
}

/// Why a baseline was not changed.
#[derive(Debug)]
pub(super) enum NotKept {
    /// It has another version than the sender has seen.
    Changed,
    /// Somebody else is changing it.
    Busy,
    /// There are as many as there may be, or too many bytes.
    Full,
    /// The store failed.
    Store(StoreError),
}

impl From<StoreError> for NotKept {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Baselines {
    /// Opens the baselines among these files.
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs, changing: BriefLock::new(BTreeSet::new()) }
    }

    /// Returns the names, with their bytes.
    pub(super) fn list(&self) -> StoreResult<Vec<(String, u64)>> {
        let files = self.blobs.list(FOLDER)?.into_iter();
        let named = files.filter_map(|(file, bytes)| Some((file.strip_suffix(ENDING)?.to_owned(), bytes)));
        let mut all: Vec<_> = named.filter(|(name, _)| is_baseline_name(name)).collect();
        all.sort();
        Ok(all)
    }

    /// Returns a baseline; [`StoreError::Missing`] if there is none.
    pub(super) fn get(&self, name: &str) -> StoreResult<Vec<u8>> {
        self.blobs.get(&path(name)?)
    }

    /// Keeps a baseline. Returns its version.
    pub(super) fn put(&self, name: &str, bytes: &[u8], replaced: &Replaced) -> Result<String, NotKept> {
        let path = path(name)?;
        let _claim = self.claim(name)?;
        let all = self.list()?;
        let is_new = !all.iter().any(|(known, _)| known == name);
        let is_as_seen = match replaced {
            Replaced::Any => true,
            Replaced::Nothing => is_new,
            Replaced::Version(seen) => !is_new && version(&self.blobs.get(&path)?) == *seen,
        };
        if !is_as_seen {
            return Err(NotKept::Changed);
        }
        let others: u64 = all.iter().filter(|(known, _)| known != name).map(|(_, bytes)| *bytes).sum();
        if is_new && all.len() >= BASELINES || others.saturating_add(bytes.len() as u64) > BASELINES_BYTES {
            return Err(NotKept::Full);
        }
        self.blobs.put(&path, bytes)?;
        Ok(version(bytes))
    }

    /// Deletes a baseline; [`StoreError::Missing`] if there is none.
    pub(super) fn remove(&self, name: &str) -> Result<(), NotKept> {
        let path = path(name)?;
        let _claim = self.claim(name)?;
        if !self.list()?.iter().any(|(known, _)| known == name) {
            return Err(StoreError::Missing.into());
        }
        Ok(self.blobs.remove(&[path])?)
    }

    fn claim<'a>(&'a self, name: &'a str) -> Result<Claim<'a>, NotKept> {
        let is_free = self.changing.lock().insert(name.to_owned());
        // Only a claim that was made may end.
        is_free.then(|| Claim { changing: &self.changing, name }).ok_or(NotKept::Busy)
    }
}

/// Returns what identifies a version of a baseline: the hash of its bytes.
pub(super) fn version(bytes: &[u8]) -> String {
    let mut hasher = Hasher::default();
    hasher.update(bytes);
    hasher.finish().to_string()
}

/// Returns the path of a baseline; [`StoreError::Missing`] for a name that none can have.
fn path(name: &str) -> StoreResult<String> {
    if is_baseline_name(name) { Ok(format!("{FOLDER}/{name}{ENDING}")) } else { Err(StoreError::Missing) }
}
