//! The page's files, embedded in the program.

/// A file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    /// The path in a URL, without the leading slash.
    pub(crate) path: &'static str,
    /// The value of `Content-Type`.
    pub(crate) content_type: &'static str,
    /// The hash of the content, in hexadecimal digits.
    pub(crate) hash: &'static str,
    /// Whether the path contains the hash, so that the content at this path never changes.
    pub(crate) is_immutable: bool,
    /// The content.
    pub(crate) plain: &'static [u8],
    /// The content in Brotli, where that is smaller. Release builds only.
    pub(crate) brotli: Option<&'static [u8]>,
    /// The content in gzip, where that is smaller. Release builds only.
    pub(crate) gzip: Option<&'static [u8]>,
}

/// All files, sorted by path; the build script writes the table.
static ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Returns whether this build contains the page.
pub fn has_page() -> bool {
    !ASSETS.is_empty()
}

/// Returns the file at `path`; the empty path is `index.html`.
pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    let path = if path.is_empty() { "index.html" } else { path };
    ASSETS.binary_search_by(|asset| asset.path.cmp(path)).ok().and_then(|i| ASSETS.get(i))
}
