//! Decompresses zstd, pushed in pieces: finds frames and blocks; `ruzstd` decodes each complete block.

use std::io::Read;

use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::error::ImportError;
use crate::error::{Checked, damaged, unsupported};
use crate::units::Bytes;

/// The format's name in messages.
const ZSTD: &str = "zstd";
/// The first bytes of a frame.
pub(super) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Bytes passed on at a time.
const PIECE: usize = 256 << 10;
/// The largest window that the decoder keeps; `zstd --ultra -22` needs as much.
const WINDOW: u64 = 128 << 20;

/// Whether a skippable frame begins here.
pub(super) fn is_skippable(head: [u8; 4]) -> bool {
    (0x184d_2a50..=0x184d_2a5f).contains(&u32::from_le_bytes(head))
}

/// Reads a zstd stream.
pub(super) struct Zstd {
    decoder: FrameDecoder,
    /// The beginning of an incomplete header or block.
    held: Vec<u8>,
    /// Bytes of a skippable frame that are still to be skipped.
    skip: u64,
    in_frame: bool,
    has_checksum: bool,
    piece: Vec<u8>,
    byte: u64,
    ended: bool,
}

impl Zstd {
    pub(super) fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW);
        let piece = vec![0; PIECE];
        Self { decoder, held: Vec::new(), skip: 0, in_frame: false, has_checksum: false, piece, byte: 0, ended: false }
    }

    /// Whether a frame is incomplete.
    pub(super) fn is_cut(&self) -> bool {
        !self.ended && (self.in_frame || self.skip > 0 || !self.held.is_empty())
    }

    /// Reads more bytes and passes the decoded bytes to `plain`. Stops once that returns false.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        plain: &mut dyn FnMut(&[u8]) -> Result<bool, ImportError>,
    ) -> Result<(), ImportError> {
        let mut rest = bytes;
        while !rest.is_empty() && !self.ended {
            if self.skip > 0 {
                let count = self.skip.min(rest.len() as u64);
                self.skip -= count;
                self.byte += count;
                rest = rest.get(count as usize..).unwrap_or(&[]);
                continue;
            }
            // Bytes are held until a header or block is complete: slightly more than 128 KiB at most.
            let need = self.need().map_err(|fault| fault.at(ZSTD, self.byte))?;
            let missing = need.saturating_sub(self.held.len());
            let (more, after) = rest.split_at(missing.min(rest.len()));
            self.held.extend_from_slice(more);
            rest = after;
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
        if !self.in_frame {
            let Some(&magic) = held.first_chunk::<4>() else { return Ok(4) };
            if is_skippable(magic) {
                return Ok(8);
            }
            let Some(&descriptor) = held.get(4).filter(|_| magic == MAGIC) else {
                return Ok(if magic == MAGIC { 5 } else { 4 });
            };
            let single = descriptor & 0x20 != 0;
            let content = match descriptor >> 6 {
                0 => usize::from(single),
                1 => 2,
                2 => 4,
                _ => 8,
            };
            let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
            return Ok(5 + usize::from(!single) + dictionary + content);
        }
        let Some(&[a, b, c]) = held.first_chunk::<3>() else { return Ok(3) };
        let header = u32::from_le_bytes([a, b, c, 0]);
        let length = if header >> 1 & 3 == 1 { 1 } else { (header >> 3) as usize };
        // RFC 8878: no block is larger. Without this check the decoder would wait for any declared length.
        if length > 128 << 10 {
            return Err(damaged("a block is larger than the format allows"));
        }
        let checksum = if header & 1 == 1 && self.has_checksum { 4 } else { 0 };
        Ok(3 + length + checksum)
    }

    /// Decodes the complete header or block in `held`.
    fn decode(&mut self, plain: &mut dyn FnMut(&[u8]) -> Result<bool, ImportError>) -> Result<(), ImportError> {
        let byte = self.byte;
        self.byte += self.held.len() as u64;
        let held = std::mem::take(&mut self.held);
        if !self.in_frame {
            return self.begin(&held).map_err(|fault| fault.at(ZSTD, byte));
        }
        let unreadable = |_| damaged("a block can't be read").at(ZSTD, byte);
        let done = self.decoder.decode_blocks(&held[..], BlockDecodingStrategy::UptoBlocks(1)).map_err(unreadable)?;
        self.in_frame = !done;
        while self.decoder.can_collect() > 0 {
            let count = self.decoder.read(&mut self.piece).unwrap_or(0);
            if count == 0 {
                break;
            }
            if !plain(self.piece.get(..count).unwrap_or(&[]))? {
                self.ended = true;
                break;
            }
        }
        // The buffer is reused.
        self.held = held;
        self.held.clear();
        Ok(())
    }

    fn begin(&mut self, header: &[u8]) -> Checked {
        let (Some(&magic), rest) = (header.first_chunk::<4>(), header.get(4..).unwrap_or(&[])) else {
            return Err(damaged("a frame has no header"));
        };
        if let Some(&length) = rest.first_chunk::<4>().filter(|_| is_skippable(magic)) {
            self.skip = u64::from(u32::from_le_bytes(length));
            return Ok(());
        }
        if magic != MAGIC {
            return Err(damaged("a frame does not begin with the magic number"));
        }
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
        self.has_checksum = rest.first().is_some_and(|descriptor| descriptor & 4 != 0);
        self.in_frame = true;
        Ok(())
    }
}
