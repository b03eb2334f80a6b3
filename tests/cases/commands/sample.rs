//! The sample trace, read by Python and replayed by an independent count.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use tests::{Folder, workspace};

#[test]
fn python_reads_it_and_its_trace_leads_to_its_segments() -> Result<()> {
    let folder = Folder::new("sample")?;
    let file = folder.join("sample.pickle");
    fs::write(&file, vramscope::workloads::sample::snapshot())?;
    let output = Command::new("python3")
        .arg(workspace("tests/cases/consistent.py"))
        .arg(&file)
        .output()
        .context("starting python3")?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
