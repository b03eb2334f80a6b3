#![doc = include_str!("../README.md")]

pub mod browser;
#[cfg(target_os = "linux")]
pub mod fakecuda;
mod folder;
pub mod http;
pub mod peer;
pub mod program;
pub mod proxy;
pub mod s3;
pub mod server;
pub mod soak;
pub mod stream;
pub mod tls;

use std::path::{Path, PathBuf};

pub use folder::Folder;

/// Returns a path within the workspace.
pub fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
