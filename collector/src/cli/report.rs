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
    /// Compare two steps by line, such as 3:40: what the second holds more than the first
    #[arg(long, value_name = "N:M", value_parser = steps)]
    steps: Option<(u64, u64)>,
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
            let reported = match report(path, &rules, self.steps) {
                Ok(file) => {
                    is_tripped |= trips(self.fail_on, &file);
                    // The report says which it has.
                    is_unreadable |= self.steps.is_some() && !compares(&file);
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

/// Whether a device of a file has both steps that are to be compared.
fn compares(file: &FileReport) -> bool {
    let mut steps = file.devices.iter().filter_map(|device| device.steps.as_ref());
    steps.any(|steps| steps.earlier.is_some() && steps.later.is_some())
}

/// Reads one file and reports on it.
fn report(path: &Path, rules: &OwnRules, steps: Option<(u64, u64)>) -> Result<FileReport, String> {
    let imported = read(path)?;
    let _progress = Progress::new(format!("Looking into {}", short_name_of(path)));
    Ok(FileReport::with(given(path), imported, rules.clone(), steps))
}

/// Reads the numbers of two steps: `3:40`.
fn steps(text: &str) -> Result<(u64, u64), String> {
    let numbers = text.split_once(':').and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    numbers.ok_or_else(|| "write two numbers of steps, such as 3:40".to_owned())
}
