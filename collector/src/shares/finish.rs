//! The end of an upload: it is read, written anew, and gets its link.

use std::sync::{Arc, PoisonError};

use shared::limits::ImportLimits;
use shared::recording::{Transcribed, Transcriber};

use super::layout::{content_name, content_path};
use super::upload::{Turn, Upload};
use super::{Link, ShareError, ShareResult, Shares, after};
use crate::clock::now_us;
use crate::store::{Hash, Hasher};

/// The name of the new recording in the upload's folder, until it is complete.
const WHOLE: &str = "whole";
/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// Bytes that are gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;
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

/// A recording that was written anew, in the upload's folder.
struct Whole {
    path: String,
    hash: Hash,
    bytes: u64,
    said: Transcribed,
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
        let whole = self.transcribe(&upload).inspect_err(|error| {
            // What is wrong with these bytes will not become right; for a full disk the sender may try again.
            if matches!(error, ShareError::Refused(_) | ShareError::Hash) {
                let _ = self.remove_upload(id);
            }
        })?;
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

    /// Returns the link of an upload that was finished already.
    fn finished(&self, id: &str, owner: &str) -> Option<Finished> {
        let state = self.state();
        let (_, hash) = state.finished.iter().find(|(finished, _)| finished == id)?;
        let link = state.links.get(hash).filter(|link| link.owner == owner)?;
        Some(Finished { hash: hash.clone(), link: Arc::clone(link), is_new: false })
    }

    /// Reads an upload and writes it anew.
    fn transcribe(&self, upload: &Upload) -> ShareResult<Whole> {
        let path = upload.path(WHOLE);
        let mut file = self.files.create(&path)?;
        let mut transcriber = Transcriber::new(ImportLimits::default());
        let (mut arrived, mut hasher, mut bytes) = (Hasher::default(), Hasher::default(), 0);
        let mut out = Vec::new();
        let mut flush = |out: &mut Vec<u8>| -> ShareResult {
            hasher.update(out);
            bytes += out.len() as u64;
            file.append(out)?;
            out.clear();
            Ok(())
        };
        for (part, length) in upload.parts(&*self.files)? {
            let mut at = 0;
            while at < length {
                let read = self.files.read(&part, at, READ_BYTES)?;
                if read.is_empty() {
                    break;
                }
                at += read.len() as u64;
                arrived.update(&read);
                transcriber.push(&read, &mut out)?;
                if out.len() >= WRITE_BYTES {
                    flush(&mut out)?;
                }
            }
        }
        if upload.record.hash.as_ref().is_some_and(|announced| *announced != arrived.finish().to_string()) {
            return Err(ShareError::Hash);
        }
        let said = transcriber.finish(&mut out)?;
        flush(&mut out)?;
        file.sync()?;
        Ok(Whole { path, hash: hasher.finish(), bytes, said })
    }
}
