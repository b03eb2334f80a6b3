//! The keys of those who gave a link's password.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trace::limits::ShareLimits;

use crate::access::Secret;

/// Keys that stand for a password that was right. They are in memory only: after a restart, the password is asked for again.
#[derive(Debug)]
pub(super) struct Keys {
    most: usize,
    valid: Duration,
    /// The link of each key, by the key's hash, and since when.
    known: Mutex<HashMap<String, (String, Instant)>>,
}

impl Keys {
    pub(super) fn new(limits: &ShareLimits) -> Self {
        Self { most: limits.keys, valid: Duration::from_secs(limits.key_seconds), known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, (String, Instant)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the key of a link. The oldest one makes room.
    pub(super) fn add(&self, key: &str, link: &str, now: Instant) {
        let mut known = self.known();
        known.retain(|_, (_, since)| now.saturating_duration_since(*since) < self.valid);
        if known.len() >= self.most {
            let oldest = known.iter().min_by_key(|(_, (_, since))| *since).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        known.insert(Secret::of(key).as_str().to_owned(), (link.to_owned(), now));
    }

    /// Whether a key opens a link.
    pub(super) fn open(&self, key: &str, link: &str, now: Instant) -> bool {
        let known = self.known();
        let found = known.get(Secret::of(key).as_str());
        found.is_some_and(|(of, since)| of == link && now.saturating_duration_since(*since) < self.valid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_its_link_for_a_time() {
        let keys = Keys::new(&ShareLimits { keys: 2, key_seconds: 10, ..ShareLimits::default() });
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        keys.add("key", "link", at(0));
        assert!(keys.open("key", "link", at(9)));
        assert!(
            !keys.open("key", "link", at(10)) && !keys.open("key", "other", at(0)) && !keys.open("", "link", at(0))
        );
        keys.add("second", "link", at(1));
        keys.add("third", "link", at(2));
        assert!(!keys.open("key", "link", at(2)) && keys.open("second", "link", at(2)));
    }
}
