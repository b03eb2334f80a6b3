//! A run that was read, with all that its profile needs.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use analysis::best_frames::BestFrames;
use analysis::high_water::HighWater;
use analysis::roles::Roles;
use compare::{Run, profile};
use format::import::Imported;
use query::finding::Integrity;
use query::run_profile::{Conditions, MomentChoice, MostMemory, RunProfile};
use replay::index::Index;
use replay::{Replay, Replayed};
use trace::units::Stream;
use trace::{DeviceTrace, Snapshot};

use super::super::device::choose;
use super::super::progress::Progress;
use super::super::read::{read, short_name_of};

/// One device of a file.
pub(in super::super) struct Loaded {
    name: String,
    trace: DeviceTrace,
    snapshot: Snapshot,
    replay: Replay,
    best_frames: BestFrames,
    roles: Roles,
    streams: Vec<Stream>,
    most: MostMemory,
    known: Conditions,
}

impl Loaded {
    /// Reads a file.
    pub(in super::super) fn read(path: &Path, device: Option<i64>) -> Result<Self, String> {
        let named = |sentence: String| format!("{}: {sentence}", short_name_of(path));
        let Imported { mut snapshot, findings, header, .. } = read(path).map_err(named)?;
        let index = choose(device, &snapshot.devices).map_err(named)?;
        let _progress = Progress::new(format!("Replaying {}", short_name_of(path)));
        let trace = snapshot.devices.swap_remove(index);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let best_frames = BestFrames::build(&snapshot.symbols);
        let streams = Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay }.streams();
        let high = HighWater::of(&trace, &replay);
        let most = MostMemory { allocated: high.requested, reserved: high.reserved };
        let integrity = Integrity::of(&findings);
        let known = Conditions {
            conf: snapshot.settings.conf.clone(),
            is_damaged: integrity.is_damaged || integrity.is_cut,
            ..header.unwrap_or_default().conditions(trace.device)
        };
        let (name, roles) = (short_name_of(path), Roles::default());
        Ok(Self { name, trace, snapshot, replay, best_frames, roles, streams, most, known })
    }

    /// Reads two files at the same time. If both fail, returns the error of the first.
    pub(in super::super) fn both(files: [&Path; 2], device: Option<i64>) -> Result<[Self; 2], String> {
        let [one, other] = at_once(files.map(|file| move || Self::read(file, device)));
        Ok([one?, other?])
    }

    /// Returns the run.
    pub(in super::super) fn run(&self) -> Run<'_> {
        let Self { name, trace, snapshot, replay, best_frames, roles, streams, most, known } = self;
        let input = Replayed { trace, tags: &snapshot.tags, replay };
        Run { name, input, symbols: &snapshot.symbols, best_frames, roles, streams, most: *most, known }
    }
}

/// Returns the moments at which two runs are compared unless a person names others.
pub(in super::super) fn common_moments(runs: &[Loaded; 2]) -> [MomentChoice; 2] {
    let [a, b] = runs.each_ref().map(Loaded::run);
    let common = MomentChoice::common(a.has_history() && b.has_history(), &a.whole_steps(), &b.whole_steps());
    [common.clone(), common]
}

/// Profiles two runs at the same time, each at its moment.
pub(in super::super) fn profiles(runs: &mut [Loaded; 2], at: &[MomentChoice; 2]) -> Result<[RunProfile; 2], String> {
    let [a, b] = runs;
    let [one, other] = at_once([(a, &at[0]), (b, &at[1])].map(|(loaded, at)| move || profile(&loaded.run(), at)));
    Ok([one?, other?])
}

/// Does two things at the same time.
fn at_once<T: Send>([one, other]: [impl FnOnce() -> T + Send; 2]) -> [T; 2] {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        [one.join().unwrap_or_else(|panic| resume_unwind(panic)), other]
    })
}
