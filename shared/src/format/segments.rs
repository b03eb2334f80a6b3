//! The segments and blocks of a device at one moment.
//!
//! A state may take several chunks; each says how many pieces the state has and with which of them it begins, so a
//! reader knows when it is whole. A piece is a segment, or a part of one with very many blocks.

use super::varint::{Varints, fold, push};
use crate::frames::StackId;
use crate::import::error::{Checked, damaged};
use crate::msgpack::{MapReader, MapWriter};
use crate::trace::{Block, BlockState, Segment};
use crate::units::{Address, PoolId, Stream};

/// Bytes of a chunk before another is begun.
const CHUNK_BYTES: usize = 1 << 20;

const FLAG_SMALL: u64 = 1;
const FLAG_EXPANDABLE: u64 = 2;
/// No segment of its own: more blocks of the one before.
const FLAG_CONTINUED: u64 = 4;

/// Blocks of one piece of a segment. A segment with more takes several, so that no chunk outgrows its bound.
const PIECE_BLOCKS: usize = 1 << 15;

/// A part of a state, as it was read. Stacks are numbers of the recording.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) device: i64,
    /// The sequence number of the first event after this moment.
    pub(super) at: u64,
    /// Pieces of the whole state.
    pub(super) of: u64,
    /// Pieces before this part.
    pub(super) from: u64,
    pub(super) pieces: Vec<Piece>,
}

/// A segment, or more blocks of the one before.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) is_continued: bool,
    pub(super) segment: Segment,
}

/// A state that comes in parts.
#[derive(Debug, Default)]
pub(super) struct Coming {
    /// How many pieces came, its sequence number, and the segments.
    parts: Option<(u64, u64, Vec<Segment>)>,
}

impl Coming {
    /// Takes the next part; gives the sequence number and the segments of a state that is whole with it. `next` is the
    /// sequence number of the next event.
    pub(super) fn take(&mut self, part: Part, next: Option<u64>) -> Option<(u64, Vec<Segment>)> {
        let Part { at, of, from, pieces, .. } = part;
        if from == 0 {
            self.parts = Some((0, at, Vec::new()));
        }
        // A part without those before it, or a state of a moment that has passed, is of no use.
        let (done, _, segments) = self.parts.as_mut().filter(|c| c.0 == from && c.1 == at)?;
        if next.is_some_and(|next| at < next) {
            return None;
        }
        *done += pieces.len() as u64;
        for mut piece in pieces {
            match segments.last_mut().filter(|_| piece.is_continued) {
                Some(last) => last.blocks.append(&mut piece.segment.blocks),
                None => segments.push(piece.segment),
            }
        }
        if *done < of {
            return None;
        }
        self.parts.take().map(|(_, _, segments)| (at, segments))
    }
}

/// The payloads that hold a state: the segments of `device` before the event with sequence number `at`. There is one at
/// least. Stacks are numbers of the recording.
pub fn encode_segments(device: i64, at: u64, segments: &[Segment]) -> Vec<Vec<u8>> {
    let pieces: Vec<(&Segment, usize)> = segments
        .iter()
        .flat_map(|segment| (0..segment.blocks.len().max(1)).step_by(PIECE_BLOCKS).map(move |first| (segment, first)))
        .collect();
    let mut payloads = Vec::new();
    let mut from = 0;
    loop {
        let (mut heads, mut blocks) = (Vec::new(), Vec::new());
        let mut next = from;
        while let Some(&(segment, first)) = pieces.get(next).filter(|_| heads.len() + blocks.len() < CHUNK_BYTES) {
            encode_piece(segment, first, &mut heads, &mut blocks);
            next += 1;
        }
        let mut message = MapWriter::map(6);
        message.signed("device", device);
        message.unsigned("at", at);
        message.unsigned("of", pieces.len() as u64);
        message.unsigned("from", from as u64);
        message.column("segments", &heads);
        message.column("blocks", &blocks);
        payloads.push(message.into_bytes());
        from = next;
        if from >= pieces.len() {
            return payloads;
        }
    }
}

fn encode_piece(segment: &Segment, first: usize, heads: &mut Vec<u8>, columns: &mut Vec<u8>) {
    let is = |flag: bool, bit: u64| if flag { bit } else { 0 };
    let blocks = segment.blocks.get(first..).unwrap_or(&[]);
    let blocks = blocks.get(..PIECE_BLOCKS).unwrap_or(blocks);
    for n in [
        segment.address.0,
        segment.size,
        fold(segment.stream.0),
        is(segment.is_small, FLAG_SMALL) | is(segment.is_expandable, FLAG_EXPANDABLE) | is(first > 0, FLAG_CONTINUED),
        segment.pool.0,
        segment.pool.1,
        segment.stack.0.into(),
        blocks.len() as u64,
    ] {
        push(heads, n);
    }
    // Blocks tile their segment: each begins where the one before it ends. A piece begins anew at its segment.
    let mut next = segment.address.0;
    for block in blocks {
        push(columns, fold(block.address.0.wrapping_sub(next) as i64));
        push(columns, block.size);
        push(columns, fold(block.size.wrapping_sub(block.requested) as i64));
        push(columns, block.state as u64);
        push(columns, block.stack.0.into());
        next = block.address.0.wrapping_add(block.size);
    }
}

pub(super) fn decode(payload: &[u8]) -> Checked<Part> {
    let mut part = Part::default();
    let [mut heads, mut blocks] = [Varints::new(&[]); 2];
    MapReader::new(payload).map(&mut |key, values| {
        match key {
            "device" => part.device = values.signed()?,
            "at" => part.at = values.unsigned()?,
            "of" => part.of = values.unsigned()?,
            "from" => part.from = values.unsigned()?,
            "segments" => heads = Varints::new(values.column()?),
            "blocks" => blocks = Varints::new(values.column()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    while !heads.is_empty() {
        part.pieces.push(decode_piece(&mut heads, &mut blocks)?);
    }
    Ok(part)
}

fn decode_piece(heads: &mut Varints<'_>, blocks: &mut Varints<'_>) -> Checked<Piece> {
    let (address, size, stream, flags) = (heads.next()?, heads.next()?, heads.signed()?, heads.next()?);
    let mut segment = Segment {
        address: Address(address),
        size,
        stream: Stream(stream),
        is_small: flags & FLAG_SMALL != 0,
        is_expandable: flags & FLAG_EXPANDABLE != 0,
        pool: PoolId(heads.next()?, heads.next()?),
        stack: StackId(heads.small()?),
        blocks: Vec::new(),
    };
    let mut next = address;
    for _ in 0..heads.next()? {
        let address = next.wrapping_add(blocks.signed()? as u64);
        let size = blocks.next()?;
        let requested = size.wrapping_sub(blocks.signed()? as u64);
        let state = match blocks.next()? {
            0 => BlockState::Allocated,
            1 => BlockState::Pending,
            2 => BlockState::Inactive,
            _ => return Err(damaged("a block is in a state that is not known")),
        };
        let stack = StackId(blocks.small()?);
        segment.blocks.push(Block { address: Address(address), size, requested, state, stack });
        next = address.wrapping_add(size);
    }
    Ok(Piece { is_continued: flags & FLAG_CONTINUED != 0, segment })
}
