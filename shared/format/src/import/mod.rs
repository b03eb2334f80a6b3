//! Imports a file of any supported format: from its bytes to a [`Snapshot`] and findings.
//!
//! An [`Importer`] accepts bytes in pieces of any size. They pass through a decompressor (`gzip`, `zstd`) and a reader:
//! the decoder of recordings, or the pickle machine or `json`, whose values become columns in `crate::values` and, at
//! the end, a snapshot (`snapshot`). Problems become findings where the file can still be read; only other files, and
//! those beyond any real snapshot, are errors. Where a snapshot is damaged, reading stops, and what was read is kept.

mod findings;
mod format;
mod gzip;
mod json;
mod rest;
mod segments;
mod settings;
mod snapshot;
mod unpacked;
mod xxh64;
mod zstd;

pub use format::{Compression, Encoding, Format};

pub use self::unpacked::unpacked;
pub use trace::error::ImportError;

use self::gzip::Gzip;
use self::json::{JSON, Json};
use self::rest::Rest;
use self::snapshot::{Read, Stop};
use self::zstd::Zstd;
use crate::Header;
use crate::pickle::{Machine, PICKLE, Unpickled};
use crate::recording::Decoder;
use query::finding::{Finding, lacks_end};
use trace::Snapshot;
use trace::limits::ImportLimits;
use trace::narrow::length;

/// The decompressor.
enum Unpacker {
    /// Not chosen yet; holds the first bytes.
    Unknown(Vec<u8>),
    Plain,
    Gzip(Box<Gzip>),
    Zstd(Box<Zstd>),
    /// Nothing more can be decompressed, and what was suffices.
    Broken(ImportError),
}

/// The reader of the decompressed bytes.
enum Reader {
    /// Not chosen yet; holds the first bytes.
    Unknown(Vec<u8>),
    Pickle(Box<Machine>),
    Json(Box<Json>),
    Recording(Box<Decoder>),
    /// Stopped at damage. Holds what precedes it.
    Stopped(Box<Imported>),
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
    /// Bytes that the reader got.
    read: u64,
    /// Bytes after the end of the snapshot, from the first that is no padding on.
    other: u64,
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

impl Imported {
    /// Derives the segments of a snapshot whose end was not read from its events: those in the file are of a later moment. A
    /// recording has states among its events, and derives them when it is read.
    pub fn derive_end(&mut self) {
        if self.header.is_none() && lacks_end(&self.findings) {
            let Snapshot { devices, tags, settings, .. } = &mut self.snapshot;
            devices.iter_mut().for_each(|trace| replay::end_of_part(trace, tags, settings));
        }
    }
}

impl Importer {
    /// Creates an importer for the first byte of a file.
    pub fn new(limits: ImportLimits) -> Self {
        let reader = Reader::Unknown(Vec::new());
        Self {
            unpacker: Unpacker::Unknown(Vec::new()),
            plain: Plain { limits, reader, compression: None, packed_bytes: 0, bytes: 0, read: 0, other: 0 },
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
            Reader::Stopped(imported) => imported.snapshot.devices.iter().map(|device| device.events.len()).sum(),
        }
    }

    /// Ends the file and returns its contents.
    pub fn finish(mut self) -> Result<Imported, ImportError> {
        if self.plain.packed_bytes == 0 {
            return Err(ImportError::Empty);
        }
        self.decide(true)?;
        let Self { unpacker, mut plain } = self;
        let (rest, broken) = match unpacker {
            Unpacker::Gzip(gzip) => (gzip.rest(), None),
            Unpacker::Zstd(zstd) => (zstd.rest(), None),
            Unpacker::Broken(error) => (Rest::Whole, Some(error)),
            Unpacker::Unknown(_) | Unpacker::Plain => (Rest::Whole, None),
        };
        if rest == Rest::Cut && plain.bytes == 0 {
            return Err(ImportError::NotASnapshot("it is compressed and truncated before anything can be read"));
        }
        plain.decide(true)?;
        let broken = broken.filter(|_| !plain.is_stopped());
        let ended = findings::Ended {
            rest,
            is_whole: plain.is_done(),
            packed_bytes: plain.packed_bytes,
            other_bytes: plain.other,
            compression: plain.compression,
        };
        match (plain.finish(), broken) {
            // Too little was decompressed.
            (Err(_), Some(error)) => Err(error),
            (Err(error), None) => Err(error),
            (Ok(mut imported), broken) => {
                let found = ended.findings(broken.as_ref());
                imported.findings.splice(0..0, found);
                Ok(imported)
            }
        }
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
            Some(Compression::Zstd) => Unpacker::Zstd(Box::new(Zstd::new(self.plain.limits))),
        };
        self.unpack(&head)
    }

    /// Decompresses bytes, also those after the end of the snapshot: the checksum is behind them.
    fn unpack(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        let plain = &mut self.plain;
        let done = match &mut self.unpacker {
            Unpacker::Unknown(_) | Unpacker::Broken(_) => Ok(()),
            Unpacker::Plain => plain.push(bytes),
            Unpacker::Gzip(gzip) => gzip.push(bytes, &mut |bytes| plain.push(bytes)),
            Unpacker::Zstd(zstd) => zstd.push(bytes, &mut |bytes| plain.push(bytes)),
        };
        match done {
            Err(error) if plain.keeps(&error) => {
                self.unpacker = Unpacker::Broken(error);
                Ok(())
            }
            Err(error) if is_of_packing(&error) => {
                plain.stop(error.clone())?;
                self.unpacker = Unpacker::Broken(error);
                Ok(())
            }
            done => done,
        }
    }
}

/// Whether an error is damage of the compressed stream.
fn is_of_packing(error: &ImportError) -> bool {
    matches!(error, ImportError::Damaged { format: gzip::GZIP | zstd::ZSTD, .. })
}

/// Says of damage in a compressed file that its place is one in the decompressed bytes.
fn decompressed(error: ImportError, compression: Option<Compression>) -> ImportError {
    match (error, compression) {
        (ImportError::Damaged { format: PICKLE, byte, what }, Some(_)) => {
            ImportError::Damaged { format: "decompressed pickle", byte, what }
        }
        (ImportError::Damaged { format: JSON, byte, what }, Some(_)) => {
            ImportError::Damaged { format: "decompressed JSON", byte, what }
        }
        (error, _) => error,
    }
}

impl Plain {
    /// Returns whether an error leaves what was read as it is: the snapshot was complete or had stopped at damage, or it is a
    /// recording, whose chunks have checksums of their own, and only its compression is damaged.
    fn keeps(&self, error: &ImportError) -> bool {
        let is_over = self.is_done() || self.is_stopped();
        is_over || is_of_packing(error) && matches!(self.reader, Reader::Recording(_))
    }

    /// Ends a snapshot where it is damaged, and keeps what precedes that. Returns the error if that is nothing, or if something
    /// else is wrong. A string of four gigabytes is damage, too: whatever is beyond a limit is not read either way.
    fn stop(&mut self, error: ImportError) -> Result<(), ImportError> {
        let is_damage = matches!(error, ImportError::Damaged { .. } | ImportError::TooMuch { .. });
        if !is_damage || !matches!(self.reader, Reader::Pickle(_) | Reader::Json(_)) {
            return Err(error);
        }
        let reader = std::mem::replace(&mut self.reader, Reader::Unknown(Vec::new()));
        match imported(reader, self.compression, Some(&error)) {
            Ok(imported) if !imported.snapshot.devices.is_empty() => {
                self.reader = Reader::Stopped(Box::new(imported));
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Reads decompressed bytes.
    fn push(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        self.bytes += bytes.len() as u64;
        let Self { limits, packed_bytes: packed, .. } = *self;
        let allowed = packed.saturating_mul(limits.ratio).max(limits.ratio_grace_bytes);
        if self.compression.is_some() && self.bytes > allowed.min(limits.plain_bytes) {
            return Err(ImportError::Bomb { packed, plain: self.bytes });
        }
        if let Reader::Unknown(head) = &mut self.reader {
            head.extend_from_slice(bytes);
            self.decide(false)
        } else {
            self.read(bytes)
        }
    }

    /// Passes bytes on to the reader.
    fn read(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        let was_done = self.is_done();
        let most = self.compression.map(|_| self.limits.memory(self.packed_bytes));
        let pushed = match &mut self.reader {
            Reader::Pickle(machine) => machine.push(bytes),
            Reader::Json(json) => json.push(bytes),
            Reader::Unknown(_) | Reader::Recording(_) | Reader::Stopped(_) => Ok(()),
        };
        if let Err(error) = pushed {
            return self.stop(decompressed(error, self.compression));
        }
        let (end, memory) = match &mut self.reader {
            _ if was_done => (Some(0), 0),
            Reader::Unknown(_) | Reader::Stopped(_) => return Ok(()),
            Reader::Pickle(machine) => (machine.ended_at(), machine.memory()),
            Reader::Json(json) => (json.ended_at(), json.memory()),
            Reader::Recording(decoder) => {
                most.into_iter().for_each(|most| decoder.bound(most));
                return decoder.push(bytes);
            }
        };
        if let Some(most) = most.filter(|most| memory as u64 > *most) {
            return Err(ImportError::Costly { packed: self.packed_bytes, memory: most });
        }
        self.read += bytes.len() as u64;
        if let Some(end) = end {
            let after = if was_done { bytes.len() } else { length(self.read.saturating_sub(end)) };
            self.skip(bytes.get(bytes.len().saturating_sub(after)..).unwrap_or(&[]));
        }
        Ok(())
    }

    /// Counts bytes after the end of the snapshot.
    fn skip(&mut self, bytes: &[u8]) {
        let is_padding = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
        let padding = bytes.iter().take_while(|byte| self.other == 0 && is_padding(byte)).count();
        self.other += (bytes.len() - padding) as u64;
    }

    fn is_done(&self) -> bool {
        match &self.reader {
            Reader::Unknown(_) | Reader::Stopped(_) => false,
            Reader::Pickle(machine) => machine.is_done(),
            Reader::Json(json) => json.is_done(),
            // Bytes after its end are damage, which becomes a finding.
            Reader::Recording(_) => false,
        }
    }

    fn is_stopped(&self) -> bool {
        matches!(self.reader, Reader::Stopped(_))
    }

    /// Chooses the reader once the first bytes suffice, and passes them on.
    fn decide(&mut self, is_all: bool) -> Result<(), ImportError> {
        let Reader::Unknown(head) = &mut self.reader else { return Ok(()) };
        let Some(encoding) = format::encoding(head, is_all, self.compression.is_some())? else { return Ok(()) };
        let head = std::mem::take(head);
        let mut bytes = &head[..];
        self.reader = match encoding {
            Encoding::Pickle => {
                // Protocol 1 is not declared, but begins with an opcode that protocol 0 lacks.
                let protocol = u8::from(!head.starts_with(b"("));
                Reader::Pickle(Box::new(Machine::new(self.limits, protocol)))
            }
            Encoding::Json => {
                bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
                Reader::Json(Box::new(Json::new(self.limits)))
            }
            Encoding::Recording => Reader::Recording(Box::new(Decoder::new(self.limits))),
        };
        self.read(bytes)
    }

    /// Returns what was read.
    fn finish(self) -> Result<Imported, ImportError> {
        imported(self.reader, self.compression, None)
    }
}

/// Returns what a reader has read, which is all of a file, or what precedes its damage.
fn imported(
    reader: Reader,
    compression: Option<Compression>,
    damage: Option<&ImportError>,
) -> Result<Imported, ImportError> {
    let stop = |cut_at: Option<u64>| damage.map(Stop::Damage).or(cut_at.map(Stop::Cut));
    let is_packed = compression.is_some();
    let (encoding, protocol, read) = match reader {
        Reader::Unknown(head) => return Err(ImportError::Unknown(head)),
        Reader::Stopped(imported) => return Ok(*imported),
        Reader::Pickle(machine) => {
            let Unpickled { builder, root, protocol, cut_at } = machine.finish()?;
            (Encoding::Pickle, Some(protocol), Read { builder, root, stop: stop(cut_at), is_packed })
        }
        Reader::Json(json) => {
            let (builder, root, cut_at) = json.finish()?;
            (Encoding::Json, None, Read { builder, root, stop: stop(cut_at), is_packed })
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
