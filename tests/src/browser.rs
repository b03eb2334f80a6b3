//! Journeys: scripts in `journeys/` that drive a real Chromium through the page, run by Node's test runner.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::fakecuda::FakeFolder;
use crate::{program, workspace};

/// Runs all journeys against the page at `url`. They print their reports to the output of this process.
pub fn run_journeys(url: &str) -> Result<()> {
    let folder = workspace("tests/journeys");
    ensure!(folder.join("node_modules").is_dir(), "the journeys' packages are missing; tests/run installs them");
    let driver = FakeFolder::new("journeys")?;
    let status = Command::new("node")
        .arg("run.mjs")
        .current_dir(folder)
        .env("VRAMSCOPE_URL", url)
        // For journeys that start further servers and jobs.
        .env("VRAMSCOPE_PROGRAM", program::path()?)
        .env("VRAMSCOPE_DRIVER", driver.path())
        .status()
        .context("starting node")?;
    ensure!(status.success(), "a journey failed");
    Ok(())
}
