//! `vramscope bench-allocators`: the same recorded requests through PyTorch's caching allocator and through those that CUDA
//! itself has: stream-ordered pools and unified memory.

mod contender;
mod device;
mod measured;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use format::Header;
use format::import::Imported;
use serde::Serialize;

use self::measured::Measured;
use super::choice;
use super::device::choose;
use super::progress::Progress;
use super::read::{given, is_standard_input, name_of, read, short_name_of};
use super::setting::{self, Driver};
use super::subject::Subject;
use super::{refuse, show_as};
use crate::workloads::{ClockedSim, JobError, RunControl, Setup, Workload};

/// The options of `bench-allocators`.
#[derive(Args, Debug)]
pub(super) struct Bench {
    /// Memory snapshot (pickle or JSON) or recording (.vramscope), plain, .gz or .zst, `-` for standard input; or the name of
    /// a workload, as vramscope run --list shows them
    #[arg(value_name = "FILE|WORKLOAD")]
    subject: PathBuf,
    /// Parameters of a workload: batch=8
    #[arg(value_name = "NAME=VALUE")]
    choices: Vec<String>,
    /// Device to run on: a simulated one counts, a GPU measures times as well
    #[arg(long, value_enum, default_value_t = Driver::Sim)]
    driver: Driver,
    /// Number of the GPU
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpu: u32,
    /// How often the requests run through each allocator on a GPU, in turns
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Settings of the caching allocator, as in PYTORCH_CUDA_ALLOC_CONF [default: those of the recording]
    #[arg(long, value_name = "SETTINGS")]
    conf: Option<String>,
    /// PyTorch release whose caching allocator to use [default: that of the trace where it tells, or the one that fits it
    /// best; 2.11 for a workload]
    #[arg(long, value_name = "VERSION")]
    torch: Option<String>,
    /// Device of the file, by its number [default: the first one with events]
    #[arg(long, value_name = "N")]
    device: Option<i64>,
    /// Number of steps of a workload [default: set by the workload]
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// The printed result.
#[derive(Serialize)]
struct Benched {
    /// The file, or the name of a workload.
    subject: String,
    /// `sim` or `cuda`.
    driver: String,
    /// The name of the GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    /// The release whose caching allocator was used.
    torch: &'static str,
    /// Its settings.
    conf: String,
    /// How often the requests ran on a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds: Option<u32>,
    /// Requests for memory.
    requests: u64,
    /// Requests that failed in the recording, which are left out.
    failed_in_recording: u64,
    /// Requests of private pools (CUDA graphs). On a GPU, they are served as all others.
    private: u64,
    /// The most bytes that were requested at once: no allocator can do with less.
    peak_requested: u64,
    allocators: Vec<Measured>,
}

impl Bench {
    /// Prints the comparison, or why there is none.
    pub(super) fn run(self) -> ExitCode {
        match self.bench() {
            Ok(benched) => {
                let text = match self.json {
                    true => serde_json::to_string_pretty(&benched).unwrap_or_default() + "\n",
                    false => text::of(&benched),
                };
                show_as(self.json, &text)
            }
            Err(sentence) => refuse(&sentence),
        }
    }

    fn bench(&self) -> Result<Benched, String> {
        let told = self.torch.as_deref().map(setting::profile).transpose()?;
        let subject = match self.workload()? {
            Some(workload) => self.of_workload(workload)?,
            None => self.of_file(told).map_err(|sentence| format!("{}: {sentence}", name_of(&self.subject)))?,
        };
        let conf = self.conf.clone().unwrap_or_else(|| subject.conf.clone());
        let calls = measured::Calls::of(&subject.requests);
        let (gpu, allocators) = match self.driver {
            Driver::Sim => (None, measured::counted(&subject, &conf, &calls)?),
            Driver::Cuda => {
                let config = subject.terms(&conf)?.config;
                let (name, measured) =
                    device::measure(self.gpu, self.rounds, &calls, (subject.baseline.profile, &config))?;
                (Some(name), measured)
            }
        };
        Ok(Benched {
            subject: given(&self.subject),
            driver: self.driver.to_string(),
            rounds: gpu.as_ref().map(|_| self.rounds),
            gpu,
            torch: subject.baseline.profile.torch,
            conf,
            requests: calls.requests,
            failed_in_recording: subject.requests.failed() as u64,
            private: calls.private,
            peak_requested: subject.requests.peak_requested(),
            allocators,
        })
    }

    /// Returns the workload, if that is what was named.
    fn workload(&self) -> Result<Option<&'static Workload>, String> {
        let name = self.subject.to_string_lossy();
        let is_path = self.subject.components().count() > 1 || Path::new(&*name).extension().is_some();
        if Workload::named(&name).is_none() && (is_standard_input(&self.subject) || self.subject.exists() || is_path) {
            return match self.choices.first() {
                Some(choice) => {
                    Err(format!("{choice} is a parameter of a workload, and {name} is a file. Leave it out."))
                }
                None => Ok(None),
            };
        }
        choice::workload(&name).map(Some)
    }

    fn of_file(&self, told: Option<&'static allocator::Profile>) -> Result<Subject, String> {
        let Imported { mut snapshot, header, .. } = read(&self.subject)?;
        let index = choose(self.device, &snapshot.devices)?;
        let _progress = Progress::new(format!("Repeating {} as it was recorded", short_name_of(&self.subject)));
        Subject::of(&mut snapshot, index, &header.unwrap_or_default(), told)
    }

    /// Runs a workload on a simulated device, and returns what it asked for.
    fn of_workload(&self, workload: &'static Workload) -> Result<Subject, String> {
        let choices = choice::choices(workload, &self.choices)?;
        let conf = self.conf.as_deref().unwrap_or_default();
        let (profile, config) = setting::allocator(self.torch.as_deref().unwrap_or("2.11"), conf)?;
        let setup = Setup { capacity: workload.capacity, profile, config, ..Setup::default() };
        let _progress = Progress::new(format!("Running {}", workload.name));
        let device = ClockedSim::new(setup.capacity);
        let steps = self.steps.unwrap_or(workload.steps);
        let mut outcome = crate::workloads::run(workload, &choices, steps, &setup, device, RunControl::default());
        if let Some(error @ (JobError::Driver(_) | JobError::Misuse(_))) = &outcome.error {
            return Err(format!("{}: {error}.", workload.name));
        }
        let device = format::Device { number: 0, name: String::new(), capacity: setup.capacity };
        let header = Header { devices: vec![device], ..Header::default() };
        Subject::of(&mut outcome.snapshot, 0, &header, Some(profile))
    }
}
