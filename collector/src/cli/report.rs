//! `vramscope report`: prints a report on each file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use query::own_rules::OwnRules;
use report::FileReport;

use super::gate::{self, FailOn, GATE_STATUS};
use super::progress::Progress;
use super::read::{given, name_of, read, short_name_of};
use super::rules::RuleOptions;
use super::{UNUSABLE, print_json, refuse, show};

/// The options of `report`.
#[derive(Args, Debug)]
#[command(after_help = GATE_STATUS)]
pub(super) struct Report {
    /// Memory snapshots (pickle or JSON) and recordings (.vramscope); plain, .gz or .zst; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Say everything: pools, categories, every finding
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Exit with 1 if this was found
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = FailOn::Never)]
    fail_on: FailOn,
    #[command(flatten)]
    rules: RuleOptions,
}

/// What `--json` prints.
#[derive(serde::Serialize)]
struct Files {
    /// In the order of the arguments.
    files: Vec<Reported>,
}

/// A file as it is printed.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum Reported {
    Report(Box<FileReport>),
    /// In the place of a file that is unreadable.
    Unreadable {
        path: String,
        /// Why.
        error: String,
    },
}

impl Report {
    /// Reports on every readable file, and prints why the others are not readable.
    pub(super) fn run(self) -> ExitCode {
        let rules = match self.rules.rules() {
            Ok(rules) => rules,
            Err(sentence) => return refuse(&sentence),
        };
        let (mut is_unreadable, mut is_tripped) = (false, false);
        let mut files = Vec::new();
        for path in &self.files {
            let reported = match report(path, &rules) {
                Ok(file) => {
                    is_tripped |= trips(self.fail_on, &file);
                    Reported::Report(Box::new(file))
                }
                Err(sentence) => {
                    is_unreadable = true;
                    refuse(&format!("{}: {sentence}", name_of(path)));
                    Reported::Unreadable { path: given(path), error: sentence }
                }
            };
            match reported {
                reported if self.json => files.push(reported),
                // Printed at once: the next file may take long.
                Reported::Report(file) => {
                    let printed = show(&if self.verbose { format!("{file}\n") } else { format!("{}\n", file.brief()) });
                    if printed != ExitCode::SUCCESS {
                        return printed;
                    }
                }
                Reported::Unreadable { .. } => {}
            }
        }
        if self.json {
            let printed = print_json(&Files { files });
            if printed != ExitCode::SUCCESS {
                return printed;
            }
        }
        if is_unreadable { ExitCode::from(UNUSABLE) } else { gate::code(is_tripped) }
    }
}

/// Whether a file trips the gate.
fn trips(gate: FailOn, file: &FileReport) -> bool {
    let found = file.findings.iter().map(|finding| finding.severity);
    gate.is_tripped(false, found) || file.devices.iter().any(|device| gate.is_tripped_by(&device.diagnosis))
}

/// Reads one file and reports on it.
fn report(path: &Path, rules: &OwnRules) -> Result<FileReport, String> {
    let imported = read(path)?;
    let _progress = Progress::new(format!("Looking into {}", short_name_of(path)));
    Ok(FileReport::with(given(path), imported, rules.clone()))
}
