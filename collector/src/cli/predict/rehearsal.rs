//! Runs the program once without a GPU, in a folder of its own, and reads what its processes wrote there.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use format::EXTENSION;

use super::super::job::{self, Program, WATCHED_VARIABLE, run_name};
use super::environment::Environment;
use super::found::Found;
use super::target::Target;
use crate::access::create_private_folder;

/// How much longer than its time a process may take: it ends itself, unless it is stuck in code that never returns to Python.
const GRACE: Duration = Duration::from_secs(30);
/// The time between two looks at the program.
const LOOK: Duration = Duration::from_millis(20);

/// How a program is run.
#[derive(Clone, Debug)]
pub(super) struct Rehearsal<'a> {
    pub(super) environment: &'a Environment,
    /// The number of ranks that one process is one of; `None` if a launcher says so, or if there is one alone.
    pub(super) world: Option<u64>,
    /// Optimizer steps, at most.
    pub(super) steps: Option<u64>,
    /// Whether equal steps don't end it.
    pub(super) is_whole: bool,
    /// Batches of data that are loaded; the rest are these again.
    pub(super) batches: Option<u64>,
    /// The seconds that it may take.
    pub(super) seconds: u64,
    /// The share of elements that a made-up mask selects.
    pub(super) selected: Option<f64>,
    /// Values that are given, as Python reads them.
    pub(super) values: Option<String>,
}

/// What becomes of what the program prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// It goes to standard error: standard output is for the answer.
    Shown,
    /// It is dropped: another run of the same program is shown, or its errors are expected.
    Hidden,
}

/// What came of a run.
#[derive(Debug)]
pub(super) struct Rehearsed {
    /// What its processes that used the GPU found, by rank.
    pub(super) processes: Vec<Found>,
    /// The folder with their recordings.
    pub(super) folder: PathBuf,
    pub(super) status: ExitStatus,
    pub(super) took: Duration,
    /// Whether it had to be stopped.
    pub(super) is_stopped: bool,
}

impl Rehearsal<'_> {
    /// Runs a program as a rank, in a folder that must be there.
    pub(super) fn run(
        &self,
        program: &Program,
        target: Target,
        rank: Option<u64>,
        (folder, output): (&Path, Output),
    ) -> Result<Rehearsed, String> {
        let mut command = program.command(Some(&self.environment.python))?;
        self.environment.set(&mut command);
        target.set(&mut command);
        self.tell(&mut command, (folder, &program.name()), target.devices, rank);
        match output {
            Output::Shown => command.stdout(to_standard_error()),
            Output::Hidden => command.stdout(Stdio::null()).stderr(Stdio::null()),
        };
        #[cfg(unix)]
        let handlers = job::Handlers::install()?;
        let begun = Instant::now();
        let shown = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|error| format!("{shown} can't be started: {error}."))?;
        #[cfg(unix)]
        let forwarding = handlers.forward_to(&child);
        let (status, is_stopped) = wait(&mut child, Duration::from_secs(self.seconds) + GRACE)?;
        #[cfg(unix)]
        drop(forwarding);
        let processes = Found::in_folder(folder);
        Ok(Rehearsed { processes, folder: folder.to_owned(), status, took: begun.elapsed(), is_stopped })
    }

    /// Sets the variables that the recorder and the prediction read.
    fn tell(&self, command: &mut Command, (folder, name): (&Path, &str), devices: u64, rank: Option<u64>) {
        let out = folder.join(format!("{name}-{{rank}}-{{pid}}.{EXTENSION}"));
        command.env("VRAMSCOPE_OUT", out).env("VRAMSCOPE_MODE", "events");
        // Without it, the recorder would say where it records to.
        command.env(WATCHED_VARIABLE, "1");
        command.env("VRAMSCOPE_PREDICT", folder).env("VRAMSCOPE_PREDICT_SECONDS", self.seconds.to_string());
        let whole = self.is_whole.then(|| "1".to_owned());
        for (name, value) in [
            ("VRAMSCOPE_PREDICT_STEPS", self.steps.map(|steps| steps.to_string())),
            ("VRAMSCOPE_PREDICT_WHOLE", whole),
            ("VRAMSCOPE_PREDICT_BATCHES", self.batches.map(|batches| batches.to_string())),
            ("VRAMSCOPE_PREDICT_SELECTED", self.selected.map(|share| share.to_string())),
            ("VRAMSCOPE_PREDICT_VALUES", self.values.clone()),
        ] {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let Some((world, rank)) = self.world.zip(rank) else { return };
        // What a launcher would have set, on machines with as many devices each.
        for (name, value) in [
            ("VRAMSCOPE_PREDICT_WORLD", world),
            ("VRAMSCOPE_PREDICT_RANK", rank),
            ("WORLD_SIZE", world),
            ("RANK", rank),
            ("LOCAL_WORLD_SIZE", devices.min(world)),
            ("LOCAL_RANK", rank % devices),
            ("GROUP_RANK", rank / devices),
        ] {
            command.env(name, value.to_string());
        }
        command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", "29500");
    }
}

/// Makes a folder for the recordings of a program, which only this user can read.
pub(super) fn new_folder(name: &str) -> Result<PathBuf, String> {
    let path = std::env::temp_dir().join(format!("vramscope-predict-{}", run_name(name)?));
    create_private_folder(&path).map_err(|error| format!("{error} Name a folder for the recordings with --out."))?;
    Ok(path)
}

/// Returns standard error, for a program to print to.
fn to_standard_error() -> Stdio {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        std::io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from)
    }
    #[cfg(not(unix))]
    Stdio::inherit()
}

/// Waits for a program, and stops it when its time is over. Returns whether it had to be stopped.
fn wait(child: &mut Child, within: Duration) -> Result<(ExitStatus, bool), String> {
    let failed = |error| format!("The program can't be waited for: {error}.");
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok((status, false));
        }
        if begun.elapsed() > within {
            let _ = child.kill();
            return Ok((child.wait().map_err(failed)?, true));
        }
        thread::sleep(LOOK);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_stopped_when_its_time_is_over() {
        for (seconds, within, wanted) in [("0", 60_000, false), ("60", 40, true)] {
            let mut child = Command::new("sleep").arg(seconds).spawn().unwrap();
            let (status, is_stopped) = wait(&mut child, Duration::from_millis(within)).unwrap();
            assert_eq!((is_stopped, status.success()), (wanted, !wanted), "{seconds}");
        }
    }
}
