//! Builds the page and embeds it, so that `cargo run` is all that a user types.
//!
//! `VRAMSCOPE_PAGE=skip` leaves the page out (for `check` and `clippy`, which run build scripts too);
//! `VRAMSCOPE_PAGE=FOLDER` embeds a page that is already built. The feature `published-page` makes the page as users install it.

mod bind;
mod compile;
mod embed;
mod names;
mod pack;
mod page;
#[cfg(feature = "published-page")]
mod split;
mod target;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};

/// Says where the page comes from.
const PAGE_VARIABLE: &str = "VRAMSCOPE_PAGE";

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed={PAGE_VARIABLE}");
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Cargo shows each such line as an error of this package.
            println!("cargo::error={}", format!("{error:#}").replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let dist = match std::env::var(PAGE_VARIABLE) {
        Ok(choice) if choice == "skip" => None,
        Ok(choice) if !choice.is_empty() => {
            let folder = Path::new(&choice).canonicalize().with_context(|| format!("{PAGE_VARIABLE}={choice}"))?;
            println!("cargo::rerun-if-changed={}", folder.display());
            Some(folder)
        }
        _ => Some(page::build(&out)?),
    };
    embed::write(dist.as_deref(), &out)
}

/// Returns a variable that cargo sets for every build script.
fn variable(name: &str) -> Result<String> {
    std::env::var(name).map_err(|_| anyhow!("{name} is not set: this program is run by cargo"))
}

/// How much is done for a page's size and speed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finish {
    /// As little as an edit can wait for.
    Debug,
    Release,
    /// As users install it.
    Published,
}

/// Returns the finish of this build's page.
fn finish() -> Result<Finish> {
    Ok(if cfg!(feature = "published-page") {
        Finish::Published
    } else if variable("PROFILE")? == "release" {
        Finish::Release
    } else {
        Finish::Debug
    })
}

/// Returns the folder that holds everything about the page that outlives one build: a target folder of its own, since
/// the outer cargo holds the lock of the usual one.
fn web_target() -> Result<PathBuf> {
    let target = std::env::var("CARGO_TARGET_DIR").map(PathBuf::from);
    Ok(target.or_else(|_| workspace().map(|folder| folder.join("target")))?.join("web"))
}

/// Returns the workspace's folder.
fn workspace() -> Result<PathBuf> {
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    package.ancestors().nth(2).map(Path::to_path_buf).ok_or_else(|| anyhow!("the workspace folder is missing"))
}
