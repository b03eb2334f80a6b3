//! `vramscope doctor`: tells why memory ran out, what else is wrong with a trace, and what to try.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use shared::analysis::own_rules::OwnRules;
use shared::doctor::pasted::{self, Explanation, WANTED};
use shared::finding::FindingCode;
use shared::import::{ImportError, Imported, Importer};
use shared::limits::{ImportLimits, PASTED_BYTES};
use shared::report::{DiagnosisReport, FileDiagnosis, FindingReport};

use super::read::read;
use super::rules::RuleOptions;
use super::{UNUSABLE, one_line, print};

/// Bytes of standard input that are read at once.
const CHUNK: usize = 1 << 20;

/// The options of `doctor`.
#[derive(Args, Debug)]
pub(super) struct Doctor {
    /// Memory snapshots and recordings, plain, .gz or .zst; or the text of an out-of-memory error, of memory_stats() or of
    /// memory_summary(). `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
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
    /// What a pasted text says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pasted: Option<Explanation>,
    #[serde(skip)]
    text: String,
}

/// What a file contains.
enum Contents {
    Trace(Box<Imported>),
    Pasted(Explanation),
}

impl Doctor {
    /// Examines every file. The exit code is 1 if memory ran out in one of them, and 2 if one is unreadable.
    pub(super) fn run(self) -> ExitCode {
        let rules = match self.rules.rules() {
            Ok(rules) => rules,
            Err(sentence) => {
                eprintln!("{}", one_line(&sentence));
                return ExitCode::from(UNUSABLE);
            }
        };
        let (mut has_failed, mut is_unreadable) = (false, false);
        let mut files = Vec::new();
        for path in &self.files {
            let examined = Examined::of(path, &rules);
            has_failed |= examined.has_failed();
            if let Some(error) = &examined.error {
                is_unreadable = true;
                eprintln!("{}", one_line(&format!("{}: {error}", examined.path)));
            }
            if self.json {
                files.push(examined);
            } else if examined.error.is_none() && print(|out| writeln!(out, "{}", examined.text)) != ExitCode::SUCCESS {
                return ExitCode::FAILURE;
            }
        }
        if self.json {
            let printed = print(|out| {
                serde_json::to_writer_pretty(&mut *out, &Files { files })?;
                writeln!(out)
            });
            if printed != ExitCode::SUCCESS {
                return printed;
            }
        }
        match (is_unreadable, has_failed) {
            (true, _) => ExitCode::from(UNUSABLE),
            (false, true) => ExitCode::FAILURE,
            (false, false) => ExitCode::SUCCESS,
        }
    }
}

impl Examined {
    fn of(path: &Path, rules: &OwnRules) -> Self {
        let name = path.display().to_string();
        match contents(path) {
            Ok(Contents::Trace(imported)) => {
                let found = FileDiagnosis::with(name, *imported, rules.clone());
                if let Some(cut) = cut_off(&found) {
                    return Self { path: found.path, error: Some(cut), ..Self::default() };
                }
                let text = found.to_string();
                Self { path: found.path, devices: found.devices, findings: found.findings, text, ..Self::default() }
            }
            Ok(Contents::Pasted(explanation)) => {
                Self { path: name, text: explanation.to_string(), pasted: Some(explanation), ..Self::default() }
            }
            Err(error) => Self { path: name, error: Some(error), ..Self::default() },
        }
    }

    fn has_failed(&self) -> bool {
        self.devices.iter().any(|device| device.failed > 0)
            || self.pasted.as_ref().is_some_and(|explanation| explanation.is_failure)
    }
}

/// Returns why a file is as good as unreadable, if it was cut off before its first device.
fn cut_off(found: &FileDiagnosis) -> Option<String> {
    let cut = found.findings.iter().find(|finding| finding.code == FindingCode::Truncated.name());
    cut.filter(|_| found.devices.is_empty()).map(|finding| finding.message.clone())
}

/// Reads a file, or standard input for `-`.
fn contents(path: &Path) -> Result<Contents, String> {
    if path == Path::new("-") {
        return from_input(&mut io::stdin().lock());
    }
    let metadata = path.metadata();
    let length = metadata.as_ref().map_or(0, std::fs::Metadata::len);
    if (1..=PASTED_BYTES as u64).contains(&length)
        && let Ok(mut file) = File::open(path)
        && let Ok(head) = head_of(&mut file)
        && let Some(explanation) = explained(&head)
    {
        return Ok(Contents::Pasted(explanation));
    }
    // A device such as /dev/zero has no length, and no end.
    let is_file = metadata.is_ok_and(|metadata| metadata.is_file());
    let is_text = is_file && length <= PASTED_BYTES as u64 && std::fs::read_to_string(path).is_ok();
    let imported = read(path).map_err(|error| refused(&error, is_text))?;
    Ok(Contents::Trace(Box::new(imported)))
}

/// Returns why something can't be examined. A text may have been meant as an error or as statistics.
fn refused(error: &str, is_text: bool) -> String {
    if is_text { format!("{}. {WANTED}", error.trim_end_matches('.')) } else { error.to_owned() }
}

/// Reads as much as a pasted text may have, and a byte more.
fn head_of(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(PASTED_BYTES as u64 + 1).read_to_end(&mut head)?;
    Ok(head)
}

fn explained(head: &[u8]) -> Option<Explanation> {
    std::str::from_utf8(head).ok().and_then(pasted::explain)
}

/// Reads a text or a trace piece by piece.
fn from_input(input: &mut impl Read) -> Result<Contents, String> {
    let failed = |error: io::Error| format!("Reading failed: {error}.");
    let head = head_of(input).map_err(failed)?;
    let is_text = head.len() <= PASTED_BYTES && std::str::from_utf8(&head).is_ok();
    let refused = |error: ImportError| refused(&error.to_string(), is_text);
    if let Some(explanation) = explained(&head) {
        return Ok(Contents::Pasted(explanation));
    }
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(&head).map_err(refused)?;
    let mut chunk = vec![0; CHUNK];
    loop {
        match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => importer.push(&chunk[..length]).map_err(refused)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    importer.finish().map(|imported| Contents::Trace(Box::new(imported))).map_err(refused)
}
