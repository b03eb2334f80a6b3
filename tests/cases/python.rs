//! The Python package: its tests, run by Python. Those with real PyTorch jobs run where `VRAMSCOPE_TORCH_PYTHON` names a
//! Python that has torch (and a GPU, or something that looks like one); elsewhere they say skipped.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::workspace;

/// Builds what the tests load, and gives the folder that it is in.
fn build(arguments: &[&str]) -> Result<PathBuf> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace("")).args(["build", "--quiet", "--package", "pluggable"]).args(arguments);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    ensure!(cargo.status().context("starting cargo")?.success(), "the library for PyTorch did not build");
    // This test is at PROFILE/deps/NAME, the library beside `deps`.
    let test = std::env::current_exe()?;
    Ok(test.ancestors().nth(2).context("the tests run outside a target folder")?.to_owned())
}

#[test]
fn the_package_passes_its_tests() -> Result<()> {
    let has_torch = std::env::var_os("VRAMSCOPE_TORCH_PYTHON").is_some();
    let mut python = Command::new("python3");
    python.current_dir(workspace("collector/python/tests")).args(["-m", "unittest", "discover", "-p", "test_*.py"]);
    if has_torch {
        let folder = build(&["--lib", "--example", "recording_to_pickle"])?;
        python.env("VRAMSCOPE_LIBRARY", folder.join("libvramscope_pluggable.so"));
        python.env("VRAMSCOPE_TO_PICKLE", folder.join("examples/recording_to_pickle"));
    } else {
        println!("skipped: the jobs with real PyTorch. Name a Python that has torch in VRAMSCOPE_TORCH_PYTHON.");
    }
    let output = python.output().context("running python3")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
