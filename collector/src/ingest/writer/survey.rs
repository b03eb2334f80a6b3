//! Looks through a segment: what of it is whole, and what is not.

use std::ops::Range;

use format::{ChunkReader, ChunkScanner, Kind, Piece, RawChunk};
use trace::limits::ImportLimits;

use crate::store::{Label, StoreResult};

/// Bytes read at once.
pub(super) const READ_BYTES: usize = 1 << 20;

/// Returns bytes of a segment at an offset, fewer than asked only at its end.
pub(super) type Read<'a> = &'a mut dyn FnMut(u64, usize) -> StoreResult<Vec<u8>>;

/// What was found in a segment.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    /// Its first label; `None` if it is damaged.
    pub(super) label: Option<Label>,
    /// Its last label; `None` if it is damaged, or while it grows.
    pub(super) last_label: Option<Label>,
    /// The whole chunks up to the last mark, without labels that end a segment.
    pub(super) kept: Vec<Range<u64>>,
    /// The bytes of those up to the first mark, which closes the head.
    pub(super) head: u64,
    /// The number of the batch that the last mark closes; `None` without a mark.
    pub(super) last: Option<u64>,
    /// Bytes before the last mark that are no readable chunk.
    pub(super) damaged: u64,
    /// Bytes after the last mark or last label.
    pub(super) tail: u64,
    /// Whether those are what a write leaves that was cut short: whole chunks, and the beginning of one. They were never
    /// acknowledged.
    pub(super) is_torn: bool,
}

impl Survey {
    /// Looks through the segment `number` of a session.
    pub(super) fn of(session: &str, number: u32, read: Read<'_>) -> StoreResult<Self> {
        let mut found = Self::default();
        let mut scanner = ChunkScanner::at_start();
        let (mut bytes, mut end) = (0, 0);
        // Chunks and damage since the last mark.
        let (mut pending, mut damaged) = (Vec::new(), 0);
        loop {
            let more = read(bytes, READ_BYTES)?;
            if more.is_empty() {
                break;
            }
            bytes += more.len() as u64;
            scanner.push(&more);
            while let Some(piece) = scanner.next_piece() {
                let (byte, chunk) = match piece {
                    Piece::Damage(damage) => {
                        damaged += damage.bytes;
                        continue;
                    }
                    Piece::Chunk(byte, chunk) => (byte, chunk),
                };
                let range = byte..byte + chunk.bytes.len() as u64;
                let label = label(chunk, session, number);
                if label.as_ref().is_some_and(|label| label.is_last) {
                    found.last_label = label;
                    found.damaged += std::mem::take(&mut damaged);
                    end = range.end;
                    continue;
                }
                found.label = found.label.or(label);
                pending.push(range.clone());
                if let Some(batch) = chunk.batch_end().filter(|batch| found.last.is_none_or(|last| batch.seq > last)) {
                    end = range.end;
                    found.last = Some(batch.seq);
                    found.damaged += std::mem::take(&mut damaged);
                    let is_first = found.kept.is_empty();
                    for range in pending.drain(..) {
                        push_range(&mut found.kept, range);
                    }
                    // If the mark of the head was damaged, this one closes a batch, and the head can't be told from it.
                    let is_head = found.label.as_ref().is_none_or(|label| batch.seq < label.segment.first);
                    if is_first && is_head {
                        found.head = found.kept.iter().map(|range| range.end - range.start).sum();
                    }
                }
            }
        }
        found.tail = bytes.saturating_sub(end);
        let is_lost = scanner.is_lost();
        found.is_torn = damaged == 0
            && match scanner.finish().filter(|_| is_lost) {
                // A file system may have given the file its length, and lost power before it wrote the bytes.
                Some(rest) => are_zeros(rest.byte..rest.byte + rest.bytes, read)?,
                None => true,
            };
        Ok(found)
    }

    /// Whether everything that was ever acknowledged is kept.
    pub(super) fn is_whole(&self) -> bool {
        self.damaged == 0 && (self.tail == 0 || self.is_torn)
    }
}

/// Whether a range holds nothing but zeros.
fn are_zeros(range: Range<u64>, read: Read<'_>) -> StoreResult<bool> {
    let mut at = range.start;
    while at < range.end {
        let bytes = read(at, (range.end - at).min(READ_BYTES as u64) as usize)?;
        if bytes.is_empty() || bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += bytes.len() as u64;
    }
    Ok(true)
}

/// Appends a range, joined to the last one where it continues that.
pub(super) fn push_range(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// Returns the label that a chunk is, if it is one of this segment.
pub(super) fn label(chunk: RawChunk<'_>, session: &str, number: u32) -> Option<Label> {
    if !chunk.is(Kind::Label) {
        return None;
    }
    let mut label = None;
    let mut reader = ChunkReader::at_chunk(&ImportLimits::default(), 0);
    reader.push(chunk.bytes, &mut |chunk| label = Label::decode(chunk.payload, session, number)).ok()?;
    label
}
