//! `vramscope doctor`: tells why memory ran out, what else is wrong with a trace, and what to try.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use explain::{Explanation, WANTED};
use format::import::{Imported, unpacked};
use query::finding::FindingCode;
use query::own_rules::OwnRules;
use report::{DiagnosisReport, FileDiagnosis, FindingReport};
use serde::Serialize;
use trace::limits::PASTED_BYTES;
use trace::units::counted;

use super::gate::{self, FailOn, GATE_STATUS};
use super::progress::Progress;
use super::read::{self, name_of, short_name_of};
use super::rules::RuleOptions;
use super::{UNUSABLE, print_json, refuse, show};

/// The options of `doctor`.
#[derive(Args, Debug)]
#[command(after_help = GATE_STATUS)]
pub(super) struct Doctor {
    /// Memory snapshots and recordings, plain, .gz or .zst; or the text of an out-of-memory error, of memory_stats() or of
    /// memory_summary(). `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Say everything that was found, not only what matters most
    #[arg(short, long)]
    verbose: bool,
    /// Explain another failed request than the one that ended the run: the Nth, from 1. -v lists them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    failure: Option<u32>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Exit with 1 if this was found
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = FailOn::Oom)]
    fail_on: FailOn,
    #[command(flatten)]
    rules: RuleOptions,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Files {
    /// In the order of the arguments.
    files: Vec<Examined>,
}

/// What was found in one file.
#[derive(Default, Serialize)]
struct Examined {
    path: String,
    devices: Vec<DiagnosisReport>,
    /// Findings that concern no single device.
    findings: Vec<FindingReport>,
    /// Why the file is unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What a pasted text says: one explanation for each error in it, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pasted: Vec<Explanation>,
    #[serde(skip)]
    text: String,
}

/// What a file contains.
enum Contents {
    Trace(Box<Imported>),
    Pasted(Vec<Explanation>),
}

impl Doctor {
    /// Examines every file. The exit code is 1 if what `--fail-on` names was found in one of them, and 2 if one is unreadable.
    pub(super) fn run(self) -> ExitCode {
        let rules = match self.rules.rules() {
            Ok(rules) => rules,
            Err(sentence) => return refuse(&sentence),
        };
        let (mut is_tripped, mut is_unreadable) = (false, false);
        let mut files = Vec::new();
        for path in &self.files {
            let examined = Examined::of(path, &rules, &self);
            is_tripped |= examined.trips(self.fail_on);
            if let Some(error) = &examined.error {
                is_unreadable = true;
                refuse(&format!("{}: {error}", name_of(path)));
            }
            if self.json {
                files.push(examined);
            } else if examined.error.is_none() {
                let printed = show(&format!("{}\n", examined.text));
                if printed != ExitCode::SUCCESS {
                    return printed;
                }
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

impl Examined {
    fn of(path: &Path, rules: &OwnRules, options: &Doctor) -> Self {
        let &Doctor { verbose: is_verbose, failure, .. } = options;
        let read = contents(path);
        let name = read::given(path);
        match read {
            Ok(Contents::Trace(imported)) => {
                let _progress = Progress::new(format!("Looking into {}", short_name_of(path)));
                let found = FileDiagnosis::with(name, *imported, rules.clone(), failure);
                let refused = cut_off(&found).or_else(|| failure.and_then(|number| missing(&found, number)));
                if refused.is_some() {
                    return Self { path: found.path, error: refused, ..Self::default() };
                }
                let text = if is_verbose { found.to_string() } else { found.brief().to_string() };
                Self { path: found.path, devices: found.devices, findings: found.findings, text, ..Self::default() }
            }
            Ok(Contents::Pasted(pasted)) => {
                Self { path: name, text: explain::text_of(&pasted), pasted, ..Self::default() }
            }
            Err(error) => Self { path: name, error: Some(error), ..Self::default() },
        }
    }

    /// Whether it trips the gate.
    fn trips(&self, gate: FailOn) -> bool {
        let has_failed = self.pasted.iter().any(|explanation| explanation.is_failure);
        let found = self.findings.iter().map(|finding| finding.severity);
        gate.is_tripped(has_failed, found) || self.devices.iter().any(|device| gate.is_tripped_by(device))
    }
}

/// Returns why a file is as good as unreadable, if it was cut off before its first device.
fn cut_off(found: &FileDiagnosis) -> Option<String> {
    let cut = found.findings.iter().find(|finding| finding.code == FindingCode::Truncated.name());
    cut.filter(|_| found.devices.is_empty()).map(|finding| finding.message.clone())
}

/// Returns that no device has as many failures as were asked for, if none has.
fn missing(found: &FileDiagnosis, number: u32) -> Option<String> {
    let most = found.devices.iter().map(|device| device.failed).max().unwrap_or(0);
    (number > most).then(|| match most {
        0 => "no request failed, so there is none to explain with --failure".to_owned(),
        _ => format!("{} failed: --failure is 1 to {most}", counted(most.into(), "request")),
    })
}

/// Reads a text or a trace, piece by piece.
fn contents(path: &Path) -> Result<Contents, String> {
    let mut input = read::open(path)?;
    let mut head = Vec::new();
    let wanted = PASTED_BYTES as u64 + 1;
    input.by_ref().take(wanted).read_to_end(&mut head).map_err(|error| read::sentence(&error))?;
    // A text is short, also when it is compressed.
    let text = (head.len() <= PASTED_BYTES).then(|| unpacked(head.clone(), PASTED_BYTES).ok()).flatten();
    let text = text.and_then(|text| String::from_utf8(text).ok());
    let pasted = text.as_deref().map(explain::explain).unwrap_or_default();
    if !pasted.is_empty() {
        return Ok(Contents::Pasted(pasted));
    }
    let is_message = text.as_deref().is_some_and(may_be_message);
    let imported = read::read_from(path, head.as_slice().chain(input)).map_err(|error| refused(&error, is_message))?;
    Ok(Contents::Trace(Box::new(imported)))
}

/// Whether a text may have been meant as an error or as statistics: it is neither JSON nor a page.
fn may_be_message(text: &str) -> bool {
    let text = text.trim_start();
    !text.starts_with(['{', '<'])
        && !text.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with(['{', ']']))
}

/// Returns why something can't be examined. A text may have been meant as an error or as statistics.
fn refused(error: &str, is_message: bool) -> String {
    if is_message { format!("{}. {WANTED}", error.trim_end_matches('.')) } else { error.to_owned() }
}
