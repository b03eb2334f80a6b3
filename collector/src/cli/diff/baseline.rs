//! Baselines where a command reads or writes one: in a file, or on a server.

use std::io::Write;
use std::path::Path;

use compare::Run;
use query::run_profile::{MomentChoice, ProfiledMoment};
use trace::limits::BASELINE_BYTES;

use super::super::output::Overwrite;
use super::super::read;
use super::super::remote_file::RemoteFile;
pub(in super::super) use crate::baseline::Baseline;
use crate::baseline::START;

/// Reads a baseline. `None` if it is none, but may be a snapshot or a recording.
///
/// # Errors
///
/// Returns a sentence if it can't be read, or is a baseline that can't be used.
pub(in super::super) fn read_baseline(path: &Path) -> Result<Option<Baseline>, String> {
    let name = read::short_name_of(path);
    let named = |why: String| format!("{name}: {why}");
    match RemoteFile::of(path) {
        Some(RemoteFile::Baseline(_)) => {}
        // The trace of a link or of a job is fetched once.
        Some(_) => return Ok(None),
        // What comes through a pipe can be read only once, and is no baseline.
        None if read::is_standard_input(path) || path.exists() && !path.is_file() => return Ok(None),
        None => {
            let mut start = [0; START.len()];
            let is_it = read::open(path).map_err(named)?.read_exact(&mut start).is_ok() && start == *START;
            if !is_it {
                return Ok(None);
            }
        }
    }
    let bytes = read::bytes(path, BASELINE_BYTES).map_err(named)?;
    Baseline::parse(&bytes).map(Some).map_err(named)
}

/// Writes a baseline into a file, in place of one that is there.
pub(in super::super) fn write_baseline(baseline: &Baseline, path: &Path) -> Result<(), String> {
    let text = baseline.to_json()?;
    Overwrite::always().write(path, |file| file.write_all(&text))
}

/// Returns the moment of a run that is compared with a baseline of this moment, or that begins one.
pub(in super::super) fn moment_like(moment: Option<&ProfiledMoment>, run: &Run<'_>) -> MomentChoice {
    let steps = run.whole_steps().steps;
    let numbers = || steps.iter().map(|(number, _)| *number);
    match moment {
        None if run.has_history() => numbers().max().map_or(MomentChoice::Peak, MomentChoice::Step),
        None => MomentChoice::End,
        Some(ProfiledMoment { step: Some(step), is_peak, .. }) => {
            // The same step, or else the last whole one: what is allocated once is there by then, too.
            let step = numbers().find(|number| number == step).or_else(|| numbers().max());
            step.map_or(MomentChoice::Peak, if *is_peak { MomentChoice::Step } else { MomentChoice::StepEnd })
        }
        Some(ProfiledMoment { phase: Some(phase), .. }) => MomentChoice::Phase(phase.clone()),
        Some(moment) if moment.is_peak => MomentChoice::Peak,
        Some(_) => MomentChoice::End,
    }
}
