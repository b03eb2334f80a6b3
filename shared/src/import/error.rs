//! Why a file can't be read: one plain sentence each, that says what, where, and what to do next.

use crate::units::{Bytes, Count};

/// How many characters of the file's own text a message may hold.
const EXCERPT: usize = 24;

/// A file that is refused. `Display` is for a person; what comes from the file itself stands last and is cut short.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// No byte at all.
    #[error("The file is empty. Record a snapshot with torch.cuda.memory._dump_snapshot.")]
    Empty,
    /// Something else than a snapshot, told by its first bytes or by what it holds.
    #[error("Not a PyTorch memory snapshot: {0}. Record one with torch.cuda.memory._dump_snapshot.")]
    NotASnapshot(&'static str),
    /// Bytes that begin no format that is known.
    #[error(
        "Not a PyTorch memory snapshot. Record one with torch.cuda.memory._dump_snapshot. The file begins with {}",
        excerpt(.0)
    )]
    Unknown(Vec<u8>),
    /// A pickle with an opcode that calls code or loads it.
    #[error(
        "Refused: the pickle asks to run code (opcode {opcode} at byte {}). A memory snapshot never does; \
         do not load this file in Python either.",
        Count(*.byte)
    )]
    RunsCode {
        /// The opcode's name, as Python's `pickletools` has it.
        opcode: &'static str,
        /// Where it stands in the (decompressed) file.
        byte: u64,
    },
    /// Bytes that break the rules of their format.
    #[error("The {format} is damaged at byte {}: {what}. Copy the file again, or record a new one.", Count(*.byte))]
    Damaged {
        /// The format: pickle, JSON, recording, gzip or zstd.
        format: &'static str,
        /// Where, in the bytes of that format.
        byte: u64,
        /// What is wrong.
        what: String,
    },
    /// A recording in a format that is yet to come.
    #[error("The recording is of format version {found}; this program reads up to version {known}. Update Vramscope.")]
    Newer {
        /// The file's major version.
        found: u16,
        /// The newest that is known.
        known: u16,
    },
    /// More of something than any snapshot holds.
    #[error("Refused at byte {}: {what}. No memory snapshot needs that; record a new one.", Count(*.byte))]
    TooMuch {
        /// Where, in the decompressed bytes.
        byte: u64,
        /// What there is too much of, and the bound.
        what: String,
    },
    /// A compressed file that grows beyond every snapshot.
    #[error(
        "Refused: {} of compressed data grow beyond {}. Decompress the file yourself if you trust it.",
        Bytes(*.packed),
        Bytes(*.plain)
    )]
    Bomb {
        /// Compressed bytes read.
        packed: u64,
        /// Bytes that came out.
        plain: u64,
    },
}

/// The first bytes of a file as text, cut short, with everything that is no plain character escaped.
fn excerpt(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for c in String::from_utf8_lossy(bytes).chars().take(EXCERPT) {
        text.extend(c.escape_default());
    }
    text.push('"');
    text
}

/// What stopped a machine, before it is said where. Boxed wherever it is returned: it is rare, and results stay small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An opcode that could run code.
    Code(&'static str),
    /// Rules of the format are broken.
    Damaged(String),
    /// A bound is passed.
    TooMuch(String),
}

/// A result inside the machines.
pub(crate) type Checked<T = ()> = Result<T, Box<Fault>>;

/// The rules of the format are broken.
#[cold]
pub(crate) fn damaged(what: impl Into<String>) -> Box<Fault> {
    Box::new(Fault::Damaged(what.into()))
}

/// A bound is passed.
#[cold]
pub(crate) fn too_much(what: impl Into<String>) -> Box<Fault> {
    Box::new(Fault::TooMuch(what.into()))
}

impl Fault {
    /// The error, now that it is known where.
    pub(crate) fn at(self, format: &'static str, byte: u64) -> ImportError {
        match self {
            Self::Code(opcode) => ImportError::RunsCode { opcode, byte },
            Self::Damaged(what) => ImportError::Damaged { format, byte, what },
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
                 \"\\u{0}\\u{fffd}<b>&123456789012345678\"",
            ),
            (
                ImportError::Bomb { packed: 1 << 20, plain: 1 << 30 },
                "Refused: 1.00 MiB of compressed data grow beyond 1.00 GiB. Decompress the file yourself if you trust it.",
            ),
        ];
        for (error, want) in cases {
            assert_eq!(error.to_string(), want);
        }
    }
}
