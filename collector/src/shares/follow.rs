//! Which uploads are checked while they arrive.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::Shares;

/// An upload of which nothing came for so long does not keep others from being checked while they arrive.
const PAUSE: Duration = Duration::from_secs(2);

impl Shares {
    /// Checks what has arrived of an upload before its end, if a place is free. Never fails: the end checks the rest.
    pub fn follow(&self, id: &str, owner: &str) {
        let Ok(upload) = self.upload(id, owner) else { return };
        if let Err(error) = upload.follow(|| self.place()) {
            // The end says it to the sender.
            tracing::debug!(upload = id, "a part can't be checked yet: {error}");
        }
    }

    /// Returns a place for an upload that is checked while it arrives; `None` if all are taken. An upload that has paused
    /// gives up its own.
    fn place(&self) -> Option<OwnedSemaphorePermit> {
        let free = || Arc::clone(&self.follows).try_acquire_owned().ok();
        free().or_else(|| {
            let uploads: Vec<_> = self.state().uploads.values().cloned().collect();
            uploads
                .iter()
                .filter(|upload| upload.state().idle().is_some_and(|idle| idle >= PAUSE))
                .for_each(|upload| upload.forget());
            free()
        })
    }
}
