//! The compilation target of the page, added by rustup where it is missing.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

/// The target that browsers run.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";

/// Makes sure that the compiler has a standard library for [`WASM`].
pub(crate) fn ensure(rustc: &str) -> Result<()> {
    if is_installed(rustc) {
        return Ok(());
    }
    println!("cargo::warning=The target {WASM} is missing; adding it with `rustup target add {WASM}`.");
    // Cargo shows rustup's output only if this script fails.
    let added = Command::new("rustup").args(["target", "add", WASM]).status().is_ok_and(|status| status.success());
    if added && is_installed(rustc) {
        return Ok(());
    }
    bail!("The page needs the Rust target {WASM}, which could not be added. Install it with: rustup target add {WASM}");
}

/// Returns whether the target's library folder exists and is not empty.
fn is_installed(rustc: &str) -> bool {
    let Ok(output) = Command::new(rustc).args(["--print", "target-libdir", "--target", WASM]).output() else {
        return false;
    };
    let folder = String::from_utf8_lossy(&output.stdout);
    Path::new(folder.trim()).read_dir().is_ok_and(|mut entries| entries.next().is_some())
}
