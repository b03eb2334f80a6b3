//! From pushed bytes to messages.

use super::message::{HEAD_BYTES, Message};
use crate::checksum;
use crate::limits::WireLimits;

/// Why a stream can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A message declares a length beyond the limit.
    #[error("a message of {found} bytes exceeds the limit of {limit} bytes")]
    TooLong {
        /// The declared length.
        found: u64,
        /// [`WireLimits::frame_bytes`].
        limit: usize,
    },
    /// A body doesn't match its checksum.
    #[error("a message was corrupted in transit")]
    Sum,
    /// A body is malformed.
    #[error("a message is malformed")]
    Malformed,
}

/// Reads one stream, pushed in pieces of any size. Holds at most one message.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    held: Vec<u8>,
    failed: Option<WireError>,
}

impl Decoder {
    /// Creates a decoder for the start of a stream.
    pub fn new(limits: &WireLimits) -> Self {
        Self { limit: limits.frame_bytes, held: Vec::new(), failed: None }
    }

    /// Reads more bytes and visits each message that they complete, including those of unknown kinds. After an error
    /// nothing more is read: every later call returns the error again.
    pub fn push(&mut self, bytes: &[u8], visit: &mut dyn FnMut(Message<'_>)) -> Result<(), WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        // Complete messages are read in place; only the remainder is copied.
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

    /// Returns how many bytes belong to an incomplete message.
    pub fn unfinished(&self) -> usize {
        self.held.len()
    }

    /// Reads messages from the front. Returns the number of bytes that were used.
    fn read(&self, bytes: &[u8], visit: &mut dyn FnMut(Message<'_>)) -> Result<usize, WireError> {
        let mut at = 0;
        while let Some((&[a, b, c, d, e, f, g, h], rest)) =
            bytes.get(at..).and_then(|rest| rest.split_first_chunk::<HEAD_BYTES>())
        {
            let (length, sum) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
            // Checked before waiting for the body.
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
