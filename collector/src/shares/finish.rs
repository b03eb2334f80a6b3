//! The end of an upload: it is read, written anew, and gets its link.
//!
//! Reading takes a processor, and storing takes an object store, perhaps for minutes. So they are two steps, and who does one
//! keeps nobody from doing the other.

use std::sync::Arc;
use std::time::Duration;

use super::check::{Check, Whole};
use super::layout::{content_name, content_path};
use super::part::Turn;
use super::upload::{Following, Upload};
use super::{Link, Owner, ShareError, ShareResult, Shares, after};
use crate::access::Denied;
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

/// An upload whose bytes were read and written anew.
#[derive(Debug)]
pub struct Checked {
    // Removed before the turn ends.
    whole: Whole,
    turn: Turn,
}

/// What a request to finish an upload finds.
#[derive(Debug)]
pub enum Ending {
    /// It was finished before.
    Finished(Finished),
    /// It is to be stored.
    Checked(Box<Checked>),
}

impl Shares {
    /// Finishes an upload: from here on, its link opens. A request that is repeated, because its answer was lost, returns the
    /// same link. This is [`Self::check_upload`] and [`Self::publish`].
    pub fn finish(&self, id: &str, owner: Owner<'_>) -> ShareResult<Finished> {
        match self.check_upload(id, owner.name)? {
            Ending::Finished(finished) => Ok(finished),
            Ending::Checked(checked) => self.publish(*checked, owner, || Ok(())),
        }
    }

    /// Returns what the request that finishes an upload holds: another one waits for it, and finds its outcome.
    pub fn finishing(&self, id: &str, owner: &str) -> Arc<tokio::sync::Mutex<()>> {
        self.upload(id, owner).map(|upload| Arc::clone(&upload.finishing)).unwrap_or_default()
    }

    /// Reads an upload that is complete, and writes it anew.
    pub fn check_upload(&self, id: &str, owner: &str) -> ShareResult<Ending> {
        let turn = Duration::from_millis(self.limits.turn_millis);
        let taken = self.upload(id, owner).and_then(|upload| Turn::take(upload, turn));
        let (turn, received) = match taken {
            // It is forgotten last.
            Err(ShareError::NoUpload) => {
                return self.finished(id, owner).map(Ending::Finished).ok_or(ShareError::NoUpload);
            }
            taken => taken?,
        };
        let upload = turn.upload();
        if received != upload.record.bytes {
            return Err(ShareError::Incomplete(received));
        }
        let whole = {
            let mut following = upload.following();
            let whole = self.whole(upload, following.take());
            // Nobody writes to what was made.
            *following = Following::Over;
            whole
        };
        match whole {
            Ok(whole) => Ok(Ending::Checked(Box::new(Checked { whole, turn }))),
            Err(error) => {
                // What is wrong with these bytes will not become right; for a full disk the sender may try again.
                if matches!(error, ShareError::Refused(_) | ShareError::Hash) {
                    let _ = self.give_up(upload, Duration::ZERO, |_| true);
                }
                Err(error)
            }
        }
    }

    /// Checks the rest of an upload.
    fn whole(&self, upload: &Upload, followed: Option<Check>) -> ShareResult<Whole> {
        let mut check = match followed {
            Some(check) => check,
            None => Check::begin(upload, None)?,
        };
        check.read_new_parts(upload)?;
        check.end(upload)
    }

    /// Stores an upload that was checked, and makes its link if `may` still allows it then.
    pub fn publish(
        &self,
        checked: Checked,
        owner: Owner<'_>,
        may: impl FnOnce() -> Result<(), Denied>,
    ) -> ShareResult<Finished> {
        let content = content_name(checked.whole.hash);
        let published = self.publish_as(&content, checked, owner, may);
        // Perhaps nothing leads to it: this failed, or the link was deleted at once. A store that is away is asked later.
        if !matches!(published, Err(ShareError::Away(_)))
            && let Err(error) = self.remove_unlinked(&content)
        {
            tracing::warn!("a trace without a link can't be deleted yet: {error}");
        }
        published
    }

    fn publish_as(
        &self,
        content: &str,
        Checked { whole, turn }: Checked,
        owner: Owner<'_>,
        may: impl FnOnce() -> Result<(), Denied>,
    ) -> ShareResult<Finished> {
        let upload = turn.upload();
        self.hold_whole(upload, whole.bytes, owner)?;
        let _kept = self.claims.keep(content);
        if !self.state().is_stored(content) {
            let taken = self.blobs.take(&whole.scratch.path, whole.bytes, &content_path(content));
            self.state().note_stored(content, taken.as_ref().ok().map(|()| whole.bytes));
            taken?;
        }
        may()?;
        turn.begin_link()?;
        let record = &upload.record;
        let now = now_us();
        let link = Link {
            content: content.to_owned(),
            bytes: whole.bytes,
            name: if record.name.is_empty() { whole.said.name.clone() } else { record.name.clone() },
            events: whole.said.events,
            created_us: now,
            expires_us: record.expires_seconds.map(|seconds| after(now, seconds)),
            delete: record.delete.clone(),
            password: record.password.clone(),
            is_public: record.is_public,
            owner: record.owner.clone(),
            gone: None,
        };
        let made = {
            let _alone = self.claims.change(&record.link);
            let made = self.replace(&record.link, link);
            let mut state = self.state();
            if made.is_ok() {
                state.forget_upload(&upload.id, &record.link);
            } else {
                // It may be there: the next sweep looks.
                state.unreadable.insert(record.link.clone());
            }
            made
        };
        turn.end_link(made.is_ok());
        Ok(Finished { hash: record.link.clone(), link: made?, is_new: true })
    }

    /// Returns the link of an upload that was finished already.
    fn finished(&self, id: &str, owner: &str) -> Option<Finished> {
        let state = self.state();
        let (_, hash) = state.finished.iter().find(|(finished, _)| finished == id)?;
        let link = state.links.get(hash).filter(|link| link.owner == owner)?;
        Some(Finished { hash: hash.clone(), link: Arc::clone(link), is_new: false })
    }
}

impl super::State {
    /// Forgets an upload that has its link, but not that it has.
    fn forget_upload(&mut self, id: &str, link: &str) {
        self.unreadable.remove(link);
        if self.finished.len() >= REMEMBERED {
            self.finished.remove(0);
        }
        self.finished.push((id.to_owned(), link.to_owned()));
        self.uploads.remove(id);
    }
}
