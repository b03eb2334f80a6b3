//! Who changes which link or trace now.
//!
//! What is decided about a link or a trace holds until it is stored, which takes as long as an object store takes. So whoever
//! changes one claims its name first, and asks again then. Others wait for this name alone: no lock is held meanwhile.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The names that are claimed.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Whether each is claimed to be kept.
    taken: Mutex<HashMap<String, bool>>,
    freed: Condvar,
}

/// The right to change what has a name. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    claims: &'a Claims,
    name: String,
}

impl Claims {
    /// Waits for a link.
    pub(super) fn change(&self, name: &str) -> Claim<'_> {
        self.wait(name, false)
    }

    /// Waits for a trace to which a link will lead. Whoever claims it has to ask at the end whether one leads to it.
    pub(super) fn keep(&self, name: &str) -> Claim<'_> {
        self.wait(name, true)
    }

    /// Waits for a trace that is to be deleted. Returns `None` if it is claimed to be kept, perhaps for minutes.
    pub(super) fn delete(&self, name: &str) -> Option<Claim<'_>> {
        let mut taken = self.taken();
        while let Some(is_kept) = taken.get(name) {
            if *is_kept {
                return None;
            }
            taken = self.freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        Some(self.take(taken, name, false))
    }

    fn wait(&self, name: &str, is_kept: bool) -> Claim<'_> {
        let taken = self.freed.wait_while(self.taken(), |taken| taken.contains_key(name));
        self.take(taken.unwrap_or_else(PoisonError::into_inner), name, is_kept)
    }

    fn take(&self, mut taken: MutexGuard<'_, HashMap<String, bool>>, name: &str, is_kept: bool) -> Claim<'_> {
        taken.insert(name.to_owned(), is_kept);
        Claim { claims: self, name: name.to_owned() }
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<String, bool>> {
        // Every change is complete at every moment.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.claims.taken().remove(&self.name);
        self.claims.freed.notify_all();
    }
}
