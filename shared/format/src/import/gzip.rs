//! Decompresses gzip, pushed in pieces: reads the members' headers and trailers; `flate2` inflates.

use flate2::{Decompress, FlushDecompress, Status};

use super::rest::{Parts, Rest};
use codec::checksum::{self, Checksum};
use trace::error::ImportError;
use trace::error::{Checked, damaged};
use trace::narrow::length;

/// The format's name in messages.
pub(super) const GZIP: &str = "gzip";
/// The first bytes of every member.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Bytes inflated at a time.
const PIECE: usize = 256 << 10;
/// The most bytes of a header with all its optional parts; an ordinary one has ten and a name.
const HEADER: usize = 256 << 10;
/// Bytes of a header that are looked at first; twice as many whenever they don't suffice. With more, members without
/// contents would be copied again and again.
const FIRST: usize = 32;
/// Bytes of checksum and length after a member.
const TRAILER: usize = 8;

#[derive(Debug)]
enum Part {
    Header,
    Body,
    Trailer,
    /// The bytes after the last member are not gzip.
    End,
}

/// Reads a gzip stream, to the end of its last member and beyond.
#[derive(Debug)]
pub(super) struct Gzip {
    part: Part,
    /// The beginning of an incomplete header or trailer.
    held: Vec<u8>,
    inflate: Decompress,
    checksum: Checksum,
    /// Inflated bytes of the present member.
    length: u64,
    members: Parts,
    piece: Vec<u8>,
    is_full: bool,
    byte: u64,
    /// Bytes after the last member.
    other: u64,
}

impl Gzip {
    pub(super) fn new() -> Self {
        Self {
            part: Part::Header,
            held: Vec::new(),
            inflate: Decompress::new(false),
            checksum: Checksum::new(),
            length: 0,
            members: Parts::new("gzip members"),
            piece: vec![0; PIECE],
            is_full: false,
            byte: 0,
            other: 0,
        }
    }

    /// Returns how the stream ended, once all bytes were pushed.
    pub(super) fn rest(&self) -> Rest {
        let is_cut = match self.part {
            Part::Header => self.members.is_first() || !self.held.is_empty(),
            Part::Body | Part::Trailer => true,
            Part::End => false,
        };
        if is_cut { Rest::Cut } else { Rest::of_other_bytes(self.other) }
    }

    /// Reads more bytes and passes the inflated bytes to `plain`.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        plain: &mut dyn FnMut(&[u8]) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let mut rest = bytes;
        // If the piece is full, there may be more output for the same input.
        while !rest.is_empty() || self.is_full {
            let before = rest.len();
            let goes_on = self.step(&mut rest, plain)?;
            self.byte += (before - rest.len()) as u64;
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        rest: &mut &[u8],
        plain: &mut dyn FnMut(&[u8]) -> Result<(), ImportError>,
    ) -> Result<bool, ImportError> {
        // Where what is incomplete begins.
        let byte = self.byte - self.held.len() as u64;
        match self.part {
            Part::Header => self.header(rest).map_err(|fault| fault.at(GZIP, byte))?,
            Part::Body => {
                let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
                let status = self.inflate.decompress(rest, &mut self.piece, FlushDecompress::None);
                let read = length(self.inflate.total_in() - read);
                let written = length(self.inflate.total_out() - written);
                self.is_full = written == self.piece.len();
                *rest = rest.get(read..).unwrap_or(&[]);
                let out = self.piece.get(..written).unwrap_or(&[]);
                self.checksum.update(out);
                self.length += written as u64;
                self.members.add(written);
                // Bytes inflated before an error are read nevertheless: they may suffice.
                if !out.is_empty() {
                    plain(out)?;
                }
                self.is_full &= status.is_ok();
                return match status {
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
                if let Some(trailer) = self.held.first_chunk::<TRAILER>() {
                    self.end_member(*trailer).map_err(|fault| fault.at(GZIP, byte))?;
                    self.held.clear();
                    self.part = Part::Header;
                }
            }
            Part::End => {
                self.other += rest.len() as u64;
                *rest = &[];
            }
        }
        Ok(true)
    }

    /// Reads a part of the next member's header, or finds that no member follows.
    fn header(&mut self, rest: &mut &[u8]) -> Checked {
        if !self.members.is_first() && self.held.is_empty() {
            // Padding, as after a copy from a tape or a disk.
            let zeros = rest.iter().take_while(|byte| **byte == 0).count();
            *rest = rest.get(zeros..).unwrap_or(&[]);
        }
        let old = self.held.len();
        let more = rest.len().min(old.max(FIRST));
        self.held.extend_from_slice(rest.get(..more).unwrap_or(&[]));
        if !self.members.is_first() && !MAGIC.starts_with(self.held.get(..2.min(self.held.len())).unwrap_or(&[])) {
            self.held.clear();
            self.other = old as u64;
            self.part = Part::End;
            return Ok(());
        }
        match header_length(&self.held)? {
            Some(length) => {
                self.members.begin()?;
                *rest = rest.get(length.saturating_sub(old)..).unwrap_or(&[]);
                self.held.clear();
                self.inflate.reset(false);
                (self.checksum, self.length) = (Checksum::new(), 0);
                self.part = Part::Body;
            }
            None if self.held.len() > HEADER => return Err(damaged("its header has no end")),
            None => *rest = rest.get(more..).unwrap_or(&[]),
        }
        Ok(())
    }

    /// Compares what was inflated with what the member says of it.
    fn end_member(&mut self, trailer: [u8; TRAILER]) -> Checked {
        let [a, b, c, d, length @ ..] = trailer;
        if u32::from_le_bytes([a, b, c, d]) != std::mem::take(&mut self.checksum).finalize() {
            return Err(damaged("its checksum does not match"));
        }
        // The length is written modulo 2^32.
        if u32::from_le_bytes(length) != (self.length & 0xffff_ffff) as u32 {
            return Err(damaged("its length does not match"));
        }
        Ok(())
    }
}

/// Returns the length of a member's header, once it is complete.
fn header_length(held: &[u8]) -> Checked<Option<usize>> {
    let Some(&[a, b, method, flags, ..]) = held.first_chunk::<10>() else { return Ok(None) };
    if [a, b] != MAGIC || method != 8 {
        return Err(damaged("a member has no gzip header"));
    }
    // RFC 1952: a reader must not go on if one of these is set.
    if flags & 0xe0 != 0 {
        return Err(damaged("a member's header has unknown flags"));
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
        let Some(&sum) = held.get(at..).and_then(<[u8]>::first_chunk::<2>) else { return Ok(None) };
        if u32::from(u16::from_le_bytes(sum)) != checksum::of(held.get(..at).unwrap_or(&[])) & 0xffff {
            return Err(damaged("the checksum of a member's header does not match"));
        }
        at += 2;
    }
    Ok((held.len() >= at).then_some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_skipped_with_all_its_parts_and_its_checksum_is_compared() {
        let plain = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(header_length(&plain).unwrap(), Some(10));
        assert_eq!(header_length(&plain[..9]).unwrap(), None);
        let mut full = vec![0x1f, 0x8b, 8, 2 | 4 | 8 | 16, 0, 0, 0, 0, 0, 0, 3, 0, 1, 2, 3];
        full.extend_from_slice(b"name\0comment\0");
        full.extend((checksum::of(&full) as u16).to_le_bytes());
        assert_eq!(header_length(&full).unwrap(), Some(full.len()));
        assert_eq!(header_length(&full[..full.len() - 1]).unwrap(), None);
        full[16] ^= 1;
        assert!(header_length(&full).unwrap_err().to_string().contains("checksum of a member's header"));
        for (place, value) in [(2, 7), (3, 0x20), (3, 0x80)] {
            let mut other = plain;
            other[place] = value;
            assert!(header_length(&other).is_err());
        }
    }
}
