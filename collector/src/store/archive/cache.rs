//! A cache of what an object store has, so that it is asked less often.

use std::collections::{HashMap, HashSet};

use super::sealed::Sealed;
use crate::brief_lock::BriefLock;
use crate::store::StoreResult;

/// Sessions whose segments are cached, so that reading one needn't list them each time.
const CACHED: usize = 1_000;

/// The segments and the marks of sessions in an object store, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct ObjectCache {
    known: BriefLock<Known>,
    marked: BriefLock<Marked>,
}

/// The segments of the sessions that were asked for last.
#[derive(Debug, Default)]
struct Known {
    segments: HashMap<String, Vec<Sealed>>,
    /// How often a segment was uploaded or removed. A list from before the last time may lack it, and is not kept.
    changes: u64,
}

/// The sessions that may have marks. Asking the object store for the marks of each session would take long.
#[derive(Debug, Default)]
struct Marked {
    /// Those that had some when all objects were listed; `None` before that.
    listed: Option<HashSet<String>>,
    /// Those that were given some by this process, perhaps while objects were listed.
    given: HashSet<String>,
}

impl ObjectCache {
    /// Returns the segments of a session: those in the cache, or what `list` returns.
    pub(super) fn segments(
        &self,
        session: &str,
        list: impl FnOnce() -> StoreResult<Vec<Sealed>>,
    ) -> StoreResult<Vec<Sealed>> {
        let changes = {
            let known = self.known.lock();
            if let Some(segments) = known.segments.get(session) {
                return Ok(segments.clone());
            }
            known.changes
        };
        let segments = list()?;
        let mut known = self.known.lock();
        if known.changes == changes {
            if known.segments.len() >= CACHED {
                known.segments.clear();
            }
            known.segments.insert(session.to_owned(), segments.clone());
        }
        Ok(segments)
    }

    /// Adds a segment that is in the object store now.
    pub(super) fn add(&self, session: &str, sealed: Sealed) {
        let mut known = self.known.lock();
        known.changes += 1;
        if let Some(segments) = known.segments.get_mut(session).filter(|segments| !segments.contains(&sealed)) {
            segments.push(sealed);
        }
    }

    /// Forgets the segments of a session.
    pub(super) fn forget(&self, session: &str) {
        let mut known = self.known.lock();
        known.changes += 1;
        known.segments.remove(session);
    }

    /// Sets which sessions had marks when all objects were listed.
    pub(super) fn set_marked(&self, sessions: HashSet<String>) {
        self.marked.lock().listed = Some(sessions);
    }

    /// Adds a session that is given marks.
    pub(super) fn add_marked(&self, session: &str) {
        self.marked.lock().given.insert(session.to_owned());
    }

    /// Whether a session is known to have no marks.
    pub(super) fn has_no_marks(&self, session: &str) -> bool {
        let marked = self.marked.lock();
        marked.listed.as_ref().is_some_and(|listed| !listed.contains(session)) && !marked.given.contains(session)
    }
}
