//! `vramscope sweep`: runs a workload on a simulated device for each value of a parameter.

mod measured;
mod range;
mod search;
mod text;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::Args;
use format::sweep::{self as document, Run};
use trace::units::Bytes;

use self::measured::measured;
pub(super) use self::range::Grid;
use self::range::Range;
use self::search::largest;
use self::text::Text;
use super::choice::{self, Offered};
use super::output::Overwrite;
use super::progress::Progress;
use super::subject::card;
use super::{one_line, parallel, refuse, setting, show_as};
use crate::workloads::{Choices, ClockedSim, RunControl, Setup, Workload};

/// The options of `sweep`.
#[derive(Args, Debug)]
pub(super) struct Sweep {
    /// The workload to run; vramscope run --list shows all
    #[arg(value_name = "NAME", value_parser = Offered::workloads(), hide_possible_values = true)]
    name: String,
    /// The parameter and its values: batch=64..512, batch=64..512:32, batch=64..512:x2 or checkpoint=none,full
    #[arg(value_name = "PARAM=FROM..TO[:STEP]")]
    range: String,
    /// Other parameters, which stay: precision=bf16
    #[arg(value_name = "NAME=VALUE")]
    choices: Vec<String>,
    /// Card that it should fit on, such as H100-80GB
    #[arg(long, value_name = "NAME", conflicts_with = "capacity", value_parser = Offered::cards(), hide_possible_values = true)]
    card: Option<String>,
    /// Memory of the simulated device, such as 80GiB [default: set by the workload]
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// Allocator settings, as in PYTORCH_CUDA_ALLOC_CONF
    #[arg(long, value_name = "SETTINGS", default_value = "")]
    conf: String,
    /// PyTorch release whose allocator to use
    #[arg(long, value_name = "VERSION", default_value = "2.11")]
    torch: String,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of steps of each run [default: set by the workload]
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Write the result as JSON, ending in .json, for the page: it shows a plot and a table
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

impl Sweep {
    /// Prints the sweep, and writes it to a file if one is named.
    pub(super) fn run(self) -> ExitCode {
        let sweep = match self.check_out().and_then(|()| self.answer()) {
            Ok(sweep) => sweep,
            Err(sentence) => return refuse(&sentence),
        };
        // All of it can be written: its keys are texts and its numbers whole.
        let json = serde_json::to_string_pretty(&sweep.document()).unwrap_or_default() + "\n";
        let written = self.write(&json);
        let mut text = if self.json { json } else { Text(&sweep).to_string() };
        if let (false, Ok(Some(line))) = (self.json, &written) {
            text += &format!("\n{line}\n");
        }
        let code = show_as(self.json, &text);
        match written {
            Ok(_) => code,
            // The runs took long, so that their result is printed in any case.
            Err(sentence) => refuse(&sentence),
        }
    }

    /// Refuses a file that could not be written, before anything runs.
    fn check_out(&self) -> Result<(), String> {
        let Some(out) = &self.out else { return Ok(()) };
        if out.extension().is_none_or(|ending| ending != "json") {
            return Err(format!("the result is JSON. End the name {} with .json.", out.display()));
        }
        self.overwrite.check(out)
    }

    /// Writes the file. Returns what is said about it.
    fn write(&self, json: &str) -> Result<Option<String>, String> {
        let Some(out) = &self.out else { return Ok(None) };
        self.overwrite.write(out, |file| file.write_all(json.as_bytes()))?;
        let size = Bytes(json.len() as u64);
        let name = one_line(&out.display().to_string());
        Ok(Some(format!("Wrote {name}: {size}. For its plot, drop it on the page that vramscope serve shows.")))
    }

    fn answer(&self) -> Result<document::Sweep, String> {
        let name = &self.name;
        let workload = choice::workload(name)?;
        let range = Range::read(&self.range, workload.params).map_err(|error| format!("{name}: {error}"))?;
        let card = self.card.as_deref().map(card).transpose()?;
        let capacity = match (card, &self.capacity) {
            (Some(card), _) => card.usable(),
            (None, Some(text)) => setting::capacity(text)?,
            (None, None) => workload.capacity,
        };
        let (profile, config) = setting::allocator(&self.torch, &self.conf)?;
        let setup = Setup { capacity, seed: self.seed, profile, config };
        let steps = self.steps.unwrap_or(workload.steps);
        let runner = Runner {
            sweep: self,
            workload,
            param: range.name,
            setup,
            steps,
            progress: Progress::new(format!("Running {name}")),
        };
        // All values are checked before the first one runs.
        let choices = range.values.iter().map(|value| runner.choices(value)).collect::<Result<Vec<_>, _>>()?;
        let rows = runner.rows(&range.values)?;
        let largest = match range.grid {
            None => None,
            Some(grid) => {
                let numbers = range.values.iter().map(|value| value.parse().unwrap_or(0));
                let known: Vec<(u64, Run)> = numbers.zip(rows.iter().cloned()).collect();
                largest(&known, grid, cores(), |numbers| {
                    runner.rows(&numbers.iter().map(u64::to_string).collect::<Vec<_>>())
                })?
            }
        };
        drop(runner);
        let stays = choices.first().into_iter().flat_map(Choices::iter).filter(|(name, _)| *name != range.name);
        Ok(document::Sweep {
            story: workload.name.to_owned(),
            choices: stays.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            param: range.name.to_owned(),
            capacity_bytes: capacity,
            card: card.map(|card| card.name.to_owned()),
            torch: profile.torch.to_owned(),
            conf: self.conf.clone(),
            seed: self.seed,
            steps,
            runs: rows,
            largest,
        })
    }
}

/// Runs a workload with one value or several.
struct Runner<'a> {
    sweep: &'a Sweep,
    workload: &'static Workload,
    param: &'static str,
    setup: Setup,
    steps: u64,
    progress: Progress,
}

impl Runner<'_> {
    /// Returns the parameters with a value of the swept one.
    fn choices(&self, value: &str) -> Result<Choices, String> {
        let Self { sweep, workload, param, .. } = self;
        let given: Vec<String> = sweep.choices.iter().cloned().chain([format!("{param}={value}")]).collect();
        let choices = Choices::read(workload.params, &given).map_err(|error| format!("{}: {error}.", workload.name))?;
        workload.check(&choices).map_err(|error| {
            format!("{}: {param}={value}: {error}. Write a step that only permitted values have.", workload.name)
        })?;
        Ok(choices)
    }

    /// Runs the workload with each of the values, on all cores.
    fn rows(&self, values: &[String]) -> Result<Vec<Run>, String> {
        let show = |done: usize| self.progress.show(|| format!("{}: {done} of {} runs", self.param, values.len()));
        parallel::map(values, |value| self.row(value), show).into_iter().collect()
    }

    fn row(&self, value: &str) -> Result<Run, String> {
        let choices = self.choices(value)?;
        let device = ClockedSim::new(self.setup.capacity);
        let outcome =
            crate::workloads::run(self.workload, &choices, self.steps, &self.setup, device, RunControl::default());
        measured(value, &outcome)
            .map_err(|error| format!("{} with {}={value}: {error}", self.workload.name, self.param))
    }
}

/// Returns how many runs take as long as one.
pub(super) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
