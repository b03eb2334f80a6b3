//! What a file is, and the way from its bytes to a [`Snapshot`] and findings.
//!
//! An [`Importer`] is pushed bytes in pieces of any size. Behind it stand, one after the other: what unpacks (`gzip`,
//! `zstd`), what reads (the pickle machine, `json`, or the
//! decoder of recordings, which needs nothing behind it), the folding of values into columns (`builder`), and, at the end,
//! the reading of what was kept (`snapshot`). The same code runs in the page's worker, on the command line and under
//! the fuzzer. What is wrong but readable becomes a finding; only a file that is no snapshot, or that no snapshot would
//! be, is an error.

mod findings;
mod format;
mod gzip;
mod json;
mod segments;
mod settings;
mod snapshot;
mod zstd;

pub use format::{Compression, Encoding, Format};

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

/// What unpacks the file.
enum Unpacker {
    /// Not known yet: the first bytes.
    Unknown(Vec<u8>),
    Plain,
    Gzip(Box<Gzip>),
    Zstd(Box<Zstd>),
}

/// What reads the unpacked bytes.
enum Reader {
    /// Not known yet: the first bytes.
    Unknown(Vec<u8>),
    Pickle(Box<Machine>),
    Json(Box<Json>),
    Recording(Box<Decoder>),
}

/// Reads one file, pushed in pieces.
pub struct Importer {
    unpacker: Unpacker,
    plain: Plain,
}

/// The unpacked side.
struct Plain {
    limits: ImportLimits,
    reader: Reader,
    compression: Option<Compression>,
    packed_bytes: u64,
    bytes: u64,
}

/// What a file holds.
#[derive(Debug)]
pub struct Imported {
    /// What it is.
    pub format: Format,
    /// The pickle's protocol, for a pickle.
    pub protocol: Option<u8>,
    /// Its devices, and the tables that they share.
    pub snapshot: Snapshot,
    /// What is wrong with it, or worth knowing.
    pub findings: Vec<Finding>,
    /// Where it comes from, for a recording.
    pub header: Option<Header>,
}

impl Importer {
    /// At the start of a file.
    pub fn new(limits: ImportLimits) -> Self {
        let reader = Reader::Unknown(Vec::new());
        Self {
            unpacker: Unpacker::Unknown(Vec::new()),
            plain: Plain { limits, reader, compression: None, packed_bytes: 0, bytes: 0 },
        }
    }

    /// Reads the next bytes of the file. After an error the file can't be read on.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        self.plain.packed_bytes += bytes.len() as u64;
        if let Unpacker::Unknown(head) = &mut self.unpacker {
            head.extend_from_slice(bytes);
            return self.decide(false);
        }
        self.unpack(bytes)
    }

    /// Trace entries read so far: for progress.
    pub fn events(&self) -> usize {
        match &self.plain.reader {
            Reader::Unknown(_) => 0,
            Reader::Pickle(machine) => machine.events(),
            Reader::Json(json) => json.events(),
            Reader::Recording(decoder) => decoder.events(),
        }
    }

    /// The whole file was pushed: what it holds.
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
                return Err(ImportError::NotASnapshot("it is compressed, and ends before anything can be read"));
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

    /// Chooses the unpacker once the first bytes tell, and gives it those.
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
        // What follows the end of the snapshot is not looked at, whatever the pieces.
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
    /// Reads unpacked bytes. Whether more are wanted.
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
            // Whatever follows its end is none of it, but says that the file is damaged.
            Reader::Recording(_) => false,
        }
    }

    /// Chooses the reader once the first bytes tell, and gives it those.
    fn decide(&mut self, is_all: bool) -> Result<(), ImportError> {
        let Reader::Unknown(head) = &mut self.reader else { return Ok(()) };
        let Some(encoding) = format::encoding(head, is_all, self.compression.is_some())? else { return Ok(()) };
        let head = std::mem::take(head);
        match encoding {
            Encoding::Pickle => {
                // Protocol 1 does not say so, but begins with an opcode that 0 has not.
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
