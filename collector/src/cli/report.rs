//! `vramscope report`: prints a report on each file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use shared::analysis::folding::Overrides;
use shared::report::FileReport;

use super::folding::Folding;
use super::read::read;
use super::{print, refuse};

/// The options of `report`.
#[derive(Args, Debug)]
pub(super) struct Report {
    /// Memory snapshots (pickle or JSON) and recordings (.vramscope); plain, .gz or .zst
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folding: Folding,
}

/// What `--json` prints.
#[derive(serde::Serialize)]
struct Files {
    /// The reports in the order of the arguments, without those of unreadable files.
    files: Vec<FileReport>,
}

impl Report {
    /// Reports on every readable file, and prints why the others are not readable.
    pub(super) fn run(self) -> ExitCode {
        let overrides = match self.folding.overrides() {
            Ok(overrides) => overrides,
            Err(sentence) => return refuse(&sentence),
        };
        let mut code = ExitCode::SUCCESS;
        let mut files = Vec::new();
        for path in &self.files {
            match report(path, &overrides) {
                Ok(file) if self.json => files.push(file),
                // Printed at once: the next file may take long.
                Ok(file) => {
                    if print(|out| writeln!(out, "{file}")) != ExitCode::SUCCESS {
                        return ExitCode::FAILURE;
                    }
                }
                Err(sentence) => {
                    code = refuse(&format!("{}: {sentence}", path.display()));
                }
            }
        }
        if self.json {
            let printed = print(|out| {
                serde_json::to_writer_pretty(&mut *out, &Files { files })?;
                writeln!(out)
            });
            return if code == ExitCode::SUCCESS { printed } else { code };
        }
        code
    }
}

/// Reads one file and reports on it.
fn report(path: &Path, overrides: &Overrides) -> Result<FileReport, String> {
    Ok(FileReport::with(path.display().to_string(), read(path)?, overrides.clone()))
}
