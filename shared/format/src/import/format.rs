//! File formats, recognized by the first bytes and never by the name.

use std::fmt;

use super::{gzip, zstd};
use crate::MAGIC;
use crate::pickle::{PICKLE, newer_protocol};
use crate::sweep;
use trace::error::ImportError;

/// The encoding of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A pickle, as `_dump_snapshot` and the C++ pickler write it.
    Pickle,
    /// JSON, as `json.dumps` writes it.
    Json,
    /// A recording in the project's own [`format`](crate).
    Recording,
}

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The encoding of the snapshot.
    pub encoding: Encoding,
    /// The compression, if the file is compressed.
    pub compression: Option<Compression>,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.encoding {
            Encoding::Pickle => "pickle",
            Encoding::Json => "JSON",
            Encoding::Recording => "recording",
        })?;
        match self.compression {
            Some(Compression::Gzip) => f.write_str(", gzip"),
            Some(Compression::Zstd) => f.write_str(", zstd"),
            None => Ok(()),
        }
    }
}

/// Bytes after which an unrecognized file is refused.
const ENOUGH: usize = 512;

/// What a tar archive has at byte 257, in the header of its first file: POSIX.1-1988.
const TAR: &[u8] = b"ustar";

/// Recognizes the compression of a file; `None` while more bytes are needed.
pub(super) fn compression(head: &[u8], is_all: bool) -> Option<Option<Compression>> {
    if head.starts_with(&gzip::MAGIC) {
        return Some(Some(Compression::Gzip));
    }
    if let Some(&magic) = head.first_chunk::<4>() {
        let packed = magic == zstd::MAGIC || zstd::is_skippable(magic);
        return Some(packed.then_some(Compression::Zstd));
    }
    is_all.then_some(None)
}

/// Recognizes the encoding of a (decompressed) file; `None` while more bytes are needed.
pub(super) fn encoding(head: &[u8], is_all: bool, is_unpacked: bool) -> Result<Option<Encoding>, ImportError> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    match head {
        // Protocols 2 to 5 declare themselves; 0 and 1 begin with a dict or a list, which protocol 0 writes in letters.
        [0x80, 2..=5, ..] | [b']' | b'}', _, ..] | [b'(', b'd' | b'l', b'S' | b'V' | b'(' | b'.', ..] => {
            return Ok(Some(Encoding::Pickle));
        }
        _ if is_line_of_pickle(head) => return Ok(Some(Encoding::Pickle)),
        // Later protocols declare themselves in the same way.
        [0x80, protocol @ 6..=9, ..] => return Err(newer_protocol(*protocol).at(PICKLE, 0)),
        // What a copy as text leaves intact: the decoder reports the damage.
        _ if head.starts_with(&MAGIC[..4]) => return Ok(Some(Encoding::Recording)),
        _ if text.starts_with(b"{") => match sweep::begins(text) {
            Some(true) if is_unpacked => {}
            Some(true) => return Err(ImportError::Sweep(head.to_vec())),
            None if !is_all && head.len() < ENOUGH => return Ok(None),
            _ => return Ok(Some(Encoding::Json)),
        },
        // Lines of a log begin with a bracket, too.
        _ if text
            .strip_prefix(b"[")
            .is_some_and(|rest| matches!(rest.trim_ascii_start(), [b'{' | b'[' | b']', ..])) =>
        {
            return Ok(Some(Encoding::Json));
        }
        _ if !is_all && head.len() < ENOUGH => return Ok(None),
        _ => {}
    }
    let kind = if head.get(257..).is_some_and(|rest| rest.starts_with(TAR)) {
        "it is a tar archive; unpack it and open the file inside"
    } else if head.starts_with(b"PK\x03\x04") {
        "it is a zip archive, such as torch.save writes"
    } else if text.starts_with(b"<") {
        "it is a web page or XML; download the file itself"
    } else if text.starts_with(b"version https://git-lfs") {
        "it is a Git LFS pointer; fetch the file itself with git lfs pull"
    } else if sweep::begins(text) == Some(true) {
        "it is a compressed sweep; decompress it and open it in the page"
    } else if is_unpacked && compression(head, true).flatten().is_some() {
        "it is compressed twice; decompress it once"
    } else if head.is_empty() {
        "it is compressed and empty"
    } else if is_nearly_recording(head) {
        let what = "its first bytes are nearly those of a recording".to_owned();
        return Err(ImportError::Damaged { format: "recording", byte: 0, what });
    } else {
        return Err(ImportError::Unknown(head.to_vec()));
    };
    Err(ImportError::NotASnapshot(kind))
}

/// Returns whether a file begins as a pickle of protocol 0 does: most of its opcodes take the rest of a line, and no name has a
/// space. Lines of a log in brackets have some.
fn is_line_of_pickle(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n');
    let is_line = |line: &[u8]| line.starts_with(b"(") && !line.contains(&b' ');
    lines.next().is_some_and(is_line) && lines.next().is_some()
}

/// Returns whether a file begins with the mark of a recording but for two bytes at most.
fn is_nearly_recording(head: &[u8]) -> bool {
    head.len() >= MAGIC.len() && head.iter().zip(&MAGIC).filter(|(byte, known)| byte != known).count() <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognized_by_their_first_bytes() {
        let cases: &[(&[u8], Option<Encoding>)] = &[
            (b"\x80\x04\x95", Some(Encoding::Pickle)),
            (b"(dp0\n", Some(Encoding::Pickle)),
            (b"}q\x00", Some(Encoding::Pickle)),
            (b"]q\x00", Some(Encoding::Pickle)),
            (b"\x89VRS\r\n\x1a\n\x01\0\0\0", Some(Encoding::Recording)),
            (b"\x89VRS\n", Some(Encoding::Recording)),
            (b"\x89VR", None),
            (b"  \n{\"s", Some(Encoding::Json)),
            (b"{\"format\": 1", Some(Encoding::Json)),
            (b"{\"form", None),
            (b"(ios\nsystem", Some(Encoding::Pickle)),
            (b"(dp0", None),
            (b"\xef\xbb\xbf[", None),
            (b"\xef\xbb\xbf[\n {", Some(Encoding::Json)),
            (b"[]", Some(Encoding::Json)),
            (b"\x80", None),
            (b" ", None),
        ];
        for (head, want) in cases {
            assert_eq!(encoding(head, false, false).unwrap(), *want, "{head:?}");
        }
        for head in
            [&b"PK\x03\x04aaaa"[..], b"<!doctype html>", b"\x80\x08..", b"hello", b"\x80", b"version https://git-lfs"]
        {
            assert!(encoding(head, true, false).is_err(), "{head:?}");
        }
        for text in
            [&b"(deep in a log)"[..], b"(loss is nan)", b"[rank0]: torch.OutOfMemoryError", b"[2026-11-21 18:00] x"]
        {
            assert_eq!(encoding(text, true, false), Err(ImportError::Unknown(text.to_vec())), "{text:?}");
        }
        let sweep = b"{\"format\": \"vramscope sweep 1\"";
        assert_eq!(encoding(sweep, false, false), Err(ImportError::Sweep(sweep.to_vec())));
        assert!(matches!(encoding(sweep, false, true), Err(ImportError::NotASnapshot(_))));
        let tar = [&b"leak.pickle"[..], &[0; 246], b"ustar\0", b"00", &[0; 247]].concat();
        assert_eq!(encoding(&tar[..300], false, true), Ok(None));
        let refused = encoding(&tar, false, true).unwrap_err();
        assert!(refused.to_string().contains("it is a tar archive; unpack it"), "{refused}");
        assert_eq!(encoding(b"{\"form", true, false), Ok(Some(Encoding::Json)));
        assert!(matches!(encoding(b"\x1f\x8b\x08\x00", true, true), Err(ImportError::NotASnapshot(_))));
        assert_eq!(compression(b"\x1f\x8b", false), Some(Some(Compression::Gzip)));
        assert_eq!(compression(&[0x50, 0x2a, 0x4d, 0x18], false), Some(Some(Compression::Zstd)));
        assert_eq!(compression(b"\x28\xb5", false), None);
        assert_eq!(compression(b"{\"a\":", false), Some(None));
        assert_eq!(Format { encoding: Encoding::Json, compression: Some(Compression::Zstd) }.to_string(), "JSON, zstd");
    }
}
