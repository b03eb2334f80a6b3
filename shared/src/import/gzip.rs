//! Decompresses gzip, pushed in pieces: reads the members' headers and trailers; `flate2` inflates.

use flate2::{Decompress, FlushDecompress, Status};

use crate::checksum::Checksum;
use crate::error::ImportError;
use crate::error::{Checked, damaged};

/// The format's name in messages.
const GZIP: &str = "gzip";
/// The first bytes of every member.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Bytes inflated at a time.
const PIECE: usize = 256 << 10;
/// The most bytes of a header with all its optional parts; an ordinary one has ten and a name.
const HEADER: usize = 256 << 10;
/// Bytes of checksum and length after a member.
const TRAILER: usize = 8;

#[derive(Debug)]
enum Part {
    Header,
    Body,
    Trailer,
    /// The bytes after the last member are not gzip (mostly padding).
    End,
}

/// Reads a gzip stream.
#[derive(Debug)]
pub(super) struct Gzip {
    part: Part,
    /// The beginning of an incomplete header or trailer.
    held: Vec<u8>,
    inflate: Decompress,
    checksum: Checksum,
    piece: Vec<u8>,
    is_full: bool,
    byte: u64,
    first: bool,
}

impl Gzip {
    pub(super) fn new() -> Self {
        Self {
            part: Part::Header,
            held: Vec::new(),
            inflate: Decompress::new(false),
            checksum: Checksum::new(),
            piece: vec![0; PIECE],
            is_full: false,
            byte: 0,
            first: true,
        }
    }

    /// Whether a member is incomplete.
    pub(super) fn is_cut(&self) -> bool {
        match self.part {
            Part::Header => self.first || !self.held.is_empty(),
            Part::Body | Part::Trailer => true,
            Part::End => false,
        }
    }

    /// Reads more bytes and passes the inflated bytes to `plain`. Stops once that returns false.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        plain: &mut dyn FnMut(&[u8]) -> Result<bool, ImportError>,
    ) -> Result<(), ImportError> {
        let mut rest = bytes;
        // If the piece is full, there may be more output for the same input.
        while !rest.is_empty() || self.is_full {
            let before = rest.len();
            let more = self.step(&mut rest, plain)?;
            self.byte += (before - rest.len()) as u64;
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        rest: &mut &[u8],
        plain: &mut dyn FnMut(&[u8]) -> Result<bool, ImportError>,
    ) -> Result<bool, ImportError> {
        let byte = self.byte;
        match self.part {
            Part::Header => {
                let old = self.held.len();
                self.held.extend_from_slice(rest.get(..rest.len().min(HEADER)).unwrap_or(&[]));
                if !self.first && !MAGIC.starts_with(self.held.get(..2.min(self.held.len())).unwrap_or(&[])) {
                    self.part = Part::End;
                    return Ok(false);
                }
                match header_length(&self.held).map_err(|fault| fault.at(GZIP, byte))? {
                    Some(length) => {
                        *rest = rest.get(length.saturating_sub(old)..).unwrap_or(&[]);
                        self.held.clear();
                        self.inflate.reset(false);
                        self.checksum = Checksum::new();
                        self.part = Part::Body;
                    }
                    None if self.held.len() > HEADER => {
                        return Err(damaged("its header has no end").at(GZIP, byte));
                    }
                    None => *rest = &[],
                }
            }
            Part::Body => {
                let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
                let status = self.inflate.decompress(rest, &mut self.piece, FlushDecompress::None);
                let read = (self.inflate.total_in() - read) as usize;
                let written = (self.inflate.total_out() - written) as usize;
                self.is_full = written == self.piece.len();
                *rest = rest.get(read..).unwrap_or(&[]);
                let out = self.piece.get(..written).unwrap_or(&[]);
                self.checksum.update(out);
                // Bytes inflated before an error are read nevertheless: they may suffice.
                let wants_more = out.is_empty() || plain(out)?;
                self.is_full &= status.is_ok();
                return match status {
                    _ if !wants_more => Ok(false),
                    Ok(Status::StreamEnd) => {
                        self.is_full = false;
                        self.part = Part::Trailer;
                        Ok(true)
                    }
                    Ok(_) => Ok(read + written > 0),
                    Err(_) => Err(damaged("its deflate stream can't be read").at(GZIP, byte)),
                };
            }
            Part::Trailer => {
                let (more, after) = rest.split_at(rest.len().min(TRAILER - self.held.len().min(TRAILER)));
                self.held.extend_from_slice(more);
                *rest = after;
                if let Some(&[a, b, c, d]) = self.held.get(..TRAILER).and_then(<[u8]>::first_chunk::<4>) {
                    if u32::from_le_bytes([a, b, c, d]) != std::mem::take(&mut self.checksum).finalize() {
                        return Err(damaged("its checksum does not match").at(GZIP, byte));
                    }
                    self.held.clear();
                    self.first = false;
                    self.part = Part::Header;
                }
            }
            Part::End => return Ok(false),
        }
        Ok(true)
    }
}

/// Returns the length of a member's header, once it is complete.
fn header_length(held: &[u8]) -> Checked<Option<usize>> {
    let Some(&[a, b, method, flags, ..]) = held.first_chunk::<10>() else { return Ok(None) };
    if [a, b] != MAGIC || method != 8 {
        return Err(damaged("a member has no gzip header"));
    }
    let mut at = 10;
    if flags & 4 != 0 {
        let Some(&length) = held.get(at..).and_then(<[u8]>::first_chunk::<2>) else { return Ok(None) };
        at += 2 + usize::from(u16::from_le_bytes(length));
    }
    // A name and a comment, each up to a zero byte.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let Some(end) = held.get(at..).and_then(|text| text.iter().position(|&b| b == 0)) else {
                return Ok(None);
            };
            at += end + 1;
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    Ok((held.len() >= at).then_some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_skipped_with_all_its_parts() {
        let plain = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(header_length(&plain).unwrap(), Some(10));
        assert_eq!(header_length(&plain[..9]).unwrap(), None);
        let mut full = vec![0x1f, 0x8b, 8, 2 | 4 | 8 | 16, 0, 0, 0, 0, 0, 0, 3, 0, 1, 2, 3];
        full.extend_from_slice(b"name\0comment\0\x12\x34");
        assert_eq!(header_length(&full).unwrap(), Some(full.len()));
        assert_eq!(header_length(&full[..full.len() - 1]).unwrap(), None);
        assert!(header_length(&[0x1f, 0x8b, 7, 0, 0, 0, 0, 0, 0, 0]).is_err());
    }
}
