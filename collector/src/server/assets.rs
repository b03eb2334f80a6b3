//! The page's files, inside the program.

/// One file of the page.
#[derive(Debug)]
pub(super) struct Asset {
    /// Its path, without the leading slash.
    pub(super) path: &'static str,
    /// What a browser is told that it is.
    pub(super) content_type: &'static str,
    /// Its entity tag, quotes included: another content has another tag.
    pub(super) tag: &'static str,
    /// Its bytes.
    pub(super) plain: &'static [u8],
    /// Its bytes in gzip, where that is smaller.
    pub(super) gzip: Option<&'static [u8]>,
}

/// All files, by path; the build script writes the table.
static ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Whether this build holds the page at all.
pub fn has_page() -> bool {
    !ASSETS.is_empty()
}

/// The file at `path`; the empty path is the page.
pub(super) fn find(path: &str) -> Option<&'static Asset> {
    let path = if path.is_empty() { "index.html" } else { path };
    ASSETS.binary_search_by(|asset| asset.path.cmp(path)).ok().and_then(|i| ASSETS.get(i))
}
