//! Decodes messages from pushed bytes.

use super::message::{HEAD_BYTES, Message};
use codec::checksum;
use trace::limits::WireLimits;

/// Why a stream can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A message declares a length beyond the limit.
    #[error("a message of {found} bytes exceeds the limit of {limit} bytes")]
    TooLong {
        /// The declared length.
        found: u64,
        /// [`WireLimits::frame_bytes`], or the limit that was set since.
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
    /// The message that spans several pieces, as far as it was pushed.
    held: Vec<u8>,
    /// Whether the held message was returned.
    is_read: bool,
    failed: Option<WireError>,
}

impl Decoder {
    /// Creates a decoder for the start of a stream.
    pub fn new(limits: &WireLimits) -> Self {
        Self { limit: limits.frame_bytes, held: Vec::new(), is_read: false, failed: None }
    }

    /// Sets the most bytes of a later message's body: the first message of an unknown client may have a smaller limit
    /// than those that follow it.
    pub fn set_limit(&mut self, frame_bytes: usize) {
        self.limit = frame_bytes;
    }

    /// Reads more bytes and visits each message that they complete, including those of unknown kinds. After an error
    /// nothing more is read: every later call returns the error again.
    pub fn push(&mut self, mut bytes: &[u8], visit: &mut dyn FnMut(Message<'_>)) -> Result<(), WireError> {
        while let Some(message) = self.read(&mut bytes)? {
            visit(message);
        }
        Ok(())
    }

    /// Takes bytes from the front of `bytes` until they complete a message, and returns it. Returns `None` after all bytes
    /// were taken. A message that declares a length beyond the limit is refused before any of its body is held.
    pub fn read<'a, 'b: 'a>(&'a mut self, bytes: &mut &'b [u8]) -> Result<Option<Message<'a>>, WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if std::mem::take(&mut self.is_read) {
            self.held.clear();
        }
        let read = match take(&mut self.held, bytes, self.limit) {
            Ok(None) => return Ok(None),
            Ok(Some((sum, body))) if checksum::of(body) == sum => Message::decode(body).ok_or(WireError::Malformed),
            Ok(Some(_)) => Err(WireError::Sum),
            Err(error) => Err(error),
        };
        self.is_read = true;
        self.failed = read.as_ref().err().cloned();
        read.map(Some)
    }

    /// Returns how many bytes belong to an incomplete message.
    pub fn unfinished(&self) -> usize {
        if self.is_read { 0 } else { self.held.len() }
    }
}

/// Takes one message from the front of `held` and `bytes`. Returns its checksum and its body, which is read in place if it
/// is not in several pieces.
fn take<'a, 'b: 'a>(
    held: &'a mut Vec<u8>,
    bytes: &mut &'b [u8],
    limit: usize,
) -> Result<Option<(u32, &'a [u8])>, WireError> {
    if held.is_empty()
        && let Some((length, sum)) = head(bytes, limit)?
        && let Some((message, rest)) = bytes.split_at_checked(HEAD_BYTES.saturating_add(length))
    {
        *bytes = rest;
        return Ok(message.get(HEAD_BYTES..).map(|body| (sum, body)));
    }
    fill(held, bytes, HEAD_BYTES);
    let Some((length, sum)) = head(held, limit)? else { return Ok(None) };
    let whole = HEAD_BYTES.saturating_add(length);
    fill(held, bytes, whole);
    Ok(held.get(HEAD_BYTES..whole).map(|body| (sum, body)))
}

/// Returns the length of the body and its checksum, as soon as the head is complete.
fn head(bytes: &[u8], limit: usize) -> Result<Option<(usize, u32)>, WireError> {
    let Some(&[a, b, c, d, e, f, g, h]) = bytes.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
    let (length, sum) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    if length as usize > limit {
        return Err(WireError::TooLong { found: length.into(), limit });
    }
    Ok(Some((length as usize, sum)))
}

/// Moves bytes from the front of `bytes` to `held` until it has a length.
fn fill(held: &mut Vec<u8>, bytes: &mut &[u8], length: usize) {
    let (taken, rest) = bytes.split_at(length.saturating_sub(held.len()).min(bytes.len()));
    held.extend_from_slice(taken);
    *bytes = rest;
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
