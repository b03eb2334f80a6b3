//! From pushed bytes to frames.

use super::message::{HEAD_BYTES, Message};
use crate::checksum;
use crate::limits::WireLimits;

/// Why a stream can't be read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A frame says that it is longer than any may be.
    #[error("a frame of {found} bytes is announced, and {limit} are the most")]
    TooLong {
        /// What its head says.
        found: u64,
        /// [`WireLimits::frame_bytes`].
        limit: usize,
    },
    /// A body is not what its sum says.
    #[error("a frame was changed on its way")]
    Sum,
    /// A body is no frame.
    #[error("a frame can't be read")]
    Malformed,
}

/// Reads one stream, pushed in pieces of any size. Holds no more than one frame.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    held: Vec<u8>,
    failed: Option<WireError>,
}

impl Decoder {
    /// At the start of a stream.
    pub fn new(limits: &WireLimits) -> Self {
        Self { limit: limits.frame_bytes, held: Vec::new(), failed: None }
    }

    /// Reads more bytes and visits each frame that became whole, those of kinds that this build doesn't know included.
    /// After an error nothing more is read: every later call gives it again.
    pub fn push(&mut self, bytes: &[u8], visit: &mut dyn FnMut(Message<'_>)) -> Result<(), WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        // Whole frames are read where they are; only what is left over is kept.
        let mut held = std::mem::take(&mut self.held);
        let result = if held.is_empty() {
            self.read(bytes, visit).map(|done| held.extend_from_slice(bytes.get(done..).unwrap_or(&[])))
        } else {
            held.extend_from_slice(bytes);
            self.read(&held, visit).map(|done| drop(held.drain(..done)))
        };
        self.held = held;
        self.failed = result.clone().err();
        result
    }

    /// Bytes of a frame that has not come whole.
    pub fn unfinished(&self) -> usize {
        self.held.len()
    }

    /// Reads frames from the front; gives how many bytes are done with.
    fn read(&self, bytes: &[u8], visit: &mut dyn FnMut(Message<'_>)) -> Result<usize, WireError> {
        let mut at = 0;
        while let Some((&[a, b, c, d, e, f, g, h], rest)) =
            bytes.get(at..).and_then(|rest| rest.split_first_chunk::<HEAD_BYTES>())
        {
            let (length, sum) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
            // Before a byte of it is waited for.
            if length as usize > self.limit {
                return Err(WireError::TooLong { found: length.into(), limit: self.limit });
            }
            let Some(body) = rest.get(..length as usize) else { break };
            if checksum::of(body) != sum {
                return Err(WireError::Sum);
            }
            visit(Message::decode(body).ok_or(WireError::Malformed)?);
            at += HEAD_BYTES + body.len();
        }
        Ok(at)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
