//! Decompresses zstd, pushed in pieces: finds frames and blocks; `ruzstd` decodes each complete block.

use std::io::Read;

use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::rest::{Parts, Rest};
use super::xxh64::Xxh64;
use trace::error::ImportError;
use trace::error::{Checked, damaged, unsupported};
use trace::limits::ImportLimits;
use trace::narrow::length;
use trace::units::Bytes;

/// The format's name in messages.
pub(super) const ZSTD: &str = "zstd";
/// The first bytes of a frame.
pub(super) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The last three bytes of the magic number of a skippable frame.
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];
/// Bytes passed on at a time.
const PIECE: usize = 256 << 10;
/// The largest window that the decoder keeps; `zstd --ultra -22` needs as much.
const WINDOW: u64 = 128 << 20;
/// The most bytes of a block, packed and unpacked (RFC 8878).
const BLOCK: usize = 128 << 10;
/// Bytes of the checksum after a frame.
const CHECKSUM: usize = 4;

/// Whether a skippable frame begins here.
pub(super) fn is_skippable(head: [u8; 4]) -> bool {
    may_begin(&head) && head != MAGIC
}

/// Whether a frame may begin with these bytes, of which only the first four are looked at.
fn may_begin(head: &[u8]) -> bool {
    let head = head.get(..4.min(head.len())).unwrap_or(&[]);
    let is_skippable = match head {
        [] => true,
        [first, others @ ..] => (0x50..=0x5f).contains(first) && SKIPPABLE.starts_with(others),
    };
    is_skippable || MAGIC.starts_with(head)
}

/// Reads a zstd stream, to the end of its last frame and beyond.
pub(super) struct Zstd {
    decoder: FrameDecoder,
    limits: ImportLimits,
    /// The beginning of an incomplete header or block.
    held: Vec<u8>,
    /// Bytes of a skippable frame that are still to be skipped.
    skip: u64,
    /// The present frame.
    frame: Option<Frame>,
    frames: Parts,
    piece: Vec<u8>,
    byte: u64,
    /// Bytes after the last frame; frames may follow until there are any.
    other: u64,
}

/// What is known of a frame.
struct Frame {
    has_checksum: bool,
    /// The length of its contents, if the header tells.
    length: Option<u64>,
    checksum: Xxh64,
    /// Bytes that were passed on.
    done: u64,
    /// The most bytes that were decoded.
    most: u64,
    /// Bytes that the decoder keeps to refer to.
    window: u64,
}

impl Zstd {
    pub(super) fn new(limits: ImportLimits) -> Self {
        Self {
            decoder: FrameDecoder::new(),
            limits,
            held: Vec::new(),
            skip: 0,
            frame: None,
            frames: Parts::new("zstd frames"),
            piece: vec![0; PIECE],
            byte: 0,
            other: 0,
        }
    }

    /// Returns how the stream ended, once all bytes were pushed.
    pub(super) fn rest(&self) -> Rest {
        let is_cut = self.frame.is_some() || self.skip > 0 || !self.held.is_empty();
        if is_cut || self.frames.is_first() { Rest::Cut } else { Rest::of_other_bytes(self.other) }
    }

    /// Reads more bytes and passes the decoded bytes to `plain`.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        plain: &mut dyn FnMut(&[u8]) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.other > 0 {
                self.other += rest.len() as u64;
                break;
            }
            if self.skip > 0 {
                let count = self.skip.min(rest.len() as u64);
                self.skip -= count;
                self.byte += count;
                rest = rest.get(length(count)..).unwrap_or(&[]);
                continue;
            }
            if self.frame.is_none() && self.held.is_empty() && !self.frames.is_first() {
                // Padding, as after a copy from a tape or a disk.
                let zeros = rest.iter().take_while(|byte| **byte == 0).count();
                self.byte += zeros as u64;
                rest = rest.get(zeros..).unwrap_or(&[]);
            }
            // Bytes are held until a header or block is complete: slightly more than 128 KiB at most.
            let need = self.need().map_err(|fault| fault.at(ZSTD, self.byte))?;
            let missing = need.saturating_sub(self.held.len());
            let (more, after) = rest.split_at(missing.min(rest.len()));
            self.held.extend_from_slice(more);
            rest = after;
            if self.frame.is_none() && !self.frames.is_first() && !may_begin(&self.held) {
                self.other = self.held.len() as u64;
                self.held.clear();
                continue;
            }
            if more.len() < missing || self.need().map_err(|fault| fault.at(ZSTD, self.byte))? > self.held.len() {
                continue;
            }
            self.decode(plain)?;
        }
        Ok(())
    }

    /// Returns how many bytes `held` needs for the next step.
    fn need(&self) -> Checked<usize> {
        let held = &self.held;
        let Some(frame) = &self.frame else {
            let Some(&magic) = held.first_chunk::<4>() else { return Ok(4) };
            if is_skippable(magic) {
                return Ok(8);
            }
            let Some(&descriptor) = held.get(4).filter(|_| magic == MAGIC) else {
                return Ok(if magic == MAGIC { 5 } else { 4 });
            };
            let [window, dictionary, content] = header_parts(descriptor);
            return Ok(5 + window + dictionary + content);
        };
        let Some(&[a, b, c]) = held.first_chunk::<3>() else { return Ok(3) };
        let (kind, size, is_last) = block_header([a, b, c]);
        // RFC 8878: no block is larger. Without this check the decoder would wait for any declared length.
        if size > BLOCK {
            return Err(damaged("a block is larger than the format allows"));
        }
        let length = if kind == RUN { 1 } else { size };
        Ok(3 + length + if is_last && frame.has_checksum { CHECKSUM } else { 0 })
    }

    /// Decodes the complete header or block in `held`.
    fn decode(&mut self, plain: &mut dyn FnMut(&[u8]) -> Result<(), ImportError>) -> Result<(), ImportError> {
        let byte = self.byte;
        self.byte += self.held.len() as u64;
        let mut held = std::mem::take(&mut self.held);
        match self.frame.take() {
            None => self.begin(&held).map_err(|fault| fault.at(ZSTD, byte))?,
            Some(mut frame) => {
                if !self.block(&mut frame, &held, byte, plain)? {
                    self.frame = Some(frame);
                }
            }
        }
        // The buffer is reused.
        held.clear();
        self.held = held;
        Ok(())
    }

    /// Decodes a block. Returns whether it was the frame's last one.
    fn block(
        &mut self,
        frame: &mut Frame,
        held: &[u8],
        byte: u64,
        plain: &mut dyn FnMut(&[u8]) -> Result<(), ImportError>,
    ) -> Result<bool, ImportError> {
        let size = held.first_chunk::<3>().map_or(BLOCK, |head| match block_header(*head) {
            (RAW | RUN, size, _) => size,
            _ => BLOCK,
        });
        frame.most += size as u64;
        // Up to a window of what was decoded waits in the decoder, where no other limit counts it.
        let waiting = frame.most.saturating_sub(frame.done).min(frame.window.saturating_add(BLOCK as u64));
        if waiting > self.limits.memory(self.byte) {
            return Err(ImportError::Costly { packed: self.byte, memory: waiting });
        }
        let unreadable = |_| damaged("a block can't be read").at(ZSTD, byte);
        let is_last = self.decoder.decode_blocks(held, BlockDecodingStrategy::UptoBlocks(1)).map_err(unreadable)?;
        while self.decoder.can_collect() > 0 {
            let count = self.decoder.read(&mut self.piece).unwrap_or(0);
            if count == 0 {
                break;
            }
            let piece = self.piece.get(..count).unwrap_or(&[]);
            frame.done += count as u64;
            self.frames.add(count);
            if frame.has_checksum {
                frame.checksum.update(piece);
            }
            plain(piece)?;
        }
        if is_last {
            frame.end(held).map_err(|fault| fault.at(ZSTD, byte))?;
        }
        Ok(is_last)
    }

    fn begin(&mut self, header: &[u8]) -> Checked {
        let (Some(&magic), rest) = (header.first_chunk::<4>(), header.get(4..).unwrap_or(&[])) else {
            return Err(damaged("a frame has no header"));
        };
        self.frames.begin()?;
        if let Some(&length) = rest.first_chunk::<4>().filter(|_| is_skippable(magic)) {
            self.skip = u64::from(u32::from_le_bytes(length));
            return Ok(());
        }
        let Some(&descriptor) = rest.first().filter(|_| magic == MAGIC) else {
            return Err(damaged("a frame does not begin with the magic number"));
        };
        // RFC 8878: a reader must refuse it.
        if descriptor & 8 != 0 {
            return Err(damaged("a frame's header has an unknown flag"));
        }
        // One that was used before takes the whole window at once, however short the frame.
        self.decoder = FrameDecoder::new();
        self.decoder.set_max_window_size(WINDOW);
        self.decoder.reset(header).map_err(|error| match error {
            FrameDecoderError::WindowSizeTooBig { requested, .. } => {
                let what = format!("its window is too large; the decoder would need {} of memory", Bytes(requested));
                unsupported(what, "Decompress it with zstd, and open the decompressed file.")
            }
            FrameDecoderError::DictNotProvided { .. } => unsupported(
                "it was compressed with a dictionary",
                "Compress it again without one, or open the decompressed file.",
            ),
            _ => damaged("a frame's header can't be read"),
        })?;
        let [window, _, content] = header_parts(descriptor);
        let length = (content > 0).then(|| self.decoder.content_size());
        let window = rest.get(1).filter(|_| window > 0).map_or(length.unwrap_or(WINDOW), |window| window_size(*window));
        let has_checksum = descriptor & 4 != 0;
        self.frame = Some(Frame { has_checksum, length, checksum: Xxh64::new(), done: 0, most: 0, window });
        Ok(())
    }
}

impl Frame {
    /// Compares what was decoded with what the frame says of it. `block` is the last one, with the checksum.
    fn end(&self, block: &[u8]) -> Checked {
        if self.length.is_some_and(|length| length != self.done) {
            return Err(damaged("the length of a frame does not match"));
        }
        let sum = block.last_chunk::<CHECKSUM>().filter(|_| self.has_checksum);
        // The lower half of the sum is written.
        if sum.is_some_and(|sum| u32::from_le_bytes(*sum) != (self.checksum.finish() & 0xffff_ffff) as u32) {
            return Err(damaged("the checksum of a frame does not match"));
        }
        Ok(())
    }
}

/// A block that is stored as it is.
const RAW: u8 = 0;
/// A block that repeats one byte.
const RUN: u8 = 1;

/// Returns a block's kind, its size, and whether it is the last one of its frame. The size of a [`RUN`] is that of its
/// contents.
fn block_header([a, b, c]: [u8; 3]) -> (u8, usize, bool) {
    let header = u32::from_le_bytes([a, b, c, 0]);
    ((header >> 1 & 3) as u8, (header >> 3) as usize, header & 1 == 1)
}

/// Returns the size that a window's descriptor stands for.
const fn window_size(descriptor: u8) -> u64 {
    let base = 1 << (10 + (descriptor >> 3));
    base + base / 8 * (descriptor & 7) as u64
}

/// Returns the lengths of the parts of a frame's header behind its descriptor: the window, the dictionary's number, and
/// the length of the contents.
fn header_parts(descriptor: u8) -> [usize; 3] {
    let single = descriptor & 0x20 != 0;
    let content = match descriptor >> 6 {
        0 => usize::from(single),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    let dictionary = match descriptor & 3 {
        3 => 4,
        length => usize::from(length),
    };
    [usize::from(!single), dictionary, content]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_skippable_frames_are_told_from_other_bytes_as_soon_as_possible() {
        for head in [&[][..], &[0x28], &[0x28, 0xb5, 0x2f, 0xfd, 0], &[0x50], &[0x5f, 0x2a], &[0x57, 0x2a, 0x4d, 0x18]]
        {
            assert!(may_begin(head), "{head:?}");
        }
        for head in [&[0x29][..], b"\n", &[0x28, 0xb5, 0x2e], &[0x60, 0x2a], &[0x4f], &[0x50, 0x2a, 0x4d, 0x19]] {
            assert!(!may_begin(head), "{head:?}");
        }
        assert!(is_skippable([0x50, 0x2a, 0x4d, 0x18]) && !is_skippable(MAGIC) && !is_skippable(*b"PK\x03\x04"));
    }
}
