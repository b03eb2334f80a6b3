//! The room for shared traces, and who may take how much of it.
//!
//! What has arrived counts, and a few parts more for an upload that goes on: not what was announced, as that costs nobody
//! anything. So an upload asks for room with each part. Where there is none, an upload that has paused gives way.

use std::cmp::Reverse;
use std::time::Duration;

use super::upload::{Upload, UploadState};
use super::{Owner, ShareError, ShareResult, Shares, State};
use crate::access::audit;

impl State {
    /// Returns the bytes that traces and uploads take together.
    pub(super) fn used(&self) -> u64 {
        let uploads = self.uploads.values().map(|upload| upload.held());
        self.traces.values().copied().chain(uploads).fold(0, u64::saturating_add)
    }

    /// Returns the bytes that an owner's links and uploads take.
    fn used_by(&self, owner: &str) -> u64 {
        let links = self.links.values().filter(|link| link.owner == owner).map(|link| link.bytes);
        links.fold(self.unfinished_of(owner).1, u64::saturating_add)
    }

    /// Returns the number of an owner's uploads, and the bytes that they take.
    fn unfinished_of(&self, owner: &str) -> (usize, u64) {
        let uploads = self.uploads.values().filter(|upload| upload.record.owner == owner);
        uploads.fold((0, 0), |(count, bytes), upload| (count + 1, bytes.saturating_add(upload.held())))
    }
}

impl Shares {
    /// Returns the most bytes that unfinished uploads of one token may take.
    pub(super) fn most_unfinished(&self) -> u64 {
        self.terms.bytes / self.limits.unfinished_share
    }

    /// Checks whether another upload may begin, and whether all of it would fit now.
    pub(super) fn check_offer(&self, state: &State, bytes: u64, owner: Owner<'_>) -> ShareResult {
        let (uploads, _) = state.unfinished_of(owner.name);
        if uploads >= self.limits.uploads_of_token || state.uploads.len() >= self.limits.uploads {
            return Err(ShareError::Busy);
        }
        if state.links.len() + state.uploads.len() >= self.limits.links {
            return Err(ShareError::Full);
        }
        self.check_growth(state, bytes, owner)
    }

    /// Checks whether an unfinished upload of an owner may take so many bytes more.
    fn check_growth(&self, state: &State, bytes: u64, owner: Owner<'_>) -> ShareResult {
        let most = self.most_unfinished();
        if state.unfinished_of(owner.name).1.saturating_add(bytes) > most {
            return Err(ShareError::Unfinished(most));
        }
        self.check_room(state, bytes, owner)
    }

    fn check_room(&self, state: &State, bytes: u64, owner: Owner<'_>) -> ShareResult {
        if let Some(quota) = owner.bytes.filter(|quota| state.used_by(owner.name).saturating_add(bytes) > *quota) {
            return Err(ShareError::Quota(quota));
        }
        if state.used().saturating_add(bytes) > self.terms.bytes {
            return Err(ShareError::Full);
        }
        Ok(())
    }

    /// Lets an upload take the room for its next part, and for those after it if there is some.
    pub(super) fn hold_part(&self, upload: &Upload, received: u64, owner: Owner<'_>) -> ShareResult {
        let most = |parts: u64| {
            let bytes = parts.saturating_mul(self.limits.part_bytes);
            upload.record.bytes.min(received.saturating_add(bytes))
        };
        match self.hold(upload, most(self.limits.parts_ahead), owner, Self::check_growth) {
            Err(_) if upload.held() >= most(1) => Ok(()),
            held => held,
        }
    }

    /// Lets an upload take the room of the trace that it becomes.
    pub(super) fn hold_whole(&self, upload: &Upload, bytes: u64, owner: Owner<'_>) -> ShareResult {
        self.hold(upload, bytes, owner, Self::check_room)
    }

    /// Lets an upload take room up to so many bytes in all, if a check allows the growth.
    fn hold(
        &self,
        upload: &Upload,
        bytes: u64,
        owner: Owner<'_>,
        check: impl Fn(&Self, &State, u64, Owner<'_>) -> ShareResult,
    ) -> ShareResult {
        self.with_room(bytes.saturating_sub(upload.held()), || {
            let state = self.state();
            let held = upload.held();
            if bytes > held {
                check(self, &state, bytes - held, owner)?;
                upload.hold(bytes);
            }
            Ok(())
        })
    }

    /// Tries something that needs so many bytes of room, again if others give way.
    pub(super) fn with_room<T>(&self, bytes: u64, mut attempt: impl FnMut() -> ShareResult<T>) -> ShareResult<T> {
        match attempt() {
            Err(ShareError::Full) if self.make_room(bytes) => attempt(),
            done => done,
        }
    }

    /// Gives uploads up that have paused, those for longest first, until so many bytes are free. Does nothing if that is not
    /// enough. Returns whether it was.
    fn make_room(&self, bytes: u64) -> bool {
        let (used, uploads) = {
            let state = self.state();
            (state.used(), state.uploads.values().cloned().collect::<Vec<_>>())
        };
        let mut missing = used.saturating_add(bytes).saturating_sub(self.terms.bytes);
        let pause = Duration::from_secs(self.limits.yield_seconds);
        let idle = |upload: &Upload| upload.state().idle().filter(|idle| *idle >= pause);
        let mut paused: Vec<_> = uploads.iter().filter_map(|upload| Some((idle(upload)?, upload))).collect();
        paused.sort_by_key(|(idle, _)| Reverse(*idle));
        if paused.iter().map(|(_, upload)| upload.held()).fold(0, u64::saturating_add) < missing {
            return false;
        }
        for (_, upload) in paused {
            let held = upload.held();
            let is_paused = |state: &UploadState| state.idle().is_some_and(|idle| idle >= pause);
            // Those whose files can't be removed count no more, and are removed at the next start.
            if missing > 0 && self.give_up(upload, Duration::ZERO, is_paused).unwrap_or(true) {
                audit::upload_given_up(&upload.record.owner, upload.record.bytes);
                missing = missing.saturating_sub(held);
            }
        }
        missing == 0
    }
}
