//! `vramscope sweep`: runs a workload on a simulated device for each value of a parameter.

mod range;
mod row;
mod search;
mod text;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread;

use clap::Args;
use serde::Serialize;

pub(super) use self::range::Grid;
use self::range::Range;
pub(super) use self::row::Row;
pub(super) use self::search::{Largest, largest};
use super::parallel::{self, ProgressLine};
use super::subject::card;
use super::{print, refuse, setting};
use crate::workloads::{Choices, ClockedSim, RunControl, Setup, Workload};

/// The options of `sweep`.
#[derive(Args, Debug)]
pub(super) struct Sweep {
    /// The workload to run; vramscope run --list shows all
    #[arg(value_name = "NAME")]
    name: String,
    /// The parameter and its values: batch=64..512, batch=64..512:32, batch=64..512:x2 or checkpoint=none,full
    #[arg(value_name = "PARAM=FROM..TO[:STEP]")]
    range: String,
    /// Other parameters, which stay: precision=bf16
    #[arg(value_name = "NAME=VALUE")]
    choices: Vec<String>,
    /// Card that it should fit on, such as H100-80GB
    #[arg(long, value_name = "NAME", conflicts_with = "capacity")]
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
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// The printed result.
#[derive(Debug, Serialize)]
struct Printed {
    story: &'static str,
    /// The parameters that stay.
    choices: BTreeMap<&'static str, String>,
    param: &'static str,
    capacity_bytes: u64,
    /// The card with that capacity, if one was named.
    card: Option<&'static str>,
    torch: &'static str,
    conf: String,
    seed: u64,
    steps: u64,
    runs: Vec<Row>,
    /// The largest number that fits; `None` if the values are no range.
    largest: Option<Largest>,
}

impl Sweep {
    /// Prints the sweep.
    pub(super) fn run(self) -> ExitCode {
        match self.answer() {
            Ok(printed) => {
                let text = match self.json {
                    true => serde_json::to_string_pretty(&printed).unwrap_or_default() + "\n",
                    false => printed.to_string(),
                };
                print(|out| out.write_all(text.as_bytes()))
            }
            Err(sentence) => refuse(&sentence),
        }
    }

    fn answer(&self) -> Result<Printed, String> {
        let name = &self.name;
        let Some(workload) = Workload::named(name) else {
            let known: Vec<&str> = Workload::ALL.iter().map(|workload| workload.name).collect();
            return Err(format!("There is no workload {name:?}. Name one of: {}.", known.join(", ")));
        };
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
        let runner = Runner { sweep: self, workload, param: range.name, setup, steps, progress: ProgressLine::new() };
        // All values are checked before the first one runs.
        let choices = range.values.iter().map(|value| runner.choices(value)).collect::<Result<Vec<_>, _>>()?;
        let rows = runner.rows(&range.values)?;
        let largest = match range.grid {
            None => None,
            Some(grid) => {
                let numbers = range.values.iter().map(|value| value.parse().unwrap_or(0));
                let known: Vec<(u64, Row)> = numbers.zip(rows.iter().cloned()).collect();
                largest(&known, grid, cores(), |numbers| {
                    runner.rows(&numbers.iter().map(u64::to_string).collect::<Vec<_>>())
                })?
            }
        };
        drop(runner);
        let stays = choices.first().into_iter().flat_map(Choices::iter).filter(|(name, _)| *name != range.name);
        Ok(Printed {
            story: workload.name,
            choices: stays.map(|(name, value)| (name, value.to_owned())).collect(),
            param: range.name,
            capacity_bytes: capacity,
            card: card.map(|card| card.name),
            torch: profile.torch,
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
    progress: ProgressLine,
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
    fn rows(&self, values: &[String]) -> Result<Vec<Row>, String> {
        let show = |done: usize| self.progress.show(&format!("{}: {done} of {} runs", self.param, values.len()));
        parallel::map(values, |value| self.row(value), show).into_iter().collect()
    }

    fn row(&self, value: &str) -> Result<Row, String> {
        let choices = self.choices(value)?;
        let device = ClockedSim::new(self.setup.capacity);
        let outcome =
            crate::workloads::run(self.workload, &choices, self.steps, &self.setup, device, RunControl::default());
        Row::new(value, &outcome)
            .map_err(|error| format!("{} with {}={value}: {error}", self.workload.name, self.param))
    }
}

/// Returns how many runs take as long as one.
pub(super) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
