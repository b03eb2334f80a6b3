//! Decompresses a small file as a whole: a script or a configuration, which is no trace.

use super::format::{Compression, compression};
use super::gzip::{GZIP, Gzip};
use super::rest::Rest;
use super::zstd::{ZSTD, Zstd};
use trace::error::{ImportError, damaged};
use trace::limits::ImportLimits;

/// Returns the contents of a file that may be compressed by gzip or zstd. A file that is not compressed is returned as it is.
///
/// # Errors
///
/// Fails if the file is damaged or cut off, or if it has more than `most` bytes when decompressed.
pub fn unpacked(bytes: Vec<u8>, most: usize) -> Result<Vec<u8>, ImportError> {
    let mut plain = Vec::new();
    let mut keep = |piece: &[u8]| {
        plain.extend_from_slice(piece);
        if plain.len() > most {
            return Err(ImportError::Bomb { packed: bytes.len() as u64, plain: plain.len() as u64 });
        }
        Ok(())
    };
    let (format, rest) = match compression(&bytes, true).flatten() {
        None => return Ok(bytes),
        Some(Compression::Gzip) => {
            let mut gzip = Gzip::new();
            gzip.push(&bytes, &mut keep)?;
            (GZIP, gzip.rest())
        }
        Some(Compression::Zstd) => {
            let mut zstd = Zstd::new(ImportLimits::default());
            zstd.push(&bytes, &mut keep)?;
            (ZSTD, zstd.rest())
        }
    };
    let what = match rest {
        Rest::Whole => return Ok(plain),
        Rest::Cut => "it ends too early",
        Rest::Other(_) => "other bytes follow it",
    };
    Err(damaged(what).at(format, bytes.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `hello\n`, as `gzip -9n` writes it.
    const GZIP: &[u8] =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\x00\x20\x30\x3a\x36\x06\x00\x00\x00";
    /// `hello\n`, as one raw block without a checksum.
    const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd\x20\x06\x31\x00\x00hello\n";

    #[test]
    fn both_compressions_and_none_are_read_and_their_damage_is_an_error() {
        let text = |bytes: &[u8], most| unpacked(bytes.to_vec(), most);
        for bytes in [GZIP, ZSTD, b"hello\n"] {
            assert_eq!(text(bytes, 6), Ok(b"hello\n".to_vec()));
        }
        for bytes in [GZIP, ZSTD] {
            assert!(matches!(text(bytes, 5), Err(ImportError::Bomb { plain: 6, .. })));
            for end in 5..bytes.len() {
                assert!(text(&bytes[..end], 6).is_err(), "{end} of {bytes:?}");
            }
        }
        assert_eq!(text(b"", 0), Ok(Vec::new()));
    }
}
