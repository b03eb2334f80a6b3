//! Whether the store can be written, checked once for all who ask at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::ingest::Sessions;
use crate::store::StoreError;

/// Why nothing can be stored.
#[derive(Clone, Debug)]
pub(super) struct NotReady {
    /// A word for programs.
    pub(super) code: &'static str,
    /// The reason, for people.
    pub(super) reason: String,
}

/// The store's readiness. A check writes to the disk, and two at once could take each other's file.
#[derive(Debug, Default)]
pub(super) struct Readiness(Arc<Mutex<Option<Check>>>);

/// A check of the store.
#[derive(Debug)]
struct Check {
    begun: Instant,
    ended: Instant,
    found: Result<(), NotReady>,
}

impl Check {
    /// Whether the check answers somebody who asked at a time: it began later, or it found the store ready a moment ago. A
    /// failure is checked again, so that an operator who mends it sees that at once.
    fn answers(&self, asked: Instant, sessions: &Sessions) -> bool {
        let shared = Duration::from_millis(sessions.limits().probe_millis);
        self.begun >= asked || self.found.is_ok() && self.ended.elapsed() < shared
    }
}

impl Readiness {
    /// Checks that the store can be written now, or a moment ago.
    pub(super) async fn check(&self, sessions: &Arc<Sessions>) -> Result<(), NotReady> {
        let (last, sessions) = (Arc::clone(&self.0), Arc::clone(sessions));
        let asked = Instant::now();
        // On a task of its own: it ends, and with it the time in which others wait, even if the client disconnects.
        let checked = tokio::spawn(async move {
            let mut last = last.lock_owned().await;
            if let Some(known) = last.as_ref().filter(|last| last.answers(asked, &sessions)) {
                return known.found.clone();
            }
            let begun = Instant::now();
            let probed = tokio::task::spawn_blocking(move || sessions.check_store()).await;
            let found = match probed {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(NotReady::of(&error)),
                Err(error) => Err(NotReady { code: "internal", reason: error.to_string() }),
            };
            *last = Some(Check { begun, ended: Instant::now(), found: found.clone() });
            found
        });
        checked.await.unwrap_or_else(|error| Err(NotReady { code: "internal", reason: error.to_string() }))
    }
}

impl NotReady {
    fn of(error: &StoreError) -> Self {
        let code = if matches!(error, StoreError::Full | StoreError::DiskFull) { "full" } else { "store" };
        Self { code, reason: error.to_string() }
    }
}
