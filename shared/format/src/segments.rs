//! The segments chunk: all segments and blocks of a device at one position.
//!
//! Large states take several chunks. Each holds a range of pieces and the number of pieces of the whole state, so a
//! reader knows when the state is complete. A piece is a segment, or a part of one with very many blocks.

use super::varint::{Varints, push, zigzag};
use codec::msgpack::{MapReader, MapWriter};
use trace::error::{Checked, damaged, too_much};
use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};
use trace::{Block, BlockState, Segment};

/// Bytes after which the next chunk begins.
const CHUNK_BYTES: usize = 1 << 20;

const FLAG_SMALL: u64 = 1;
const FLAG_EXPANDABLE: u64 = 2;
/// The piece continues the segment before it.
const FLAG_CONTINUED: u64 = 4;

/// The most blocks of one piece. A segment with more takes several pieces, so that no chunk exceeds its limit.
const PIECE_BLOCKS: usize = 1 << 15;

/// The contents of a segments chunk. Stacks are numbers of the recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SegmentsChunk {
    /// The device.
    pub device: i64,
    /// The sequence number of the next event after this state.
    pub at: u64,
    /// The number of pieces of the whole state.
    pub of: u64,
    /// The number of pieces before this chunk.
    pub from: u64,
    /// The pieces in this chunk.
    pub pieces: Vec<SegmentPiece>,
}

/// A segment, or more blocks of the segment before it.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentPiece {
    /// Whether the blocks belong to the segment of the piece before.
    pub is_continued: bool,
    /// The segment with the blocks of this piece.
    pub segment: Segment,
}

/// Returns the payloads of the segments chunks for the state of `device` before the event with sequence number `at`: at
/// least one. Stacks are numbers of the recording.
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
        zigzag(segment.stream.0),
        is(segment.is_small, FLAG_SMALL) | is(segment.is_expandable, FLAG_EXPANDABLE) | is(first > 0, FLAG_CONTINUED),
        segment.pool.0,
        segment.pool.1,
        segment.stack.0.into(),
        blocks.len() as u64,
    ] {
        push(heads, n);
    }
    // Blocks tile their segment: each begins where the previous one ends. Each piece counts from the segment's address.
    let mut next = segment.address.0;
    for block in blocks {
        push(columns, zigzag(block.address.0.wrapping_sub(next) as i64));
        push(columns, block.size);
        push(columns, zigzag(block.size.wrapping_sub(block.requested) as i64));
        push(columns, block.state as u64);
        push(columns, block.stack.0.into());
        next = block.address.0.wrapping_add(block.size);
    }
}

/// Numbers of a piece, and of a block: as many bytes at least.
const PIECE_NUMBERS: usize = 8;
const BLOCK_NUMBERS: usize = 5;

impl SegmentsChunk {
    /// Reads the payload of a segments chunk. Fails before it allocates anything if the pieces and blocks would take more
    /// than `room` bytes of memory.
    pub fn decode(payload: &[u8], room: usize) -> Checked<Self> {
        let mut chunk = Self::default();
        let [mut heads, mut blocks] = [Varints::new(&[]); 2];
        MapReader::new(payload).map(&mut |key, values| {
            match key {
                "device" => chunk.device = values.signed()?,
                "at" => chunk.at = values.unsigned()?,
                "of" => chunk.of = values.unsigned()?,
                "from" => chunk.from = values.unsigned()?,
                "segments" => heads = Varints::new(values.column()?),
                "blocks" => blocks = Varints::new(values.column()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let pieces = heads.count().div_ceil(PIECE_NUMBERS);
        let most = pieces * size_of::<SegmentPiece>() + blocks.count() / BLOCK_NUMBERS * size_of::<Block>();
        if most > room {
            return Err(too_much("a state has more blocks than can be kept"));
        }
        chunk.pieces.reserve_exact(pieces);
        while !heads.is_empty() {
            chunk.pieces.push(decode_piece(&mut heads, &mut blocks)?);
        }
        Ok(chunk)
    }

    /// Removes the free blocks, for readers that do not need them.
    pub fn drop_free_blocks(&mut self) {
        for piece in &mut self.pieces {
            let blocks = &mut piece.segment.blocks;
            blocks.retain(|block| block.state != BlockState::Inactive);
            blocks.shrink_to_fit();
        }
    }
}

fn decode_piece(heads: &mut Varints<'_>, blocks: &mut Varints<'_>) -> Checked<SegmentPiece> {
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
    let count = usize::try_from(heads.next()?).unwrap_or(usize::MAX);
    if count > blocks.len() / BLOCK_NUMBERS {
        return Err(damaged("a segment has more blocks than its chunk has bytes"));
    }
    segment.blocks.reserve_exact(count);
    let mut next = address;
    for _ in 0..count {
        let address = next.wrapping_add(blocks.signed()? as u64);
        let size = blocks.next()?;
        let requested = size.wrapping_sub(blocks.signed()? as u64);
        let state = match blocks.next()? {
            0 => BlockState::Allocated,
            1 => BlockState::Pending,
            2 => BlockState::Inactive,
            _ => return Err(damaged("the state of a block is not known")),
        };
        let stack = StackId(blocks.small()?);
        segment.blocks.push(Block { address: Address(address), size, requested, state, stack });
        next = address.wrapping_add(size);
    }
    Ok(SegmentPiece { is_continued: flags & FLAG_CONTINUED != 0, segment })
}
