//! The page's files, which the program embeds (`collector/program`).
//!
//! A file that gzip makes smaller is embedded in its compressed forms alone: nearly every client asks for those, and the
//! plain forms would be a fifth of the program.

use std::borrow::Cow;
use std::io::Read as _;
use std::sync::OnceLock;

use flate2::read::GzDecoder;

/// A file of the page.
#[derive(Debug)]
pub struct Asset {
    /// The path in a URL, without the leading slash.
    pub path: &'static str,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The hash of the content, in hexadecimal digits.
    pub hash: &'static str,
    /// Whether the path contains the hash, so that the content at this path never changes.
    pub is_immutable: bool,
    /// The content; `None` where only the compressed forms are embedded.
    pub plain: Option<&'static [u8]>,
    /// The content in Brotli, where that is smaller. Published pages only.
    pub brotli: Option<&'static [u8]>,
    /// The content in gzip, where that is smaller. Release builds only.
    pub gzip: Option<&'static [u8]>,
}

impl Asset {
    /// Returns the content, unpacked where only the compressed forms are embedded.
    pub(crate) fn plain(&self) -> Cow<'static, [u8]> {
        if let Some(plain) = self.plain {
            return Cow::Borrowed(plain);
        }
        let mut plain = Vec::new();
        // The build script packed it, and reading from memory can't fail.
        let _ = GzDecoder::new(self.gzip.unwrap_or_default()).read_to_end(&mut plain);
        Cow::Owned(plain)
    }
}

/// All files, sorted by path.
static ASSETS: OnceLock<&[Asset]> = OnceLock::new();

/// Sets the page: its files, sorted by path. The first call decides.
pub fn set_page(assets: &'static [Asset]) {
    let _ = ASSETS.set(assets);
}

fn assets() -> &'static [Asset] {
    ASSETS.get().copied().unwrap_or_default()
}

/// Returns whether this program contains the page.
pub fn has_page() -> bool {
    !assets().is_empty()
}

/// Returns the file at `path`; the empty path is `index.html`.
pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    let path = if path.is_empty() { "index.html" } else { path };
    assets().binary_search_by(|asset| asset.path.cmp(path)).ok().and_then(|i| assets().get(i))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn a_file_that_is_only_embedded_packed_is_unpacked() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(b"body {}").unwrap();
        let packed: &'static [u8] = encoder.finish().unwrap().leak();
        let asset = Asset {
            path: "a.css",
            content_type: "text/css",
            hash: "0a",
            is_immutable: false,
            plain: None,
            brotli: None,
            gzip: Some(packed),
        };
        assert_eq!(*asset.plain(), *b"body {}");
        assert_eq!(*Asset { plain: Some(b"i {}"), ..asset }.plain(), *b"i {}");
    }
}
