//! Journeys: scripts in `journeys/` that lead a real Chromium through the page, run by Node's own test runner.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{program, workspace};

/// Runs all journeys against the page at `url`; their reports go to this process's own output.
pub fn run_journeys(url: &str) -> Result<()> {
    let folder = workspace("tests/journeys");
    ensure!(folder.join("node_modules").is_dir(), "the journeys' one package is missing; tests/run installs it");
    let status = Command::new("node")
        .arg("run.mjs")
        .current_dir(folder)
        .env("VRAMSCOPE_URL", url)
        // For journeys that start servers and jobs of their own.
        .env("VRAMSCOPE_PROGRAM", program::path()?)
        .status()
        .context("starting node")?;
    ensure!(status.success(), "a journey failed");
    Ok(())
}
