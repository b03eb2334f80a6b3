//! `vramscope baseline`: keeps runs in brief, which later ones are compared with.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use compare::{Options, compare, profile};
use query::run_comparison::Comparability;
use query::run_profile::RunProfile;
use trace::units::{Bytes, counted};

use super::diff::baseline::{Baseline, moment_like};
use super::diff::loaded::Loaded;
use super::diff::moment;
use super::{refuse, show};

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
    /// The baseline, a file of JSON such as memory-baseline.json; made if it isn't there
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The run: a memory snapshot (pickle or JSON) or recording (.vramscope), plain, .gz or .zst
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Runs that are kept; the oldest go first
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    keep: u32,
    /// Moment of the run: peak, end, step:N, event:N or mark:NAME [default: that of the baseline; of a new one the peak of the last
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
        let mut runs = match self.file.exists() {
            true => {
                Baseline::read(&self.file)?
                    .ok_or_else(|| format!("{} is no baseline. Name another file.", self.file.display()))?
                    .runs
            }
            false => Vec::new(),
        };
        let loaded = Loaded::read(&self.run, self.device)?;
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
        let baseline = Baseline::of(runs);
        baseline.write(&self.file)?;
        let held = || baseline.runs.iter().map(|run| run.memory.allocated);
        let (least, most) = (held().min().unwrap_or(0), held().max().unwrap_or(0));
        let count = counted(baseline.runs.len() as u64, "run");
        let between =
            if least == most { Bytes(least).to_string() } else { format!("{} to {}", Bytes(least), Bytes(most)) };
        Ok(format!("{} has {count}: {between} in tensors.\n", self.file.display()))
    }
}

/// Returns whether two runs must not be in one baseline: they are of moments of another kind, or can't be compared.
fn is_of_another_kind(one: &RunProfile, other: &RunProfile) -> bool {
    let kind = |run: &RunProfile| (run.moment.is_peak, run.moment.step.is_some());
    kind(one) != kind(other) || compare(one, other, &Options::default()).comparability == Comparability::No
}
