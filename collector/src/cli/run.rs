//! `vramscope run`: runs a workload on a simulated or a real device, and reports on it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allocator::Driver as _;
use clap::Args;
use format::EXTENSION;
use format::export;
use serde_json::json;
use trace::units::counted;

use super::choice::{self, Offered};
use super::gate::{self, FailOn, GATE_STATUS};
use super::live::{self, Delivery, LivePublication, To};
use super::message::{note, warn};
use super::output::{Overwrite, cannot_be_written, create, next_step, part_of};
use super::progress::Progress;
use super::read::name_of;
use super::setting::{self, Driver};
use super::tune::GoalName;
use super::tuned_run::TunedRun;
use super::{UNUSABLE, refuse, show_as};
use crate::host_name::host_name;
use crate::workloads::{Choices, ClockedSim, Device, Heading, JobClock, JobError, Outcome, RecordingHeading};
use crate::workloads::{MemoryWatch, RecordingOutput, Report, RunControl, Setup, Watch, Workload};
use recorder::cuda::CudaDriver;
use recorder::publish::PublisherHandle;
use recorder::{DualOutput, FileCondition, FileOutput, Output, RecorderStats};

/// The time between two updates of the progress line.
const LOOK: Duration = Duration::from_millis(100);

/// The variable with the name of the job that this process belongs to, as for the Python package.
const JOB_VARIABLE: &str = "VRAMSCOPE_JOB";

/// The options of `run`.
#[derive(Args, Debug)]
#[command(after_help = GATE_STATUS)]
pub(super) struct RunCommand {
    /// The workload to run; --list shows all
    #[arg(value_name = "NAME", value_parser = Offered::workloads(), hide_possible_values = true)]
    name: Option<String>,
    /// Its parameters, as --list shows them: checkpoint=4 precision=fp32
    #[arg(value_name = "NAME=VALUE")]
    choices: Vec<String>,
    /// List the workloads and their parameters
    #[arg(long)]
    list: bool,
    /// Device to run on
    #[arg(long, value_enum, default_value_t = Driver::Sim)]
    driver: Driver,
    /// Number of the GPU, with --driver cuda
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpu: u32,
    /// Allocator settings, as in PYTORCH_CUDA_ALLOC_CONF
    #[arg(long, value_name = "SETTINGS", default_value = "")]
    conf: String,
    /// Memory of the simulated device, or the limit on a real one, such as 80GiB [default: set by the workload]
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// PyTorch release whose allocator to use
    #[arg(long, value_name = "VERSION", default_value = "2.11")]
    torch: String,
    /// Seed of the random numbers; the same seed makes the same trace
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of steps [default: set by the workload]
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Write the trace: FILE.pickle for PyTorch's tools and the page, FILE.vramscope for the page
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Name of the recording [default: the workload's name]
    #[arg(long = "name", value_name = "NAME", id = "title")]
    title: Option<String>,
    #[command(flatten)]
    to: To,
    /// Say on standard error when this share of the cached memory becomes unusable, such as 0.3
    #[arg(long, value_name = "SHARE", value_parser = setting::share)]
    warn_at: Option<f64>,
    /// Look for the allocator settings that serve the workload best, and run it again under them
    #[arg(long, value_enum, value_name = "GOAL", num_args = 0..=1, require_equals = true, default_missing_value = "reserved",
          conflicts_with_all = ["to", "out", "warn_at"])]
    tune: Option<GoalName>,
    /// Exit with 1 if a request failed (oom), or never
    #[arg(long, value_name = "WHAT", default_value = "never", value_parser = gate::of_a_run(), conflicts_with = "tune")]
    fail_on: FailOn,
    /// Print JSON for programs; with --to, followed by a line {"session", "events_sent", "events_lost"}
    #[arg(long)]
    json: bool,
}

impl RunCommand {
    /// Runs the workload and prints its report.
    pub(super) fn run(self) -> ExitCode {
        if self.list {
            let text = if self.json { list_for_programs() } else { list() };
            return show_as(self.json, &text);
        }
        if let Some(goal) = self.tune {
            return match self.tuned(goal) {
                Ok(tuned) => show_as(self.json, &tuned.text(self.json)),
                Err(sentence) => refuse(&sentence),
            };
        }
        match self.execute() {
            Ok(Finished { report, has_failed, delivery }) => {
                let mut text = match self.json {
                    true => serde_json::to_string_pretty(&report).unwrap_or_default() + "\n",
                    false => report.to_string(),
                };
                if let (false, Some(out)) = (self.json, &self.out) {
                    text += &format!("Wrote {}\n{}", name_of(out), next_step("doctor", out));
                }
                if let (true, Some(delivery)) = (self.json, &delivery) {
                    text += &delivery.line();
                }
                let code = show_as(self.json, &text);
                let is_missing = delivery.is_some_and(|delivery| !delivery.is_whole);
                if has_failed || is_missing {
                    // The report says why the device failed, and a warning what has not arrived.
                    return ExitCode::from(UNUSABLE);
                }
                let is_tripped = self.fail_on >= FailOn::Oom && report.num_ooms > 0;
                if code == ExitCode::SUCCESS { gate::code(is_tripped) } else { code }
            }
            Err(sentence) => refuse(&sentence),
        }
    }

    /// Returns the workload, its parameters, the number of steps and the settings.
    fn chosen(&self) -> Result<(&'static Workload, Choices, u64, Setup), String> {
        let known = || Workload::ALL.iter().map(|workload| workload.name).collect::<Vec<_>>().join(", ");
        let Some(name) = self.name.as_deref() else {
            return Err(format!("Name a workload: {}. vramscope run --list describes them.", known()));
        };
        let workload = choice::workload(name)?;
        let choices = choice::choices(workload, &self.choices)?;
        let capacity = match &self.capacity {
            Some(text) => setting::capacity(text)?,
            None => workload.capacity,
        };
        let (profile, config) = setting::allocator(&self.torch, &self.conf)?;
        let setup = Setup { capacity, seed: self.seed, profile, config };
        Ok((workload, choices, self.steps.unwrap_or(workload.steps), setup))
    }

    /// Looks for settings.
    fn tuned(&self, goal: GoalName) -> Result<TunedRun, String> {
        if self.driver == Driver::Cuda {
            return Err("--tune runs the workload on a simulated device: leave out --driver cuda.".to_owned());
        }
        let (workload, choices, steps, setup) = self.chosen()?;
        TunedRun::new(workload, &choices, steps, &setup, goal)
    }

    /// Runs the workload.
    fn execute(&self) -> Result<Finished, String> {
        let (workload, choices, steps, mut setup) = self.chosen()?;
        let capacity = setup.capacity;
        let (outcome, delivery) = match self.driver {
            Driver::Sim => self.execute_on(ClockedSim::new(capacity), workload, &choices, steps, &setup)?,
            Driver::Cuda => {
                let device = CudaDriver::open(self.gpu).map_err(|error| format!("--driver cuda: {error}."))?;
                // A device may have less than the workload is used to.
                setup.capacity = capacity.min(device.total_memory());
                self.execute_on(device, workload, &choices, steps, &setup)?
            }
        };
        let has_failed = matches!(outcome.error, Some(JobError::Driver(_) | JobError::Misuse(_)));
        let heading = Heading {
            name: workload.name.to_owned(),
            choices: choices.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            driver: self.driver.to_string(),
            capacity: setup.capacity,
            torch: setup.profile.torch,
            conf: self.conf.clone(),
            seed: self.seed,
        };
        let _progress = Progress::new(format!("Looking into {}", workload.name));
        Ok(Finished { report: Report::new(heading, outcome), has_failed, delivery })
    }

    /// Runs the workload on a device and sends its trace where it should go.
    fn execute_on<D: Device>(
        &self,
        device: D,
        workload: &Workload,
        choices: &Choices,
        steps: u64,
        setup: &Setup,
    ) -> Result<(Outcome, Option<Delivery>), String> {
        if let Some(path) =
            self.out.as_ref().filter(|path| self.to.is_wanted() && path.extension() != Some(EXTENSION.as_ref()))
        {
            return Err(format!(
                "{}: a published run can only be written as .{EXTENSION}. End the file's name with it.",
                path.display()
            ));
        }
        let live = self.to.start(if self.driver == Driver::Sim { "simulated" } else { "every event" })?;
        let mut out = self.out.as_deref().map(|out| Out::create(out, self.overwrite)).transpose()?;
        let file = match &out {
            Some(Out { path, format: OutFormat::Recording, .. }) => {
                Some(FileOutput::create(path).map_err(|error| cannot_be_written(path, &error))?)
            }
            _ => None,
        };
        let condition = file.as_ref().map(FileOutput::condition).unwrap_or_default();
        if let Some(out) = &mut out {
            (out.condition, out.is_alone) = (condition.clone(), live.is_none());
        }
        let (output, live): (Option<Box<dyn Output>>, _) = match (file, live) {
            (Some(file), Some((published, live))) => (Some(Box::new(DualOutput::new(file, published))), Some(live)),
            (None, Some((published, live))) => (Some(Box::new(published)), Some(live)),
            (Some(file), None) => (Some(Box::new(file)), None),
            (None, None) => (None, None),
        };
        // A published run is timed by the machine's clock. Any other has simulated times, so that its trace is reproducible.
        let clock = if live.is_some() { JobClock::machine() } else { JobClock::default() };
        let recording = output.map(|output| {
            let heading = RecordingHeading {
                name: self.title.as_deref().unwrap_or(workload.name),
                job: live.as_ref().and_then(|_| std::env::var(JOB_VARIABLE).ok()).unwrap_or_default(),
                // Without the host's name, the file is the same on every machine.
                host: live.as_ref().map(|_| host_name()).unwrap_or_default(),
                device: (device.model(), device.total_memory()),
                allocator: (&setup.config, setup.profile),
            };
            let path = self.out.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
            RecordingOutput::start(output, &path, heading, &clock).map_err(|error| error.to_string())
        });
        let recording = recording.transpose()?;
        let progress = Progress::new(format!("Running {}", workload.name));
        let watch = watch(
            progress,
            live.as_ref().map(|live| {
                let invitation = (!live.greet()).then(|| live.invitation());
                (Arc::clone(&live.handle), invitation)
            }),
            self.out.as_ref().map(|out| (format!("{}: ", out.display()), condition)),
        );
        let pacer = live.as_ref().map(LivePublication::pacer);
        let stop = live.as_ref().map(LivePublication::stop_signal).unwrap_or_default();
        let memory_watch = self
            .warn_at
            .map(|share| MemoryWatch::new(share, setup.capacity, Box::new(|warning| warn(&warning.to_string()))));
        let control = RunControl { watch, memory_watch, pacer, stop, clock, recording };
        let outcome = crate::workloads::run(workload, choices, steps, setup, device, control);
        let delivery = live.map(|live| live.finish(outcome.recorded.as_ref()));
        if let Some(out) = &mut out {
            out.finish(&outcome)?;
        }
        Ok((outcome, delivery))
    }
}

/// A run that has ended.
struct Finished {
    report: Report,
    /// The device failed.
    has_failed: bool,
    /// What has arrived, of a run that was published.
    delivery: Option<Delivery>,
}

/// Returns the list of workloads and their parameters for people.
fn list() -> String {
    let mut text = String::new();
    for workload in Workload::ALL {
        text += &format!("{:<16} {}\n", workload.name, workload.line);
        for param in workload.params {
            text += &format!("{:18}{}={}  {} ({})\n", "", param.name, param.default, param.help, param.values);
        }
    }
    text
}

/// Returns the list of workloads and their parameters as JSON.
fn list_for_programs() -> String {
    let workloads: Vec<_> = Workload::ALL
        .iter()
        .map(|workload| {
            let params: Vec<_> = workload
                .params
                .iter()
                .map(|param| {
                    let values = param.values.to_string();
                    json!({ "name": param.name, "default": param.default, "values": values, "help": param.help })
                })
                .collect();
            let Workload { name, line, capacity, steps, .. } = workload;
            json!({ "name": name, "line": line, "capacity_bytes": capacity, "steps": steps, "params": params })
        })
        .collect();
    serde_json::to_string_pretty(&json!({ "workloads": workloads })).unwrap_or_default() + "\n"
}

/// The file for the trace, created before the run so that an invalid name is reported at once.
struct Out<'a> {
    path: &'a Path,
    format: OutFormat,
    /// How the file of a recording fares.
    condition: FileCondition,
    /// Whether the recording goes nowhere else: then what the recorder lost is missing in the file alone.
    is_alone: bool,
}

/// The format of a file.
enum OutFormat {
    /// A snapshot for PyTorch's tools, written when the run has ended: under a temporary name until it is complete.
    Pickle(File, PathBuf),
    /// A recording, written while it runs.
    Recording,
}

impl<'a> Out<'a> {
    fn create(path: &'a Path, overwrite: Overwrite) -> Result<Self, String> {
        let name = path.display();
        let format = match path.extension().and_then(|ending| ending.to_str()) {
            Some("pickle") => {
                overwrite.check(path)?;
                let part = part_of(path);
                let file = create(&part).map_err(|error| cannot_be_written(path, &error))?;
                OutFormat::Pickle(file, part)
            }
            Some(EXTENSION) => {
                overwrite.check(path)?;
                OutFormat::Recording
            }
            _ => return Err(format!("{name}: unknown kind of file. End its name with .pickle or .{EXTENSION}.")),
        };
        Ok(Self { path, format, condition: FileCondition::default(), is_alone: true })
    }

    /// Writes the rest of the file. Returns a sentence if the file is incomplete.
    fn finish(&mut self, outcome: &Outcome) -> Result<(), String> {
        let name = self.path.display();
        match &mut self.format {
            OutFormat::Pickle(file, part) => {
                let mut result = Ok(());
                export::pickle(&outcome.snapshot, &mut |piece| {
                    if result.is_ok() {
                        result = file.write_all(piece);
                    }
                });
                // Some file systems notice only at the sync that a disk is full.
                let result = result.and_then(|()| file.sync_all()).and_then(|()| fs::rename(&*part, self.path));
                result.map_err(|error| {
                    // An incomplete pickle is of no use. Fails only if the folder is not writable.
                    let _ = fs::remove_file(&*part);
                    cannot_be_written(self.path, &error)
                })
            }
            OutFormat::Recording => {
                let stats = outcome.recorded.as_ref().filter(|_| self.is_alone);
                if let Some(RecorderStats { failure: Some(failure), unwritten, .. }) = stats {
                    let lost = counted(*unwritten, "event");
                    return Err(format!(
                        "{name}: writing failed: {failure}. The file can be read up to there; {lost} could not be \
                         written."
                    ));
                }
                if let Some(failure) = self.condition.failure() {
                    return Err(format!("{name}: writing failed: {failure}. The file can be read up to there."));
                }
                match self.condition.gap(stats.map_or(0, |stats| stats.lost)) {
                    Some(gap) => Err(format!("{name}: {gap}.")),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Returns a callback that shows the progress of a run. It also prints once when the server refuses the run, or when it can
/// be reached at last, and whenever a disk is full and has room again.
fn watch(
    progress: Progress,
    mut publisher: Option<(Arc<PublisherHandle>, Option<String>)>,
    file: Option<(String, FileCondition)>,
) -> Option<Watch> {
    if !progress.is_visible() && publisher.is_none() && file.is_none() {
        return None;
    }
    let mut last = Instant::now();
    let mut was_full = false;
    Some(Box::new(move |span, events| {
        if last.elapsed() < LOOK {
            return;
        }
        last = Instant::now();
        let full = file.as_ref().and_then(|(name, condition)| condition.full().map(|why| format!("{name}{why}")));
        let full = full.or_else(|| publisher.as_ref().and_then(|(handle, _)| handle.stats().spool_failure));
        match &full {
            Some(why) if !was_full => {
                warn(&format!("{why}. Make room: events that have none are left out and counted."));
            }
            None if was_full => note("The disk has room again."),
            _ => {}
        }
        was_full = full.is_some();
        if let Some((handle, invitation)) = &mut publisher {
            if let Some(line) = invitation.take_if(|_| handle.stats().is_connected) {
                note(&line);
            }
            if let Some(line) = live::stopped(&handle.stats()) {
                warn(&line);
                publisher = None;
            }
        }
        progress.show(|| format!("{span}, {}", counted(events as u64, "event")));
    }))
}
