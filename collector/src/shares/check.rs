//! Uploads are checked while they arrive: read, and written anew.
//!
//! So little is left to do at the end of a long upload. Nothing depends on it: an upload that nobody followed, or that an
//! earlier server received, is checked at its end.

use std::sync::Arc;

use format::recording::{Transcribed, Transcriber};
use tokio::sync::OwnedSemaphorePermit;
use trace::limits::ImportLimits;

use super::layout::part_name;
use super::{ShareError, ShareResult};
use crate::store::files::{Files, OpenFile};
use crate::store::{Hash, Hasher};

/// The name of the new recording in the upload's folder, until it is complete.
const WHOLE: &str = "whole";
/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// Bytes that are gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// What a check asks of its upload.
pub(super) trait Arriving {
    /// Returns where its files are.
    fn files(&self) -> &Arc<dyn Files>;
    /// Returns the path of a file in its folder.
    fn path(&self, name: &str) -> String;
    /// Returns the announced hash, if there is one.
    fn hash(&self) -> Option<&str>;
    /// Returns how many bytes have arrived.
    fn received(&self) -> u64;
    /// Returns whether it is finished or given up.
    fn is_over(&self) -> bool;
}

/// A file that is removed when this is dropped, unless it was moved away by then.
#[derive(Debug)]
pub(super) struct Scratch {
    files: Arc<dyn Files>,
    pub(super) path: String,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed is replaced, or removed with the upload.
        let _ = self.files.remove(&self.path);
    }
}

/// An upload of which the first bytes were checked. It holds the names of the trace.
#[derive(Debug)]
pub(super) struct Check {
    transcriber: Transcriber,
    file: Box<dyn OpenFile>,
    scratch: Scratch,
    /// The bytes of the upload that were read: always whole parts.
    read: u64,
    /// Hashes what was read, if the sender announced a hash.
    arrived: Option<Hasher>,
    /// What is to be written next.
    out: Vec<u8>,
    bytes: u64,
    written: Hasher,
    /// The right to stay in memory while nothing arrives.
    _place: Option<OwnedSemaphorePermit>,
}

/// A recording that was written anew, in the upload's folder.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) scratch: Scratch,
    pub(super) hash: Hash,
    pub(super) bytes: u64,
    pub(super) said: Transcribed,
}

impl Check {
    /// Begins at the first byte of an upload.
    pub(super) fn begin(upload: &impl Arriving, place: Option<OwnedSemaphorePermit>) -> ShareResult<Self> {
        let scratch = Scratch { files: Arc::clone(upload.files()), path: upload.path(WHOLE) };
        Ok(Self {
            transcriber: Transcriber::new(ImportLimits::default()),
            file: upload.files().create(&scratch.path)?,
            scratch,
            read: 0,
            arrived: upload.hash().map(|_| Hasher::default()),
            out: Vec::new(),
            bytes: 0,
            written: Hasher::default(),
            _place: place,
        })
    }

    /// Reads the parts that arrived since, ahead of the end, and makes what was written durable, which the end need not wait
    /// for then.
    pub(super) fn follow(&mut self, upload: &impl Arriving) -> ShareResult {
        self.read_new_parts(upload)?;
        self.flush()?;
        Ok(self.file.sync()?)
    }

    /// Reads the parts that arrived since. Ends early if the upload is given up.
    pub(super) fn read_new_parts(&mut self, upload: &impl Arriving) -> ShareResult {
        while self.read < upload.received() {
            if upload.is_over() {
                return Err(ShareError::NoUpload);
            }
            let part = upload.path(&part_name(self.read));
            let mut at = 0;
            loop {
                let bytes = upload.files().read(&part, at, READ_BYTES)?;
                if bytes.is_empty() {
                    break;
                }
                at += bytes.len() as u64;
                self.add(&bytes)?;
            }
            if at == 0 {
                return Err(ShareError::Incomplete(self.read));
            }
            self.read += at;
        }
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> ShareResult {
        if let Some(arrived) = &mut self.arrived {
            arrived.update(bytes);
        }
        self.transcriber.push(bytes, &mut self.out)?;
        if self.out.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> ShareResult {
        self.written.update(&self.out);
        self.bytes += self.out.len() as u64;
        self.file.append(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Ends after the last part. Fails if the upload is not what was announced.
    pub(super) fn end(mut self, upload: &impl Arriving) -> ShareResult<Whole> {
        let arrived = self.arrived.take().map(|arrived| arrived.finish().to_string());
        if arrived.as_deref() != upload.hash() {
            return Err(ShareError::Hash);
        }
        let transcriber = std::mem::replace(&mut self.transcriber, Transcriber::new(ImportLimits::default()));
        let said = transcriber.finish(&mut self.out)?;
        self.flush()?;
        self.file.sync()?;
        Ok(Whole { scratch: self.scratch, hash: self.written.finish(), bytes: self.bytes, said })
    }
}
