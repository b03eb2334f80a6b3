//! Errors of everything that reads untrusted bytes: pickles, JSON, recordings, compressed files, wire messages.
//!
//! A decoder reports a [`Fault`]; the caller, which knows its place in the file, turns it into an [`ImportError`],
//! which says what is wrong, where, and what to do next.

use crate::text::{escaped, is_hidden};
use crate::units::{Bytes, Count};

/// How many characters of the file's own text a message may hold.
const EXCERPT: usize = 24;
/// Bytes of it that are shown in hexadecimal.
const EXCERPT_BYTES: usize = 8;

/// Why a file can't be read. `Display` is for a person; text from the file itself comes last, escaped and cut short.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The file has no bytes.
    #[error("The file is empty. Record a snapshot with torch.cuda.memory._dump_snapshot.")]
    Empty,
    /// A file of another kind, recognized by its first bytes or its contents.
    #[error("Not a PyTorch memory snapshot: {0}. Record one with torch.cuda.memory._dump_snapshot.")]
    NotASnapshot(&'static str),
    /// A sweep's document, which [`sweep::read`](format::sweep::read) reads. Holds the bytes that were pushed so far.
    #[error("This is a sweep, not a memory snapshot. Open it in the page that vramscope serve shows.")]
    Sweep(Vec<u8>),
    /// The first bytes belong to no known format.
    #[error(
        "Not a PyTorch memory snapshot. Record one with torch.cuda.memory._dump_snapshot. The file begins with {}.",
        excerpt(.0)
    )]
    Unknown(Vec<u8>),
    /// A pickle contains an opcode that loads or calls code.
    #[error(
        "Refused: the pickle asks to run code (opcode {opcode} at byte {}). A memory snapshot never does; \
         do not load this file in Python either.",
        Count(*.byte)
    )]
    RunsCode {
        /// The opcode's name in Python's `pickletools`.
        opcode: &'static str,
        /// Its offset in the (decompressed) file.
        byte: u64,
    },
    /// The bytes break the rules of their format.
    #[error("The {format} is damaged at byte {}: {what}. Copy the file again, or record a new one.", Count(*.byte))]
    Damaged {
        /// The format: pickle, JSON, recording, gzip or zstd.
        format: &'static str,
        /// The offset in the bytes of that format.
        byte: u64,
        /// What is wrong.
        what: String,
    },
    /// The bytes are sound, but use a part of their format that this build does not read.
    #[error("This {format} can't be read: {what} (byte {}). {advice}", Count(*.byte))]
    Unsupported {
        /// The format: pickle, recording or zstd.
        format: &'static str,
        /// The offset in the bytes of that format.
        byte: u64,
        /// What is not supported.
        what: String,
        /// What to do about it, as a sentence.
        advice: &'static str,
    },
    /// A recording of a later format version.
    #[error("The recording is of format version {found}; this program reads up to version {known}. Update Vramscope.")]
    Newer {
        /// The file's major version.
        found: u16,
        /// The newest version that this build reads.
        known: u16,
    },
    /// A limit is exceeded that no real snapshot reaches.
    #[error("Refused at byte {}: {what}. No memory snapshot needs that; record a new one.", Count(*.byte))]
    TooMuch {
        /// The offset in the decompressed bytes.
        byte: u64,
        /// What exceeds its limit, and the limit.
        what: String,
    },
    /// A compressed file expands beyond any real snapshot.
    #[error(
        "Refused: {} of compressed data expand beyond {}. Decompress the file yourself if you trust it.",
        Bytes(*.packed),
        Bytes(*.plain)
    )]
    Bomb {
        /// Compressed bytes read.
        packed: u64,
        /// Bytes after decompression.
        plain: u64,
    },
    /// A compressed file takes far more memory than any real snapshot of its length.
    #[error(
        "Refused: {} of compressed data take more than {} of memory to be read. Decompress the file yourself if you trust \
         it.",
        Bytes(*.packed),
        Bytes(*.memory)
    )]
    Costly {
        /// Compressed bytes read.
        packed: u64,
        /// Bytes of memory.
        memory: u64,
    },
}

/// Returns the first bytes of a file, cut short: as quoted text if they are plain text, otherwise in hexadecimal.
fn excerpt(bytes: &[u8]) -> String {
    let start = bytes.get(..EXCERPT).unwrap_or(bytes);
    match start.utf8_chunks().next().map(|chunk| chunk.valid()) {
        // The last character may be cut.
        Some(text)
            if text.len() + 4 > start.len()
                && !text.trim().is_empty()
                && !text.contains(|c: char| is_hidden(c) && !c.is_ascii_whitespace()) =>
        {
            format!("“{}”", escaped(text.trim()))
        }
        _ => {
            let digits: Vec<String> = start.iter().take(EXCERPT_BYTES).map(|byte| format!("{byte:02x}")).collect();
            format!("the bytes {} (hexadecimal)", digits.join(" "))
        }
    }
}

/// The reason why a decoder stopped, without the place in the file. It is returned in a box, so that results stay
/// small.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An opcode that could run code.
    #[error("it asks to run code (opcode {0})")]
    Code(&'static str),
    /// The rules of the format are broken.
    #[error("{0}")]
    Damaged(String),
    /// A part of the format that this build does not read, and what to do about it.
    #[error("{0}")]
    Unsupported(String, &'static str),
    /// A limit is exceeded.
    #[error("{0}")]
    TooMuch(String),
}

/// The result of decoding a part of a file.
pub type Checked<T = ()> = Result<T, Box<Fault>>;

/// Returns a [`Fault::Damaged`].
#[cold]
pub fn damaged(what: impl Into<String>) -> Box<Fault> {
    Box::new(Fault::Damaged(what.into()))
}

/// Returns a [`Fault::Unsupported`]. `advice` is a sentence that says what to do about it.
#[cold]
pub fn unsupported(what: impl Into<String>, advice: &'static str) -> Box<Fault> {
    Box::new(Fault::Unsupported(what.into(), advice))
}

/// Returns a [`Fault::TooMuch`].
#[cold]
pub fn too_much(what: impl Into<String>) -> Box<Fault> {
    Box::new(Fault::TooMuch(what.into()))
}

impl Fault {
    /// Returns the error for a fault at `byte` of a file of `format`.
    pub fn at(self, format: &'static str, byte: u64) -> ImportError {
        match self {
            Self::Code(opcode) => ImportError::RunsCode { opcode, byte },
            Self::Damaged(what) => ImportError::Damaged { format, byte, what },
            Self::Unsupported(what, advice) => ImportError::Unsupported { format, byte, what, advice },
            Self::TooMuch(what) => ImportError::TooMuch { byte, what },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_plain_sentence_or_two() {
        let cases = [
            (
                ImportError::RunsCode { opcode: "REDUCE", byte: 1234 },
                "Refused: the pickle asks to run code (opcode REDUCE at byte 1,234). A memory snapshot never does; do not \
                 load this file in Python either.",
            ),
            (
                ImportError::Unknown(b"\x00\xff<b>&12345678901234567890123456789".to_vec()),
                "Not a PyTorch memory snapshot. Record one with torch.cuda.memory._dump_snapshot. The file begins with \
                 the bytes 00 ff 3c 62 3e 26 31 32 (hexadecimal).",
            ),
            (
                ImportError::Unknown("<b>&12345678901234567é0123456789".into()),
                "Not a PyTorch memory snapshot. Record one with torch.cuda.memory._dump_snapshot. The file begins with \
                 “<b>&12345678901234567é0”.",
            ),
            (
                unsupported("it uses protocol 6", "Save it with protocol 4.").at("pickle", 2_000),
                "This pickle can't be read: it uses protocol 6 (byte 2,000). Save it with protocol 4.",
            ),
            (
                ImportError::Bomb { packed: 1 << 20, plain: 1 << 30 },
                "Refused: 1.00 MiB of compressed data expand beyond 1.00 GiB. Decompress the file yourself if you trust \
                 it.",
            ),
            (
                ImportError::Costly { packed: 1 << 20, memory: 256 << 20 },
                "Refused: 1.00 MiB of compressed data take more than 256 MiB of memory to be read. Decompress the file \
                 yourself if you trust it.",
            ),
        ];
        for (error, want) in cases {
            assert_eq!(error.to_string(), want);
        }
    }
}
