//! What is deleted by itself: uploads that stopped, links that expired, traces that no link leads to.
//!
//! Ages are counted by the clock of retention, which never jumps: a computer whose clock is wrong refuses expired links, but
//! deletes nothing.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use super::layout::{content_path, link_path};
use super::{Gone, Link, ShareResult, Shares, Why};
use crate::access::audit;

impl Shares {
    /// Deletes what is due. `now_us` is the time of the clock of retention, in microseconds since the epoch.
    pub fn sweep(&self, now_us: i64) {
        let done =
            self.sweep_uploads().and_then(|()| self.sweep_links(now_us)).and_then(|()| self.sweep_traces(now_us));
        if let Err(error) = done {
            // The next sweep tries again.
            tracing::error!("shared traces can't be looked through: {error}");
        }
    }

    fn sweep_uploads(&self) -> ShareResult {
        let uploads: Vec<_> =
            self.state().uploads.iter().map(|(id, upload)| (id.clone(), Arc::clone(upload))).collect();
        for (id, upload) in uploads {
            if upload.idle().is_some_and(|idle| idle.as_secs() >= self.limits.idle_seconds) {
                audit::upload_given_up(&upload.record.owner, upload.record.bytes);
                self.remove_upload(&id)?;
            }
        }
        Ok(())
    }

    fn sweep_links(&self, now_us: i64) -> ShareResult {
        if !self.state().is_loaded {
            self.load()?;
        }
        let links: Vec<(String, Arc<Link>)> =
            self.state().links.iter().map(|(hash, link)| (hash.clone(), Arc::clone(link))).collect();
        for (hash, link) in links {
            // It may have been changed since.
            if !self.state().links.get(&hash).is_some_and(|now| Arc::ptr_eq(now, &link)) {
                continue;
            }
            match (link.gone, link.expires_us) {
                (Some(gone), _) if is_older(gone.at_us, now_us, self.limits.gone_seconds) => {
                    self.shelf.remove(&link_path(&hash))?;
                    self.state().links.remove(&hash);
                }
                (None, Some(at_us)) if now_us >= at_us => {
                    audit::link_expired(&hash, &link.owner);
                    self.replace(&hash, link.ended(Gone { why: Why::Expired, at_us }))?;
                    self.remove_unlinked(&link.content)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn sweep_traces(&self, now_us: i64) -> ShareResult {
        let mut state = self.state();
        let linked: HashSet<&str> = state.links.values().map(|link| link.content.as_str()).collect();
        let unlinked: HashSet<String> =
            state.traces.keys().filter(|content| !linked.contains(content.as_str())).cloned().collect();
        state.orphans.retain(|content, _| unlinked.contains(content));
        for content in unlinked {
            state.orphans.entry(content).or_insert(now_us);
        }
        let due = state.orphans.iter().filter(|(_, since)| is_older(**since, now_us, self.limits.orphan_seconds));
        let due: Vec<String> = due.map(|(content, _)| content.clone()).collect();
        drop(state);
        due.iter().try_for_each(|content| self.remove_unlinked(content))
    }

    /// Deletes a trace, unless a link leads to it.
    pub(super) fn remove_unlinked(&self, content: &str) -> ShareResult {
        let _alone = self.traces.write().unwrap_or_else(PoisonError::into_inner);
        let state = self.state();
        // Before all links are known, one of those may lead to it.
        if !state.is_loaded || !state.unreadable.is_empty() || state.links.values().any(|link| link.content == content)
        {
            return Ok(());
        }
        drop(state);
        self.shelf.remove(&content_path(content))?;
        let mut state = self.state();
        state.traces.remove(content);
        state.orphans.remove(content);
        Ok(())
    }
}

/// Whether a moment is at least so many seconds before another one, both in microseconds since the epoch.
fn is_older(moment_us: i64, now_us: i64, seconds: u64) -> bool {
    u64::try_from(now_us.saturating_sub(moment_us)).is_ok_and(|age_us| age_us / 1_000_000 >= seconds)
}
