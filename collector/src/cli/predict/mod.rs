//! `vramscope predict`: runs a program without a GPU, and tells what memory it needs.
//!
//! ```text
//! ask the program's Python ─► run the program over a driver that runs no kernel, recorded ─► read the recording ─► tell
//! ```
//! PyTorch and its allocator are the real ones, and so is every request. What is not real is said: values that no kernel
//! computed, and what libraries take beside PyTorch.

mod answer;
mod environment;
mod found;
mod given;
mod model;
mod prediction;
mod ranks;
mod rehearsal;
mod target;
mod variable;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use self::answer::{Answer, cards};
use self::environment::Environment;
use self::given::Given;
use self::model::Model;
use self::prediction::{Prediction, Process, tuned};
use self::ranks::{Peaks, Ranks, classes};
use self::rehearsal::{Output, Rehearsal, Rehearsed, new_folder};
use self::target::Target;
use self::variable::{Largest, Variable, Varied};
use super::choice::Offered;
use super::job::Program;
use super::message::{TRIPPED, note};
use super::progress::Progress;
use super::subject::card;
use super::tune::GoalName;
use super::{UNUSABLE, print_json, refuse, setting, show};

/// What `--help` says about the exit status.
const STATUS: &str = "\
Exit status:
  0  It fits, or no memory was named
  1  It does not fit, or needs a larger share than --fail-if-over
  2  It can't be told: the program failed for another reason, or can't be run";

/// The most ranks: more than any job has.
const MOST_RANKS: u64 = 1_000_000;

/// The most devices that a process finds.
const DEVICES: u64 = 8;

/// Options of launchers that set the number of processes: `torchrun`, `accelerate launch`, `deepspeed`.
const PROCESSES: [&str; 3] = ["nproc_per_node", "num_processes", "num_gpus"];

/// The options of `predict`.
#[derive(Args, Debug)]
#[command(after_help = STATUS)]
pub(super) struct Predict {
    /// Card that it should fit on, such as H100-80GB [default: as much memory as it needs]
    #[arg(long, value_name = "NAME", conflicts_with = "capacity", value_parser = Offered::cards(), hide_possible_values = true)]
    card: Option<String>,
    /// Memory that it can have, such as 80GiB
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// Memory of the device that others hold, such as 2GiB
    #[arg(long, value_name = "SIZE")]
    others: Option<String>,
    /// Devices of the machine [default: one for each process that a launcher starts, or with --world-size up to 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=DEVICES))]
    devices: Option<u64>,
    /// Run as one rank of this many, in place of torchrun
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_RANKS))]
    world_size: Option<u64>,
    /// Ranks to run as, one after the other: 0, or 0,7,63; or all-classes, for one of each that needs other memory [default: 0]
    #[arg(long, value_name = "RANKS", requires = "world_size")]
    rank: Option<Ranks>,
    /// Stop after this many optimizer steps [default: when two in a row have the same peak]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Run the program to its end
    #[arg(long, conflicts_with = "steps")]
    whole: bool,
    /// Load this many batches of each DataLoader, and repeat them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batches: Option<u64>,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Find the largest number that fits: batch_size=1..256 is put in place of {batch_size}, or of --batch-size's value
    #[arg(long, value_name = "NAME=FROM..TO")]
    vary: Option<String>,
    /// Exit with 1 if it needs more than this share of the memory, such as 0.9
    #[arg(long, value_name = "SHARE", value_parser = setting::share)]
    fail_if_over: Option<f64>,
    /// Share of elements that a mask of unknown values selects, such as 0.25 for 2 of 8 experts [default: all]
    #[arg(long, value_name = "SHARE", value_parser = setting::share)]
    selected: Option<f64>,
    /// What a line reads where no kernel computed it, such as train.py:62=0.5, true, or the share that a mask there selects; can
    /// be repeated
    #[arg(long, value_name = "FILE:LINE=VALUE")]
    value: Vec<Given>,
    /// Folder for the recordings; it is made [default: one for temporary files]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Python that runs it [default: that of the program, or python or python3 on the PATH]
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    /// PyTorch release to run with, such as 2.11; it is downloaded once [default: the one that Python has]
    #[arg(long, value_name = "RELEASE")]
    torch: Option<String>,
    /// Say everything
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Run a module, as python -m does
    #[arg(short = 'm')]
    is_module: bool,
    /// A Python script, a module with -m, or a program such as torchrun; everything after it belongs to it
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

impl Predict {
    /// Prints the answer, or why there is none.
    pub(super) fn run(self) -> ExitCode {
        let answer = match self.answer() {
            Ok(answer) => answer.said(),
            Err(sentence) => return refuse(&sentence),
        };
        let printed = if self.json { print_json(&answer) } else { show(&answer.to_string()) };
        if printed != ExitCode::SUCCESS {
            return printed;
        }
        let is_tripped = answer.fits == Some(false) || answer.is_over == Some(true);
        if let Some(error) = answer.prediction.error() {
            let hint = hint(&error);
            refuse(&format!("The program failed: {error}.{hint} What it would have needed after that is not known."));
            return ExitCode::from(if is_tripped { TRIPPED } else { UNUSABLE });
        }
        if is_tripped { ExitCode::from(TRIPPED) } else { ExitCode::SUCCESS }
    }

    fn answer(&self) -> Result<Answer, String> {
        // What can't work is refused before anything is started.
        let command = Self::augment_args(clap::Command::new("predict"));
        let program = Program::of(&command, self.is_module, self.words())?;
        let target = self.target(&program)?;
        self.check_ranks()?;
        let variable = self.vary.as_deref().map(Variable::read).transpose()?;
        let limit = target.room.ok_or("--vary and --fail-if-over need a limit: name it with --card or --capacity.");
        let limited = (variable.is_some() || self.fail_if_over.is_some()).then_some(limit).transpose()?;
        if let Some(variable) = &variable {
            variable.within(&program, 1)?;
        }
        let python = program.python(self.python.as_deref())?;
        let environment = match &self.torch {
            None => Environment::of(python)?,
            Some(_) if matches!(program, Program::Other(_)) => {
                return Err(
                    "--torch is for a script, or for a module with -m: another program has its own PyTorch.".to_owned()
                );
            }
            Some(release) => Environment::with_release(&python, release)?,
        };
        let name = program.name();
        let folder = self.folder(&name)?;
        let rehearsal = Rehearsal {
            environment: &environment,
            world: self.world_size,
            steps: self.steps,
            is_whole: self.whole,
            batches: self.batches,
            seconds: self.seconds,
            selected: self.selected,
            values: given::written(&self.value),
        };
        let mut runs = Runs { rehearsal, ranks: vec![None], folder, count: std::cell::Cell::new(0) };
        if let Some(world) = self.world_size {
            runs.ranks = self.ranks(world, &runs, &program, target)?.into_iter().map(Some).collect();
        }
        let mut largest = None;
        let (program, (prediction, took)) = match variable.zip(limited) {
            None => {
                let ran = runs.run(&program, target, Output::Shown)?;
                (program, ran)
            }
            Some((variable, room)) => {
                let (found, ran) = runs.largest(&variable, &program, target, room)?;
                let best = found.fits.or(found.fails).map_or(0, |run| run.value);
                largest = Some(found);
                (variable.within(&program, best)?, ran)
            }
        };
        let has_failed = prediction.has_failed();
        let unlimited = match has_failed && target.room.is_some() {
            true => Some(runs.run(&program, target.ample(), Output::Hidden)?.0),
            false => None,
        };
        let whole = unlimited.as_ref().unwrap_or(&prediction);
        let together = |of: &Prediction| of.shared.map_or(0, |shared| shared.needs);
        let needs = whole.largest().map_or(0, |(_, memory)| memory.needs).max(together(whole));
        let goal = if has_failed { GoalName::Fit } else { GoalName::Reserved };
        let tuning = match prediction.largest() {
            Some((Process { recording: Some(path), .. }, memory)) => {
                Some(tuned(path.as_ref(), memory.device, target, goal)?)
            }
            _ => None,
        };
        let share = |room: u64| needs as f64 / room.max(1) as f64;
        Ok(Answer {
            sentence: String::new(),
            program: name,
            torch: environment.torch.clone(),
            card: target.card.map(|card| card.name),
            room: target.room,
            // What it needs after an error is not known.
            fits: target
                .room
                .filter(|_| prediction.error().is_none())
                .map(|room| !has_failed && together(&prediction) <= room),
            needs,
            is_over: self.fail_if_over.zip(target.room).map(|(most, room)| share(room) > most),
            seconds: took.as_secs_f64(),
            prediction,
            unlimited,
            cards: cards(needs, target.held_by_others),
            is_of_classes: self.rank == Some(Ranks::Classes),
            tuning,
            largest,
            is_verbose: self.verbose,
        })
    }

    /// Returns the devices that the program finds.
    fn target(&self, program: &Program) -> Result<Target, String> {
        let card = self.card.as_deref().map(card).transpose()?;
        let held_by_others = self.others.as_deref().map(setting::capacity).transpose()?.unwrap_or_default();
        let room = match (card, &self.capacity) {
            (Some(card), _) => Some(card.usable().saturating_sub(held_by_others)),
            (None, Some(text)) => Some(setting::capacity(text)?.saturating_sub(held_by_others)),
            (None, None) => None,
        };
        // A launcher starts a process for each device.
        let processes = || self.world_size.or_else(|| program.number_of(&PROCESSES)).unwrap_or(1);
        let devices = self.devices.unwrap_or_else(|| processes().clamp(1, DEVICES));
        if let Some(card) = card.filter(|card| Model::of(card).is_none()) {
            return Err(format!(
                "{} does not run CUDA's PyTorch, which is what is run here. Name its memory with --capacity.",
                card.name
            ));
        }
        Ok(Target { card, room, held_by_others, devices })
    }

    /// Returns the words of the program. A bare name means the program beside the named Python, such as its `torchrun`.
    fn words(&self) -> Vec<OsString> {
        let mut words = self.program.clone();
        if let (Some(python), Some(first)) = (&self.python, words.first_mut()) {
            let beside = python.with_file_name(&*first);
            if !self.is_module
                && Path::new(first).components().count() == 1
                && !Path::new(first).exists()
                && beside.is_file()
            {
                *first = beside.into();
            }
        }
        words
    }

    fn check_ranks(&self) -> Result<(), String> {
        let (Some(world), Some(Ranks::Listed(ranks))) = (self.world_size, &self.rank) else { return Ok(()) };
        match ranks.iter().find(|rank| **rank >= world) {
            Some(rank) => Err(format!("--rank {rank}: the last rank of {world} is {}.", world - 1)),
            None => Ok(()),
        }
    }

    /// Returns the ranks to run as. For all classes, the program is run to find them.
    fn ranks(&self, world: u64, runs: &Runs<'_>, program: &Program, target: Target) -> Result<Vec<u64>, String> {
        match self.rank.clone().unwrap_or_default() {
            Ranks::Listed(ranks) => Ok(ranks),
            Ranks::Classes => {
                // What a limit would change is not what makes a class.
                let program = match self.vary.as_deref().map(Variable::read).transpose()? {
                    Some(variable) => variable.within(program, variable.first())?,
                    None => program.clone(),
                };
                classes(world, |rank| runs.peaks(&program, target.ample(), rank, world))
            }
        }
    }

    fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let Some(folder) = &self.out else { return new_folder(name) };
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("--out {}: the folder can't be made: {error}. Name another.", folder.display()))?;
        Ok(folder.clone())
    }
}

/// What a program needs, and how long it ran.
type Ran = (Prediction, Duration);

/// Runs the program, each time in a folder of its own.
struct Runs<'a> {
    rehearsal: Rehearsal<'a>,
    ranks: Vec<Option<u64>>,
    folder: PathBuf,
    count: std::cell::Cell<u32>,
}

impl Runs<'_> {
    /// Runs the program as each of the ranks. Returns what it needs, and how long it took.
    fn run(&self, program: &Program, target: Target, output: Output) -> Result<Ran, String> {
        let mut all = Prediction::default();
        let mut took = Duration::ZERO;
        for rank in &self.ranks {
            let rehearsed = self.rehearsal.run(program, target, *rank, (&self.next_folder()?, output))?;
            if rehearsed.processes.is_empty() {
                return Err(nothing(&rehearsed));
            }
            took += rehearsed.took;
            let found = Prediction::of(&rehearsed, target)?;
            all.failed_with = all.failed_with.or(found.failed_with);
            all.shared = all.shared.max(found.shared);
            all.processes.extend(found.processes);
        }
        match all.largest() {
            Some(_) => Ok((all, took)),
            None => Err(all.error().map_or_else(
                || "The program used the GPU, but allocated nothing on it.".to_owned(),
                |error| {
                    let hint = hint(&error);
                    format!("The program failed before it allocated anything on the GPU: {error}.{hint}")
                },
            )),
        }
    }

    /// Runs the program as a rank. Returns the peaks of its devices; `None` if it failed.
    fn peaks(&self, program: &Program, target: Target, rank: u64, world: u64) -> Result<Option<Peaks>, String> {
        let _progress = Progress::new(format!("Running as rank {rank} of {world}"));
        let rehearsed = self.rehearsal.run(program, target, Some(rank), (&self.next_folder()?, Output::Hidden))?;
        let devices = rehearsed.processes.iter().flat_map(|found| &found.devices);
        let mut peaks: Peaks = devices.map(|device| (device.allocated, device.reserved)).collect();
        // A device has another number in another rank.
        peaks.sort_unstable();
        let has_failed = rehearsed.processes.iter().any(|found| found.error.is_some());
        Ok((!has_failed && !peaks.is_empty()).then_some(peaks))
    }

    fn next_folder(&self) -> Result<PathBuf, String> {
        let number = self.count.replace(self.count.get() + 1);
        let folder = self.folder.join(number.to_string());
        // One of an earlier command would be mixed up with this one's.
        std::fs::create_dir(&folder).map_err(|error| {
            format!("The folder {} can't be made: {error}. Name another with --out.", folder.display())
        })?;
        Ok(folder)
    }

    /// Finds the largest number that fits. Returns its run too; that of the smallest number if none fits.
    fn largest(
        &self,
        variable: &Variable,
        program: &Program,
        target: Target,
        room: u64,
    ) -> Result<(Largest, Ran), String> {
        let mut best = None;
        let largest = variable.largest(room, |value| {
            let name = format!("{} {value}", variable.name);
            let progress = Progress::new(format!("Running with {name}"));
            let ran = self.run(&variable.within(program, value)?, target, Output::Hidden)?;
            drop(progress);
            if let Some(error) = ran.0.error() {
                return Err(format!("With {name}, the program failed: {error}."));
            }
            let needs = ran.0.largest().map_or(0, |(_, memory)| memory.needs);
            let fits = !ran.0.has_failed();
            note(&format!("{name}: {}", if fits { "fits" } else { "does not fit" }));
            if fits || best.is_none() {
                best = Some(ran);
            }
            Ok(Varied { value, fits, needs })
        })?;
        best.map(|best| (largest, best)).ok_or_else(|| "No number was run.".to_owned())
    }
}

/// Returns what to do about an error that a program has for want of a launcher.
fn hint(error: &str) -> &'static str {
    let is_launched = ["RANK expected", "WORLD_SIZE expected", "MASTER_ADDR expected", "mpi4py"];
    match is_launched.iter().any(|words| error.contains(words)) {
        true => " Run it as one rank of several with --world-size.",
        false => "",
    }
}

/// Says why a run told nothing.
fn nothing(rehearsed: &Rehearsed) -> String {
    let Rehearsed { status, is_stopped, .. } = rehearsed;
    if *is_stopped {
        return "The program had to be stopped, for its time was over, before it told what it needs. Give it more with \
                --seconds."
            .to_owned();
    }
    if let Some(line) = super::job::killed_by(*status) {
        return format!("{line}, before it told what it needs.");
    }
    match status.success() {
        true => "The program did not use the GPU. Does it choose one, as with device=\"cuda\"?".to_owned(),
        false => "The program failed before it used the GPU; its error is above.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    #[test]
    fn a_bare_name_is_the_program_beside_the_python() {
        let folder = tempfile::tempdir().unwrap();
        let beside = |name: &str| folder.path().join(name).into_os_string();
        std::fs::write(beside("torchrun"), "").unwrap();
        for (line, want) in [
            (vec!["torchrun".into(), "train.py".into()], beside("torchrun")),
            (vec!["deepspeed".into()], "deepspeed".into()),
            (vec!["./torchrun".into()], "./torchrun".into()),
            (vec!["-m".into(), "torchrun".into()], "torchrun".into()),
        ] {
            let words = ["predict".into(), "--python".into(), beside("python")].into_iter().chain(line);
            let matches = Predict::augment_args(clap::Command::new("predict")).try_get_matches_from(words).unwrap();
            assert_eq!(Predict::from_arg_matches(&matches).unwrap().words().first(), Some(&want));
        }
    }
}
