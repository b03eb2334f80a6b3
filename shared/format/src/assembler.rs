//! Joins the chunks of a device's state.
//!
//! A chunk announces how many pieces the whole state has, but only what came takes memory. Its caller bounds it, since
//! the rest may never come.

use super::segments::SegmentsChunk;
use trace::error::{Checked, too_much};
use trace::{Block, Segment};

/// The parts of a device's state that have come so far.
#[derive(Debug, Default)]
pub struct SegmentsAssembler {
    parts: Option<Parts>,
}

#[derive(Debug, Default)]
struct Parts {
    /// The number of pieces so far.
    done: u64,
    /// The state's sequence number.
    at: u64,
    segments: Vec<Segment>,
    /// The capacity of all their lists of blocks.
    blocks: usize,
}

impl SegmentsAssembler {
    /// Adds the next chunk. Returns the sequence number and the segments of a state that it completes. `next` is the
    /// sequence number of the next event. Fails, and forgets the parts, if they would take more than `room` bytes.
    pub fn add(
        &mut self,
        chunk: SegmentsChunk,
        next: Option<u64>,
        room: usize,
    ) -> Checked<Option<(u64, Vec<Segment>)>> {
        let SegmentsChunk { at, of, from, pieces, .. } = chunk;
        if from == 0 {
            self.parts = Some(Parts { at, ..Parts::default() });
        }
        // A chunk without those before it is useless, and so is a state of an earlier position.
        let Some(parts) = self.parts.as_mut().filter(|parts| parts.done == from && parts.at == at) else {
            return Ok(None);
        };
        if next.is_some_and(|next| at < next) {
            self.parts = None;
            return Ok(None);
        }
        parts.done += pieces.len() as u64;
        for mut piece in pieces {
            match parts.segments.last_mut().filter(|_| piece.is_continued) {
                Some(last) => {
                    parts.blocks -= last.blocks.capacity();
                    last.blocks.append(&mut piece.segment.blocks);
                    parts.blocks += last.blocks.capacity();
                }
                None => {
                    parts.blocks += piece.segment.blocks.capacity();
                    parts.segments.push(piece.segment);
                }
            }
        }
        let is_whole = parts.done >= of;
        if self.bytes() > room {
            self.parts = None;
            return Err(too_much("a state has more blocks than can be kept"));
        }
        let whole = if is_whole { self.parts.take() } else { None };
        Ok(whole.map(|parts| (at, parts.segments)))
    }

    /// Returns the bytes of memory that it occupies.
    pub fn bytes(&self) -> usize {
        let memory =
            |parts: &Parts| parts.segments.capacity() * size_of::<Segment>() + parts.blocks * size_of::<Block>();
        self.parts.as_ref().map_or(0, memory)
    }
}
