//! The parts of an upload.
//!
//! Each part is a file of its own, which appears in one step when all of it is durable. So an upload goes on where it stood
//! after any interruption, of the network or of the server.

use std::sync::Arc;
use std::time::Duration;

use super::check::Arriving;
use super::layout::part_name;
use super::upload::{Phase, Progress, Upload};
use super::{ShareError, ShareResult};
use crate::store::files::OpenFile;

/// The ending of a part that is not complete.
const NEW: &str = ".new";

/// The right to write to an upload, which one request has at a time. If the upload is given up meanwhile, its files are removed
/// when the turn ends, and not while somebody writes them.
#[derive(Debug)]
pub(super) struct Turn(Arc<Upload>);

impl Turn {
    /// Takes the turn, and waits for it at most for a time. Returns it with the bytes that were received.
    pub(super) fn take(upload: Arc<Upload>, most: Duration) -> ShareResult<(Self, u64)> {
        let mut state = upload.wait_while(most, |state| state.is_busy && state.phase != Phase::Over);
        if state.phase == Phase::Over {
            return Err(ShareError::NoUpload);
        }
        if state.is_busy {
            return Err(ShareError::Taken);
        }
        state.is_busy = true;
        let received = state.received;
        drop(state);
        Ok((Self(upload), received))
    }

    /// Returns the upload.
    pub(super) fn upload(&self) -> &Arc<Upload> {
        &self.0
    }

    /// Begins to make the link, unless the upload was given up.
    pub(super) fn begin_link(&self) -> ShareResult {
        let mut state = self.0.state();
        if state.phase == Phase::Over {
            return Err(ShareError::NoUpload);
        }
        state.phase = Phase::Linking;
        Ok(())
    }

    /// Ends to make the link: the upload is over if there is one, and else can be finished again.
    pub(super) fn end_link(&self, is_made: bool) {
        self.0.state().phase = if is_made { Phase::Over } else { Phase::Open };
        self.0.wake();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let is_over = {
            let mut state = self.0.state();
            state.is_busy = false;
            state.phase == Phase::Over
        };
        self.0.wake();
        if is_over && let Err(error) = self.0.clear() {
            tracing::error!(upload = self.0.id, "an upload that is over can't be removed: {error}");
        }
    }
}

/// Writes one part. One that is dropped before [`Self::commit`] leaves nothing behind.
#[derive(Debug)]
pub struct PartWriter {
    file: Option<Box<dyn OpenFile>>,
    from: u64,
    length: u64,
    most: u64,
    turn: Turn,
}

/// Begins the part of an upload at an offset, of at most so many bytes.
pub(super) fn begin_part(turn: Turn, from: u64, most: u64) -> ShareResult<PartWriter> {
    let most = most.min(turn.0.record.bytes.saturating_sub(from));
    let mut part = PartWriter { file: None, from, length: 0, most, turn };
    part.file = Some(part.turn.0.files.create(&part.new_path())?);
    Ok(part)
}

impl PartWriter {
    fn path(&self) -> String {
        self.turn.0.path(&part_name(self.from))
    }

    fn new_path(&self) -> String {
        self.path() + NEW
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> ShareResult {
        let length = self.length.saturating_add(bytes.len() as u64);
        if length > self.most {
            return Err(ShareError::PartTooLong(self.most));
        }
        if let Some(file) = &mut self.file {
            file.append(bytes)?;
        }
        self.length = length;
        Ok(())
    }

    /// Makes the part durable and counts it as received, unless the upload was given up.
    pub fn commit(mut self) -> ShareResult<Progress> {
        let upload = Arc::clone(&self.turn.0);
        if upload.is_over() {
            return Err(ShareError::NoUpload);
        }
        if self.length > 0
            && let Some(mut file) = self.file.take()
        {
            let stored = file.sync().and_then(|()| upload.files.rename(&self.new_path(), &self.path()));
            if let Err(error) = stored {
                self.file = Some(file);
                return Err(error.into());
            }
            upload.state().arrived(self.from + self.length);
        }
        Ok(upload.progress())
    }
}

impl Drop for PartWriter {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // What can't be removed is removed with the upload.
            let _ = self.turn.0.files.remove(&self.new_path());
        }
    }
}
