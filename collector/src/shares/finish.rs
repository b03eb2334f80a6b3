//! The end of an upload: it is read, written anew, and gets its link.

use std::sync::{Arc, PoisonError};

use super::check::{Check, Whole};
use super::layout::{content_name, content_path};
use super::upload::{Following, Turn, Upload};
use super::{Link, ShareError, ShareResult, Shares, after};
use crate::clock::now_us;

/// Finished uploads that are remembered, so that their end can be requested again.
const REMEMBERED: usize = 1_000;

/// An upload that was finished.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The hash of the link's token.
    pub hash: String,
    /// The link.
    pub link: Arc<Link>,
    /// Whether this request finished it, and not an earlier one.
    pub is_new: bool,
}

impl Shares {
    /// Finishes an upload: from here on, its link opens. A request that is repeated, because its answer was lost, returns the
    /// same link.
    pub fn finish(&self, id: &str, owner: &str) -> ShareResult<Finished> {
        if let Some(finished) = self.finished(id, owner) {
            return Ok(finished);
        }
        let upload = self.upload(id, owner)?;
        let (_turn, received) = Turn::take(Arc::clone(&upload))?;
        if received != upload.record.bytes {
            return Err(ShareError::Incomplete(received));
        }
        let mut following = upload.following();
        let checked = self.whole(&upload, following.take());
        let whole = match checked {
            Ok(whole) => whole,
            Err(error) => {
                drop(following);
                // What is wrong with these bytes will not become right; for a full disk the sender may try again.
                if matches!(error, ShareError::Refused(_) | ShareError::Hash) {
                    let _ = self.remove_upload(id);
                }
                return Err(error);
            }
        };
        // No trace is deleted between the moment it is stored and the moment its link is.
        let kept = self.traces.read().unwrap_or_else(PoisonError::into_inner);
        let content = content_name(whole.hash);
        if self.state().traces.contains_key(&content) {
            self.files.remove(&whole.path)?;
        } else {
            self.shelf.take(&whole.path, whole.bytes, &content_path(&content))?;
            self.state().traces.insert(content.clone(), whole.bytes);
        }
        let record = &upload.record;
        let now = now_us();
        let link = Link {
            content: content.clone(),
            bytes: whole.bytes,
            name: if record.name.is_empty() { whole.said.name } else { record.name.clone() },
            events: whole.said.events,
            created_us: now,
            expires_us: record.expires_seconds.map(|seconds| after(now, seconds)),
            delete: record.delete.clone(),
            password: record.password.clone(),
            is_public: record.is_public,
            owner: record.owner.clone(),
            gone: None,
        };
        let link = self.replace(&record.link, link)?;
        drop(kept);
        *following = Following::Over;
        drop(following);
        let mut state = self.state();
        state.orphans.remove(&content);
        if state.finished.len() >= REMEMBERED {
            state.finished.remove(0);
        }
        state.finished.push((id.to_owned(), record.link.clone()));
        drop(state);
        self.remove_upload(id)?;
        Ok(Finished { hash: record.link.clone(), link, is_new: true })
    }

    /// Checks the rest of an upload.
    fn whole(&self, upload: &Upload, followed: Option<Check>) -> ShareResult<Whole> {
        let mut check = match followed {
            Some(check) => check,
            None => Check::begin(&*self.files, upload, None)?,
        };
        check.go_on(&*self.files, upload)?;
        check.end(upload)
    }

    /// Returns the link of an upload that was finished already.
    fn finished(&self, id: &str, owner: &str) -> Option<Finished> {
        let state = self.state();
        let (_, hash) = state.finished.iter().find(|(finished, _)| finished == id)?;
        let link = state.links.get(hash).filter(|link| link.owner == owner)?;
        Some(Finished { hash: hash.clone(), link: Arc::clone(link), is_new: false })
    }
}
