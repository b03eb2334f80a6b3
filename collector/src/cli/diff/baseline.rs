//! A baseline: some runs in brief, which later ones are compared with.
//!
//! It is a file of JSON that a repository can keep: `{"vramscope_baseline": 1, "runs": […]}`, with a [`RunProfile`] for each run.
//! How much they differ from one another is noise.

use std::io::Write;
use std::path::Path;

use compare::{Run, middle};
use query::run_profile::{MomentChoice, ProfiledMoment, RunProfile};
use serde::{Deserialize, Serialize};
use trace::limits::BASELINE_BYTES;
use trace::units::Bytes;

use super::super::output::Overwrite;
use super::super::read;

/// How a baseline begins, which nothing else that is read does.
const START: &[u8] = br#"{"vramscope_baseline":"#;
/// The version that is written. Others are refused.
const VERSION: u32 = 1;

/// A baseline.
#[derive(Debug, Serialize, Deserialize)]
pub(in super::super) struct Baseline {
    vramscope_baseline: u32,
    /// The runs, the oldest first.
    pub(in super::super) runs: Vec<RunProfile>,
}

impl Baseline {
    /// Returns one of these runs.
    pub(in super::super) const fn of(runs: Vec<RunProfile>) -> Self {
        Self { vramscope_baseline: VERSION, runs }
    }

    /// Reads a file. `None` if it is no baseline, but may be a snapshot or a recording.
    ///
    /// # Errors
    ///
    /// Returns a sentence if it can't be read, or is a baseline that can't be used.
    pub(in super::super) fn read(path: &Path) -> Result<Option<Self>, String> {
        // What comes through a pipe can be read only once, and is no baseline.
        if read::is_standard_input(path) || path.exists() && !path.is_file() {
            return Ok(None);
        }
        let name = read::short_name_of(path);
        let mut file = read::open(path).map_err(|why| format!("{name}: {why}"))?;
        let mut start = [0; START.len()];
        let is_it = file.read_exact(&mut start).is_ok() && start == *START;
        if !is_it {
            return Ok(None);
        }
        let bytes = read::bytes(path, BASELINE_BYTES)?;
        if bytes.len() > BASELINE_BYTES {
            return Err(format!("{name}: a baseline has at most {}. Keep fewer runs.", Bytes(BASELINE_BYTES as u64)));
        }
        let found: Self = serde_json::from_slice(&bytes).map_err(|error| {
            format!("{name}: this baseline can't be read: {error}. Make it again: vramscope baseline set.")
        })?;
        match found.vramscope_baseline {
            VERSION if !found.runs.is_empty() => Ok(Some(found)),
            VERSION => Err(format!("{name}: this baseline has no runs. Add one: vramscope baseline set.")),
            _ => Err(format!(
                "{name}: this baseline is of another version of Vramscope. Make it again: vramscope baseline set."
            )),
        }
    }

    /// Writes a file, in place of one that is there.
    pub(in super::super) fn write(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        Overwrite::always().write(path, |file| file.write_all(&text))
    }

    /// Returns the run in the middle, and the others.
    pub(in super::super) fn divided(self) -> Result<(RunProfile, Vec<RunProfile>), String> {
        middle(self.runs).ok_or_else(|| "This baseline has no runs.".to_owned())
    }
}

/// Returns the moment of a run that is compared with a baseline of this moment, or that begins one.
pub(in super::super) fn moment_like(moment: Option<&ProfiledMoment>, run: &Run<'_>) -> MomentChoice {
    let last = || run.whole_steps().max().map_or(MomentChoice::Peak, MomentChoice::Step);
    match moment {
        None if run.has_history() => last(),
        None => MomentChoice::End,
        Some(ProfiledMoment { step: Some(step), .. }) => {
            // The same step, or else the last whole one: what is allocated once is there by then, too.
            let same = run.whole_steps().find(|number| number == step);
            same.map_or_else(last, MomentChoice::Step)
        }
        Some(moment) if moment.is_peak => MomentChoice::Peak,
        Some(_) => MomentChoice::End,
    }
}
