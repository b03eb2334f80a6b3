//! The test harness: the built program, a server, a small HTTP client, collectors and viewers that are scripted by a test,
//! a driver library that needs no GPU, and journeys through a real browser.
//!
//! The tests are in `cases/` (one boundary per file) and `journeys/` (one way through the page per file).

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

/// Returns a path within the workspace.
pub fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
