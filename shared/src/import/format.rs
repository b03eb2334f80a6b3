//! What a file is, told by its first bytes and never by its name.

use std::fmt;

use super::{gzip, zstd};
use crate::error::ImportError;
use crate::format::MAGIC;

/// How a snapshot is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As `_dump_snapshot` and the C++ pickler write it.
    Pickle,
    /// As `json.dumps` writes it.
    Json,
    /// A recording in the project's own [`format`](crate::format).
    Recording,
}

/// What a file is packed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// How the snapshot is written down.
    pub encoding: Encoding,
    /// What the file is packed with, if it is.
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

/// Bytes after which a file that is still nothing known is given up.
const ENOUGH: usize = 64;

/// What a file is packed with. `None` while it can't be told yet.
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

/// How the snapshot in a (decompressed) file is written down. `None` while it can't be told yet.
pub(super) fn encoding(head: &[u8], is_all: bool, is_unpacked: bool) -> Result<Option<Encoding>, ImportError> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    match head {
        // Protocols 2 to 5 say so; 0 and 1 begin with a dict or a list.
        [0x80, 2..=5, ..] | [b'(' | b']' | b'}', _, ..] => return Ok(Some(Encoding::Pickle)),
        // All that a text copy leaves of it: the decoder says what happened to the rest.
        _ if head.starts_with(&MAGIC[..4]) => return Ok(Some(Encoding::Recording)),
        _ if text.starts_with(b"{") || text.starts_with(b"[") => return Ok(Some(Encoding::Json)),
        _ if !is_all && head.len() < ENOUGH => return Ok(None),
        _ => {}
    }
    let kind = if head.starts_with(b"PK\x03\x04") {
        "it is a zip archive, such as torch.save writes"
    } else if text.starts_with(b"<") {
        "it is a web page or XML; download the file itself"
    } else if text.starts_with(b"version https://git-lfs") {
        "it is a Git LFS pointer; fetch the file itself with git lfs pull"
    } else if is_unpacked && compression(head, true).flatten().is_some() {
        "it is compressed twice; decompress it once"
    } else if head.is_empty() {
        "it is compressed and empty"
    } else {
        return Err(ImportError::Unknown(head.to_vec()));
    };
    Err(ImportError::NotASnapshot(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell() {
        let cases: &[(&[u8], Option<Encoding>)] = &[
            (b"\x80\x04\x95", Some(Encoding::Pickle)),
            (b"(dp0\n", Some(Encoding::Pickle)),
            (b"}q\x00", Some(Encoding::Pickle)),
            (b"]q\x00", Some(Encoding::Pickle)),
            (b"\x89VRS\r\n\x1a\n\x01\0\0\0", Some(Encoding::Recording)),
            (b"\x89VRS\n", Some(Encoding::Recording)),
            (b"\x89VR", None),
            (b"  \n{\"", Some(Encoding::Json)),
            (b"\xef\xbb\xbf[", Some(Encoding::Json)),
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
        assert!(matches!(encoding(b"\x1f\x8b\x08\x00", true, true), Err(ImportError::NotASnapshot(_))));
        assert_eq!(compression(b"\x1f\x8b", false), Some(Some(Compression::Gzip)));
        assert_eq!(compression(&[0x50, 0x2a, 0x4d, 0x18], false), Some(Some(Compression::Zstd)));
        assert_eq!(compression(b"\x28\xb5", false), None);
        assert_eq!(compression(b"{\"a\":", false), Some(None));
        assert_eq!(Format { encoding: Encoding::Json, compression: Some(Compression::Zstd) }.to_string(), "JSON, zstd");
    }
}
