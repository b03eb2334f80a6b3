//! What Cargo builds for tests to start or load: the program, the libraries that a job loads, an example.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// Set where all of it is built already.
const BUILT_VARIABLE: &str = "VRAMSCOPE_BUILT";

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Returns the path of a file in the folder of the tests' own profile, such as `examples/NAME`. Cargo builds programs and libraries
/// only for tests of their own packages, so the first caller builds all of them.
pub fn artifact(file: impl AsRef<Path>) -> Result<PathBuf> {
    let folder = match FOLDER.get() {
        Some(folder) => folder,
        None => {
            if std::env::var_os(BUILT_VARIABLE).is_none() {
                build()?;
            }
            // This test is at PROFILE/deps/NAME.
            let test = std::env::current_exe()?;
            let folder = test.ancestors().nth(2).context("the tests run outside a target folder")?.to_path_buf();
            FOLDER.get_or_init(|| folder)
        }
    };
    let path = folder.join(file);
    ensure!(path.is_file(), "nothing is at {}", path.display());
    Ok(path)
}

fn build() -> Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // As if a person had started it: the variables that Cargo sets for a test would make build scripts run again, and everything
    // after them.
    let is_own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_own)) {
        cargo.env_remove(name);
    }
    // Of the whole workspace and beside a test, so that Cargo selects the features that the tests were built with: with others it
    // would build most crates again, which takes minutes.
    cargo.current_dir(workspace("")).args([
        "build",
        "--quiet",
        "--workspace",
        "--lib",
        "--bins",
        "--examples",
        "--test",
        "source",
    ]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    ensure!(cargo.status().context("starting cargo")?.success(), "the program and the libraries did not build");
    Ok(())
}
