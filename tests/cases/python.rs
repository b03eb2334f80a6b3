//! Runs the tests of the Python package: those for any Python, and those with real PyTorch jobs.
//!
//! `VRAMSCOPE_TORCH_PYTHON` names a Python (or a program that starts one) with torch and a real or simulated GPU. Without
//! it, the tests with PyTorch are skipped, with a message.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::workspace;

/// Returns the Python with torch. Without one, prints that the test is skipped.
fn torch_python(test: &str) -> Option<OsString> {
    let python = std::env::var_os("VRAMSCOPE_TORCH_PYTHON").filter(|python| !python.is_empty());
    if python.is_none() {
        eprintln!("{test} skipped: VRAMSCOPE_TORCH_PYTHON names no Python with torch");
    }
    python
}

/// Builds a package with Cargo, and returns the path of its file.
fn built(package: &str, file: &str) -> Result<PathBuf> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace("")).args(["build", "--quiet", "--package", package]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    ensure!(cargo.status().context("starting cargo")?.success(), "{package} did not build");
    let test = std::env::current_exe()?;
    let path = test.ancestors().nth(2).context("the tests run outside a target folder")?.join(file);
    ensure!(path.is_file(), "nothing is at {}", path.display());
    Ok(path)
}

/// Builds an example of the library's package, and returns its path.
fn built_example(name: &str) -> Result<PathBuf> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace("")).args(["build", "--quiet", "--package", "pluggable", "--example", name]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    ensure!(cargo.status().context("starting cargo")?.success(), "{name} did not build");
    let test = std::env::current_exe()?;
    Ok(test.ancestors().nth(2).context("the tests run outside a target folder")?.join("examples").join(name))
}

#[test]
fn pytorch_allocates_through_the_library() -> Result<()> {
    let Some(python) = torch_python("pytorch_allocates_through_the_library") else { return Ok(()) };
    let output = Command::new(python)
        .current_dir(workspace("collector/python/tests"))
        .args(["-m", "unittest", "-v", "test_allocator"])
        .env("VRAMSCOPE_LIBRARY", built("pluggable", "libvramscope_pluggable.so")?)
        .env("VRAMSCOPE_PROGRAM", built("vramscope", "vramscope")?)
        .output()
        .context("starting Python")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    // A run in which every test is skipped does not count.
    ensure!(errors.contains("test_a_training_loop_is_the_same") && !errors.contains("no GPU that it sees"), "{errors}");
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn stacks_are_gathered_in_any_python() -> Result<()> {
    let folder = tests::fakecuda::FakeFolder::new("stacks_are_gathered_in_any_python")?;
    let mut command = Command::new("python3");
    folder.serve(&mut command);
    let output = command
        .arg(workspace("collector/python/tests/test_allocator_stacks.py"))
        .env("VRAMSCOPE_LIBRARY", built("pluggable", "libvramscope_pluggable.so")?)
        .output();
    let Ok(output) = output else {
        eprintln!("stacks_are_gathered_in_any_python skipped: there is no python3");
        return Ok(());
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && errors.contains("Ran 1 test") && !errors.contains("skipped"), "{errors}");
    Ok(())
}

#[test]
fn the_package_passes_its_tests() -> Result<()> {
    let mut python = Command::new("python3");
    python.current_dir(workspace("collector/python/tests")).args(["-m", "unittest", "discover", "-p", "test_*.py"]);
    if torch_python("the jobs of the_package_passes_its_tests").is_some() {
        python.env("VRAMSCOPE_LIBRARY", built("pluggable", "libvramscope_pluggable.so")?);
        python.env("VRAMSCOPE_TO_PICKLE", built_example("recording_to_pickle")?);
    }
    let output = python.output().context("running python3")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
