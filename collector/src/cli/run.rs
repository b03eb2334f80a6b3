//! `vramscope run`: a workload on a simulated device or a real one, and the report of it.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use shared::export;
use shared::trace::Snapshot;
use shared::units::Count;

use super::refuse;
use super::setting::{self, Driver};
use crate::driver::cuda::CudaDriver;
use crate::workloads::{Choices, ClockedSim, Heading, Outcome, Report, Setup, Stop, Story, Watch};

/// The time between two looks at how far a run is.
const LOOK: Duration = Duration::from_millis(100);

/// What `run` is told.
#[derive(Args, Debug)]
pub(super) struct Run {
    /// The story to run; --list names them all
    #[arg(value_name = "NAME", required_unless_present = "list")]
    name: Option<String>,
    /// What is chosen about it, as --list tells: checkpoint=4 precision=fp32
    #[arg(value_name = "NAME=VALUE")]
    choices: Vec<String>,
    /// List the stories, and what can be chosen about each
    #[arg(long)]
    list: bool,
    /// The device: sim (simulated) or cuda
    #[arg(long, value_enum, default_value_t = Driver::Sim)]
    driver: Driver,
    /// The CUDA device, as CUDA counts them
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: u32,
    /// The allocator's settings, as in PYTORCH_CUDA_ALLOC_CONF
    #[arg(long, value_name = "SETTINGS", default_value = "")]
    conf: String,
    /// Memory of the device, or what may be taken of a real one: 80GiB, 512MiB; by default as the story needs it
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// The release of PyTorch that the allocator decides as
    #[arg(long, value_name = "VERSION", default_value = "2.11")]
    torch: String,
    /// Where chance begins; the same seed makes the same trace
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Steps; by default as the story needs them
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Write the trace: FILE.pickle for PyTorch's tools and the page, FILE.vramscope for the page
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

impl Run {
    /// Runs the story, and reports it.
    pub(super) fn run(self) -> ExitCode {
        if self.list {
            return print(&if self.json { list_for_programs() } else { list() });
        }
        match self.tell() {
            Ok((report, has_failed)) => {
                let text = match self.json {
                    true => serde_json::to_string_pretty(&report).unwrap_or_default() + "\n",
                    false => report.to_string(),
                };
                let code = print(&text);
                if has_failed { ExitCode::FAILURE } else { code }
            }
            Err(sentence) => refuse(&sentence),
        }
    }

    /// Runs the story. The report, and whether the device failed.
    fn tell(&self) -> Result<(Report, bool), String> {
        let name = self.name.as_deref().unwrap_or_default();
        let Some(story) = Story::named(name) else {
            let known: Vec<&str> = Story::ALL.iter().map(|story| story.name).collect();
            return Err(format!("There is no story {name:?}. There are: {}.", known.join(", ")));
        };
        let choices = Choices::read(story.params, &self.choices).map_err(|error| format!("{name}: {error}."))?;
        story.check(&choices).map_err(|error| format!("{name}: {error}."))?;
        let steps = self.steps.unwrap_or(story.steps);
        let capacity = match &self.capacity {
            Some(text) => setting::capacity(text)?,
            None => story.capacity,
        };
        let (profile, config) = setting::allocator(&self.torch, &self.conf)?;
        let setup = Setup { capacity, seed: self.seed, profile, config };
        let mut out = self.out.as_deref().map(Out::create).transpose()?;

        let outcome = match self.driver {
            Driver::Sim => {
                let device = ClockedSim::new(capacity);
                crate::workloads::run(story, &choices, steps, &setup, device, progress())
            }
            Driver::Cuda => {
                let device = CudaDriver::open(self.device).map_err(|error| format!("--driver cuda: {error}."))?;
                crate::workloads::run(story, &choices, steps, &setup, device, progress())
            }
        };
        clear_progress();
        if let Some(out) = &mut out {
            out.write(&outcome)?;
        }
        let has_failed = matches!(outcome.stop, Some(Stop::Driver(_) | Stop::Misuse(_)));
        let heading = Heading {
            name: name.to_owned(),
            choices: choices.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            driver: self.driver.to_string(),
            capacity,
            torch: profile.torch,
            conf: self.conf.clone(),
            seed: self.seed,
        };
        Ok((Report::new(heading, outcome), has_failed))
    }
}

/// Prints text; a reader who has seen enough (`| head`) is no error.
fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    ExitCode::SUCCESS
}

/// All stories with what can be chosen about them, for people.
fn list() -> String {
    let mut text = String::new();
    for story in Story::ALL {
        text += &format!("{:<16} {}\n", story.name, story.line);
        for param in story.params {
            text += &format!("{:18}{}={}  {} ({})\n", "", param.name, param.default, param.help, param.values);
        }
    }
    text
}

/// The same for programs.
fn list_for_programs() -> String {
    let stories: Vec<_> = Story::ALL
        .iter()
        .map(|story| {
            let params: Vec<_> = story
                .params
                .iter()
                .map(|param| {
                    let values = param.values.to_string();
                    json!({ "name": param.name, "default": param.default, "values": values, "help": param.help })
                })
                .collect();
            let Story { name, line, capacity, steps, .. } = story;
            json!({ "name": name, "line": line, "capacity_bytes": capacity, "steps": steps, "params": params })
        })
        .collect();
    serde_json::to_string_pretty(&json!({ "stories": stories })).unwrap_or_default() + "\n"
}

/// Writes a snapshot in a format, piece by piece.
type Format = fn(&Snapshot, &mut dyn FnMut(&[u8]));

/// A file for the trace, made before the run so that a name that can't be written is told of at once.
struct Out<'a> {
    path: &'a Path,
    file: File,
    write: Format,
}

impl<'a> Out<'a> {
    fn create(path: &'a Path) -> Result<Self, String> {
        let name = path.display();
        // Each format by its ending: one line here for each.
        let write: Format = match path.extension().and_then(|ending| ending.to_str()) {
            Some("pickle") => export::pickle,
            _ => return Err(format!("{name}: a trace is written as .pickle. Name the file so.")),
        };
        let file = File::create(path).map_err(|error| format!("{name}: the file can't be written: {error}."))?;
        Ok(Self { path, file, write })
    }

    fn write(&mut self, outcome: &Outcome) -> Result<(), String> {
        let mut result = Ok(());
        (self.write)(&outcome.snapshot, &mut |piece| {
            if result.is_ok() {
                result = self.file.write_all(piece);
            }
        });
        result.map_err(|error| format!("{}: writing failed: {error}.", self.path.display()))
    }
}

/// Shows how far a run is: a line that rewrites itself, for a person at a terminal only.
fn progress() -> Option<Watch> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let mut last = Instant::now();
    Some(Box::new(move |span, events| {
        if last.elapsed() >= LOOK {
            last = Instant::now();
            eprint!("\r\x1b[K{span}, {} events", Count(events as u64));
        }
    }))
}

fn clear_progress() {
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}
