//! `vramscope baseline`: keeps runs in brief, which later ones are compared with.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use compare::{Options, compare, profile};
use query::run_comparison::Comparability;
use query::run_profile::RunProfile;
use trace::units::{Bytes, counted};

use super::diff::baseline::{Baseline, moment_like, read_baseline, write_baseline};
use super::diff::loaded::Loaded;
use super::diff::moment;
use super::message::one_line;
use super::push::wait;
use super::remote_file::{RemoteFile, remote};
use super::{refuse, show};

/// How often a run is added to a baseline on a server that others change meanwhile.
const ATTEMPTS: u32 = 8;

/// The command.
#[derive(Args, Debug)]
pub(super) struct BaselineCommand {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add a run to a baseline, or begin one
    Set(Set),
}

/// The options of `set`.
#[derive(Args, Debug)]
struct Set {
    /// The baseline: a file of JSON such as memory-baseline.json, or baseline:NAME on your server; made if it isn't there
    #[arg(value_name = "BASELINE")]
    baseline: PathBuf,
    /// The run: a memory snapshot (pickle or JSON) or recording (.vramscope), plain, .gz or .zst
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Runs that are kept; the oldest go first
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    keep: u32,
    /// Moment of the run: peak, end, step:N, event:N, mark:NAME or phase:NAME [default: that of the baseline; of a new one the peak of the last
    /// whole step, or else of the run]
    #[arg(long, value_name = "MOMENT")]
    at: Option<String>,
    /// Device, by its number in the file [default: the first one with events]
    #[arg(long, value_name = "N")]
    device: Option<i64>,
}

impl BaselineCommand {
    /// Runs it.
    pub(super) fn run(self) -> ExitCode {
        let Action::Set(set) = self.command;
        set.add().map_or_else(|sentence| refuse(&sentence), |said| show(&said))
    }
}

impl Set {
    fn add(&self) -> Result<String, String> {
        let loaded = Loaded::read(&self.run, self.device)?;
        match RemoteFile::of(&self.baseline) {
            Some(RemoteFile::Baseline(name)) => {
                let remote = remote()?;
                let kept = wait(async {
                    for _ in 0..ATTEMPTS {
                        let (runs, version) = match remote.baseline(&name).await? {
                            Some((bytes, version)) => (Baseline::parse(&bytes)?.runs, Some(version)),
                            None => (Vec::new(), None),
                        };
                        let baseline = self.with(runs, &loaded)?;
                        if remote.keep_baseline(&name, baseline.to_json()?, version.as_deref()).await? {
                            return Ok(baseline);
                        }
                    }
                    Err(format!("Others keep changing the baseline {}. Try again.", one_line(&name)))
                })?;
                Ok(said(&one_line(&name), &kept))
            }
            Some(_) => Err("A link or a job is no baseline. Name a file, or baseline:NAME on a server.".to_owned()),
            None => {
                let shown = self.baseline.display();
                let runs = match self.baseline.exists() {
                    true => {
                        let kept = read_baseline(&self.baseline)?;
                        kept.ok_or_else(|| format!("{shown} is no baseline. Name another file."))?.runs
                    }
                    false => Vec::new(),
                };
                let baseline = self.with(runs, &loaded)?;
                write_baseline(&baseline, &self.baseline)?;
                Ok(said(&shown.to_string(), &baseline))
            }
        }
    }

    /// Returns these runs and the new one, without the oldest if they are too many.
    fn with(&self, mut runs: Vec<RunProfile>, loaded: &Loaded) -> Result<Baseline, String> {
        let run = loaded.run();
        let wanted = self.at.as_deref().map(moment).transpose()?;
        let choice = wanted.unwrap_or_else(|| moment_like(runs.first().map(|first| &first.moment), &run));
        let added = profile(&run, &choice)?;
        if let Some(other) = runs.iter().find(|other| is_of_another_kind(other, &added)) {
            return Err(format!(
                "{} can't be added: it is of {}, and {} in the baseline of {}. Begin another baseline.",
                added.name, added.moment.text, other.name, other.moment.text
            ));
        }
        runs.push(added);
        let excess = runs.len().saturating_sub(self.keep as usize);
        runs.drain(..excess);
        Ok(Baseline::of(runs))
    }
}

/// Returns what is said of a baseline that was kept.
fn said(name: &str, baseline: &Baseline) -> String {
    let held = || baseline.runs.iter().map(|run| run.memory.allocated);
    let (least, most) = (held().min().unwrap_or(0), held().max().unwrap_or(0));
    let count = counted(baseline.runs.len() as u64, "run");
    let between = if least == most { Bytes(least).to_string() } else { format!("{} to {}", Bytes(least), Bytes(most)) };
    format!("{name} has {count}: {between} in tensors.\n")
}

/// Returns whether two runs must not be in one baseline: they are of moments of another kind, or can't be compared.
fn is_of_another_kind(one: &RunProfile, other: &RunProfile) -> bool {
    let kind = |run: &RunProfile| (run.moment.is_peak, run.moment.step.is_some(), run.moment.phase.clone());
    kind(one) != kind(other) || compare(one, other, &Options::default()).comparability == Comparability::No
}
