//! What is deleted by itself: uploads that stopped, links that expired, traces that no link leads to.
//!
//! Ages are counted by the clock of retention, which never jumps: a computer whose clock is wrong refuses expired links, but
//! deletes nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::layout::{content_path, link_path};
use super::part::Turn;
use super::upload::UploadState;
use super::{Gone, Link, ShareError, ShareResult, Shares, Why};
use crate::access::audit;
use crate::store::StoreError;

impl Shares {
    /// Deletes what is due. `now_us` is the time of the clock of retention, in microseconds since the epoch.
    pub fn sweep(&self, now_us: i64) {
        self.sweep_uploads(now_us);
        let done = self.sweep_links(now_us).and_then(|()| self.sweep_traces(now_us));
        if let Err(error) = done {
            // The next sweep tries again.
            tracing::error!("shared traces can't be looked through: {error}");
        }
    }

    fn sweep_uploads(&self, now_us: i64) {
        let limits = &self.limits;
        let is_due = |state: &UploadState| {
            let most = if state.received == 0 { limits.empty_seconds } else { limits.idle_seconds };
            state.quiet_for(now_us).is_some_and(|quiet| quiet.as_secs() >= most)
        };
        let uploads: Vec<_> = self.state().uploads.values().cloned().collect();
        for upload in uploads {
            match self.give_up(&upload, Duration::ZERO, is_due) {
                Ok(false) => {}
                Ok(true) => {
                    audit::upload_given_up(&upload.record.owner, upload.record.bytes);
                    continue;
                }
                Err(error) => {
                    tracing::error!(upload = upload.id, "an upload that is over can't be removed: {error}");
                    continue;
                }
            }
            let is_to_be_noted = {
                let state = upload.state();
                let is_quiet = state.idle().is_some_and(|idle| idle.as_secs() >= limits.note_seconds);
                is_quiet && !state.is_quiet_noted()
            };
            if is_to_be_noted
                && let Ok((_turn, _)) = Turn::take(Arc::clone(&upload), Duration::ZERO)
                && let Err(error) = upload.note_quiet(now_us)
            {
                // After a restart, its time begins anew.
                tracing::debug!(upload = upload.id, "its pause can't be noted: {error}");
            }
        }
    }

    fn sweep_links(&self, now_us: i64) -> ShareResult {
        self.load()?;
        self.read_again();
        let due: Vec<String> = {
            let state = self.state();
            let due = state.links.iter().filter(|(_, link)| self.is_due(link, now_us));
            due.map(|(hash, _)| hash.clone()).collect()
        };
        for hash in due {
            let _alone = self.claims.change(&hash);
            // It may have been changed since.
            let found = self.state().links.get(&hash).cloned();
            let Some(link) = found.filter(|link| self.is_due(link, now_us)) else { continue };
            match link.expires_us.filter(|_| link.gone.is_none()) {
                None => {
                    self.blobs.remove(&[link_path(&hash)])?;
                    self.state().links.remove(&hash);
                }
                Some(at_us) => {
                    audit::link_expired(&hash, &link.owner);
                    self.replace(&hash, link.ended(Gone { why: Why::Expired, at_us }))?;
                    self.remove_unlinked(&link.content)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a link is to be ended, or to be forgotten.
    fn is_due(&self, link: &Link, now_us: i64) -> bool {
        match link.gone {
            Some(gone) => is_older(gone.at_us, now_us, self.limits.gone_seconds),
            None => link.expires_us.is_some_and(|at_us| now_us >= at_us),
        }
    }

    /// Reads links again that could not be read, or of which it is not known whether they were stored.
    fn read_again(&self) {
        let hashes: Vec<String> = self.state().unreadable.iter().cloned().collect();
        for hash in hashes {
            let _alone = self.claims.change(&hash);
            let link = match self.read_link(&hash) {
                Ok(link) => Some(link),
                Err(ShareError::Store(StoreError::Missing)) => None,
                Err(_) => continue,
            };
            let mut state = self.state();
            state.unreadable.remove(&hash);
            if let Some(link) = link {
                state.links.entry(hash).or_insert(link);
            }
        }
    }

    fn sweep_traces(&self, now_us: i64) -> ShareResult {
        let mut state = self.state();
        let linked: HashSet<&str> = state.links.values().map(|link| link.content.as_str()).collect();
        let contents = state.traces.keys().chain(&state.doubtful);
        let unlinked: HashSet<String> =
            contents.filter(|content| !linked.contains(content.as_str())).cloned().collect();
        state.orphans.retain(|content, _| unlinked.contains(content));
        for content in unlinked {
            state.orphans.entry(content).or_insert(now_us);
        }
        let due = state.orphans.iter().filter(|(_, since)| is_older(**since, now_us, self.limits.orphan_seconds));
        let due: Vec<String> = due.map(|(content, _)| content.clone()).collect();
        drop(state);
        due.iter().try_for_each(|content| self.remove_unlinked(content))
    }

    /// Deletes a trace, unless a link leads to it, or whoever makes one does so.
    pub(super) fn remove_unlinked(&self, content: &str) -> ShareResult {
        let Some(_alone) = self.claims.delete(content) else { return Ok(()) };
        {
            let mut state = self.state();
            let is_there = state.traces.contains_key(content) || state.doubtful.contains(content);
            // Before all links are known, one of those may lead to it.
            let is_kept = !state.is_loaded || !state.unreadable.is_empty();
            if !is_there || is_kept || state.links.values().any(|link| link.content == content) {
                return Ok(());
            }
            state.doubtful.insert(content.to_owned());
        }
        self.blobs.remove(&[content_path(content)])?;
        let mut state = self.state();
        state.traces.remove(content);
        state.doubtful.remove(content);
        state.orphans.remove(content);
        Ok(())
    }
}

/// Whether a moment is at least so many seconds before another one, both in microseconds since the epoch.
fn is_older(moment_us: i64, now_us: i64, seconds: u64) -> bool {
    u64::try_from(now_us.saturating_sub(moment_us)).is_ok_and(|age_us| age_us / 1_000_000 >= seconds)
}
