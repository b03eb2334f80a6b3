//! `vramscope bisect`: tells `git bisect run` whether a commit needs as much memory as a good run, or as a bad one.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;
use compare::profile;
use format::EXTENSION;
use query::run_profile::RunProfile;
use trace::units::{Bytes, distinguished};

use super::diff::baseline::moment_like;
use super::diff::loaded::{Loaded, common_moments, profiles};
use super::message::note;
use super::refuse;

/// What `git bisect run` takes for a bad commit.
const BAD: u8 = 1;
/// What it takes for a commit that can't be tested.
const SKIP: u8 = 125;
/// What ends it.
const STOP: u8 = 128;

/// The exit codes.
const STATUS: &str = "\
Exit status, as `git bisect run` reads it:
  0    Good: the run's peak is nearer to the good run's
  1    Bad: it is nearer to the bad run's
  125  The job failed, or recorded nothing: the commit is skipped
  128  The good and the bad run can't be told apart, or can't be read: the search ends

Example:
  git bisect start BAD GOOD
  git bisect run vramscope bisect --good old.vramscope --bad new.vramscope -- train.py --steps 10";

/// The options of `bisect`.
#[derive(Args, Debug)]
#[command(after_help = STATUS)]
pub(super) struct Bisect {
    /// A run before the change: a snapshot or a recording
    #[arg(long, value_name = "FILE")]
    good: PathBuf,
    /// A run after it
    #[arg(long, value_name = "FILE")]
    bad: PathBuf,
    /// Device, by its number in the files [default: the first one with events]
    #[arg(long, value_name = "N")]
    device: Option<i64>,
    /// The job, as `vramscope watch` takes it; everything after it belongs to it
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// What a commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Commit {
    Good,
    Bad,
}

impl Bisect {
    /// Runs the job, and tells what its commit is.
    pub(super) fn run(self) -> ExitCode {
        let ends = match self.ends() {
            Ok(ends) => ends,
            Err(sentence) => {
                let _ = refuse(&sentence);
                return ExitCode::from(STOP);
            }
        };
        match self.found(&ends) {
            Ok((commit, sentence)) => {
                note(&format!("vramscope: {sentence}"));
                ExitCode::from(if commit == Commit::Bad { BAD } else { 0 })
            }
            Err(sentence) => {
                let _ = refuse(&format!("{sentence} The commit is skipped."));
                ExitCode::from(SKIP)
            }
        }
    }

    /// Reads the good and the bad run.
    fn ends(&self) -> Result<[RunProfile; 2], String> {
        let mut runs = Loaded::both([&self.good, &self.bad], self.device)?;
        let at = common_moments(&runs);
        let ends = profiles(&mut runs, &at)?;
        let [good, bad] = &ends;
        if bad.memory.allocated <= good.memory.allocated {
            return Err(format!(
                "The bad run needs no more memory than the good one: {} and {} at {}. Are they swapped?",
                Bytes(bad.memory.allocated),
                Bytes(good.memory.allocated),
                good.moment.text
            ));
        }
        Ok(ends)
    }

    fn found(&self, [good, bad]: &[RunProfile; 2]) -> Result<(Commit, String), String> {
        let folder = Folder::new()?;
        let out = folder.0.join(format!("{{rank}}-{{pid}}.{EXTENSION}"));
        let own = std::env::current_exe().map_err(|error| format!("The program's own file is unknown: {error}."))?;
        let mut job = Command::new(own);
        job.args(["watch", "--stop-server", "--out"]).arg(&out).args(&self.program);
        let status = job.status().map_err(|error| format!("The job can't be started: {error}."))?;
        if !status.success() {
            return Err("The job failed.".to_owned());
        }
        let mut runs = Vec::new();
        for file in folder.recordings()? {
            let loaded = Loaded::read(&file, self.device)?;
            let run = loaded.run();
            runs.push(profile(&run, &moment_like(Some(&good.moment), &run))?);
        }
        // Of several processes, the one that needs most.
        let most = runs.into_iter().max_by_key(|run| run.memory.allocated);
        let run = most.ok_or("The job recorded nothing.")?;
        Ok(judged(good.memory.allocated, bad.memory.allocated, &run))
    }
}

/// Tells which of two amounts a run is nearer to.
fn judged(good: u64, bad: u64, run: &RunProfile) -> (Commit, String) {
    let bytes = run.memory.allocated;
    let is_bad = bytes.abs_diff(bad) < bytes.abs_diff(good);
    let (commit, word) = if is_bad { (Commit::Bad, "bad") } else { (Commit::Good, "good") };
    let (low, high) = distinguished(Bytes(good), Bytes(bad));
    (
        commit,
        format!("{word}: {} at {}, where the good run has {low} and the bad one {high}", Bytes(bytes), run.moment.text),
    )
}

/// A folder that goes with its files.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("vramscope-bisect-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{} can't be made: {error}.", path.display()))?;
        Ok(Self(path))
    }

    fn recordings(&self) -> Result<Vec<PathBuf>, String> {
        let entries = fs::read_dir(&self.0).map_err(|error| format!("{} can't be read: {error}.", self.0.display()))?;
        let files = entries.flatten().map(|entry| entry.path());
        Ok(files.filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION)).collect())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What can't be removed is in a folder for what can be.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use query::run_profile::ProfiledMemory;

    use super::*;

    #[test]
    fn a_commit_is_what_its_run_is_nearer_to() {
        let run = |allocated: u64| RunProfile {
            memory: ProfiledMemory { allocated, ..ProfiledMemory::default() },
            ..RunProfile::default()
        };
        let of = |bytes| judged(100, 200, &run(bytes)).0;
        assert_eq!([90, 100, 149, 150].map(of), [Commit::Good; 4]);
        assert_eq!([151, 200, 900].map(of), [Commit::Bad; 3]);
    }
}
