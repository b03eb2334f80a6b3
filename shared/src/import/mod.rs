//! Imports a file of any supported format: from its bytes to a [`Snapshot`] and findings.
//!
//! An [`Importer`] accepts bytes in pieces of any size. They pass through a decompressor (`gzip`, `zstd`) and a reader:
//! the decoder of recordings, or the pickle machine or `json`, whose values become columns in `crate::values` and, at
//! the end, a snapshot (`snapshot`). Problems become findings where the file can still be read; only other files, and
//! those beyond any real snapshot, are errors.

mod findings;
mod format;
mod gzip;
mod json;
mod segments;
mod settings;
mod snapshot;
mod unpacked;
mod zstd;

pub use format::{Compression, Encoding, Format};

pub use self::unpacked::unpacked;
pub use crate::error::ImportError;

use self::gzip::Gzip;
use self::json::Json;
use self::snapshot::Read;
use self::zstd::Zstd;
use crate::finding::Finding;
use crate::format::Header;
use crate::limits::ImportLimits;
use crate::pickle::{Machine, Unpickled};
use crate::recording::Decoder;
use crate::trace::Snapshot;

/// The decompressor.
enum Unpacker {
    /// Not chosen yet; holds the first bytes.
    Unknown(Vec<u8>),
    Plain,
    Gzip(Box<Gzip>),
    Zstd(Box<Zstd>),
}

/// The reader of the decompressed bytes.
enum Reader {
    /// Not chosen yet; holds the first bytes.
    Unknown(Vec<u8>),
    Pickle(Box<Machine>),
    Json(Box<Json>),
    Recording(Box<Decoder>),
}

/// Reads one file, pushed in pieces of any size.
pub struct Importer {
    unpacker: Unpacker,
    plain: Plain,
}

/// Reads the decompressed bytes.
struct Plain {
    limits: ImportLimits,
    reader: Reader,
    compression: Option<Compression>,
    packed_bytes: u64,
    bytes: u64,
}

/// The contents of a file.
#[derive(Debug)]
pub struct Imported {
    /// The file's format.
    pub format: Format,
    /// The protocol, for a pickle.
    pub protocol: Option<u8>,
    /// The devices and the tables that they share.
    pub snapshot: Snapshot,
    /// The findings about the file.
    pub findings: Vec<Finding>,
    /// The header, for a recording.
    pub header: Option<Header>,
}

impl Importer {
    /// Creates an importer for the first byte of a file.
    pub fn new(limits: ImportLimits) -> Self {
        let reader = Reader::Unknown(Vec::new());
        Self {
            unpacker: Unpacker::Unknown(Vec::new()),
            plain: Plain { limits, reader, compression: None, packed_bytes: 0, bytes: 0 },
        }
    }

    /// Reads the next bytes of the file. After an error nothing more can be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        self.plain.packed_bytes += bytes.len() as u64;
        if let Unpacker::Unknown(head) = &mut self.unpacker {
            head.extend_from_slice(bytes);
            return self.decide(false);
        }
        self.unpack(bytes)
    }

    /// Returns the number of trace entries read so far, to show progress.
    pub fn events(&self) -> usize {
        match &self.plain.reader {
            Reader::Unknown(_) => 0,
            Reader::Pickle(machine) => machine.events(),
            Reader::Json(json) => json.events(),
            Reader::Recording(decoder) => decoder.events(),
        }
    }

    /// Ends the file and returns its contents.
    pub fn finish(mut self) -> Result<Imported, ImportError> {
        if self.plain.packed_bytes == 0 {
            return Err(ImportError::Empty);
        }
        self.decide(true)?;
        let is_cut = match &self.unpacker {
            Unpacker::Gzip(gzip) => gzip.is_cut(),
            Unpacker::Zstd(zstd) => zstd.is_cut(),
            Unpacker::Unknown(_) | Unpacker::Plain => false,
        };
        let Plain { reader, compression, .. } = {
            let mut plain = self.plain;
            if is_cut && plain.bytes == 0 {
                return Err(ImportError::NotASnapshot("it is compressed and truncated before anything can be read"));
            }
            plain.decide(true)?;
            plain
        };
        let (encoding, protocol, read) = match reader {
            Reader::Unknown(head) => return Err(ImportError::Unknown(head)),
            Reader::Pickle(machine) => {
                let Unpickled { builder, root, protocol, cut_at } = machine.finish()?;
                (Encoding::Pickle, Some(protocol), Read { builder, root, cut_at, is_packed: compression.is_some() })
            }
            Reader::Json(json) => {
                let (builder, root, cut_at) = json.finish()?;
                (Encoding::Json, None, Read { builder, root, cut_at, is_packed: compression.is_some() })
            }
            Reader::Recording(decoder) => {
                let (snapshot, findings, header) = decoder.finish()?;
                let format = Format { encoding: Encoding::Recording, compression };
                return Ok(Imported { format, protocol: None, snapshot, findings, header });
            }
        };
        let (snapshot, findings) = snapshot::assemble(read)?;
        Ok(Imported { format: Format { encoding, compression }, protocol, snapshot, findings, header: None })
    }

    /// Chooses the decompressor once the first bytes suffice, and passes them on.
    fn decide(&mut self, is_all: bool) -> Result<(), ImportError> {
        let Unpacker::Unknown(head) = &mut self.unpacker else { return Ok(()) };
        let Some(compression) = format::compression(head, is_all) else { return Ok(()) };
        let head = std::mem::take(head);
        self.plain.compression = compression;
        self.unpacker = match compression {
            None => Unpacker::Plain,
            Some(Compression::Gzip) => Unpacker::Gzip(Box::new(Gzip::new())),
            Some(Compression::Zstd) => Unpacker::Zstd(Box::new(Zstd::new())),
        };
        self.unpack(&head)
    }

    fn unpack(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        let plain = &mut self.plain;
        // Bytes after the end of the snapshot are ignored, whatever the pieces.
        if plain.is_done() {
            return Ok(());
        }
        match &mut self.unpacker {
            Unpacker::Unknown(_) => Ok(()),
            Unpacker::Plain => plain.push(bytes).map(|_| ()),
            Unpacker::Gzip(gzip) => gzip.push(bytes, &mut |bytes| plain.push(bytes)),
            Unpacker::Zstd(zstd) => zstd.push(bytes, &mut |bytes| plain.push(bytes)),
        }
    }
}

impl Plain {
    /// Reads decompressed bytes. Returns whether more are needed.
    fn push(&mut self, bytes: &[u8]) -> Result<bool, ImportError> {
        self.bytes += bytes.len() as u64;
        let allowed = self.packed_bytes.saturating_mul(self.limits.ratio).max(self.limits.ratio_grace_bytes);
        if self.compression.is_some() && self.bytes > allowed.min(self.limits.plain_bytes) {
            return Err(ImportError::Bomb { packed: self.packed_bytes, plain: self.bytes });
        }
        match &mut self.reader {
            Reader::Unknown(head) => {
                head.extend_from_slice(bytes);
                self.decide(false)?;
            }
            Reader::Pickle(machine) => machine.push(bytes)?,
            Reader::Json(json) => json.push(bytes)?,
            Reader::Recording(decoder) => decoder.push(bytes)?,
        }
        Ok(!self.is_done())
    }

    fn is_done(&self) -> bool {
        match &self.reader {
            Reader::Unknown(_) => false,
            Reader::Pickle(machine) => machine.is_done(),
            Reader::Json(json) => json.is_done(),
            // Bytes after its end are damage, which becomes a finding.
            Reader::Recording(_) => false,
        }
    }

    /// Chooses the reader once the first bytes suffice, and passes them on.
    fn decide(&mut self, is_all: bool) -> Result<(), ImportError> {
        let Reader::Unknown(head) = &mut self.reader else { return Ok(()) };
        let Some(encoding) = format::encoding(head, is_all, self.compression.is_some())? else { return Ok(()) };
        let head = std::mem::take(head);
        match encoding {
            Encoding::Pickle => {
                // Protocol 1 is not declared, but begins with an opcode that protocol 0 lacks.
                let protocol = u8::from(!head.starts_with(b"("));
                let mut machine = Machine::new(self.limits, protocol);
                machine.push(&head)?;
                self.reader = Reader::Pickle(Box::new(machine));
            }
            Encoding::Json => {
                let mut json = Json::new(self.limits);
                json.push(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head))?;
                self.reader = Reader::Json(Box::new(json));
            }
            Encoding::Recording => {
                let mut decoder = Decoder::new(self.limits);
                decoder.push(&head)?;
                self.reader = Reader::Recording(Box::new(decoder));
            }
        }
        Ok(())
    }
}
