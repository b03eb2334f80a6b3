//! `vramscope report`: prints a report on each file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use shared::analysis::own_rules::OwnRules;
use shared::report::FileReport;

use super::read::read;
use super::rules::RuleOptions;
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
    /// Compare two steps by line, such as 3:40: what the second holds more than the first
    #[arg(long, value_name = "N:M", value_parser = steps)]
    steps: Option<(u64, u64)>,
    #[command(flatten)]
    rules: RuleOptions,
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
        let rules = match self.rules.rules() {
            Ok(rules) => rules,
            Err(sentence) => return refuse(&sentence),
        };
        let mut code = ExitCode::SUCCESS;
        let mut files = Vec::new();
        for path in &self.files {
            match report(path, &rules, self.steps) {
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
fn report(path: &Path, rules: &OwnRules, steps: Option<(u64, u64)>) -> Result<FileReport, String> {
    Ok(FileReport::with(path.display().to_string(), read(path)?, rules.clone(), steps))
}

/// Reads the numbers of two steps: `3:40`.
fn steps(text: &str) -> Result<(u64, u64), String> {
    let numbers = text.split_once(':').and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    numbers.ok_or_else(|| "write two numbers of steps, such as 3:40".to_owned())
}
