//! The harness: the built program, a server of it, a small HTTP client, collectors and
//! viewers that say what a test wants said, a driver library without a GPU, and journeys
//! through a real browser.
//!
//! The cases themselves are in `cases/` (one boundary a file) and `journeys/` (one way through the page a file).

pub mod browser;
#[cfg(target_os = "linux")]
pub mod fakecuda;
mod folder;
pub mod http;
pub mod peer;
pub mod program;
pub mod proxy;
pub mod server;
pub mod stream;

use std::path::{Path, PathBuf};

pub use folder::Folder;

/// A path within the workspace.
pub fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
