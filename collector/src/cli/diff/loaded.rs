//! A run that was read, with all that its profile needs.

use std::path::Path;

use analysis::best_frames::BestFrames;
use analysis::roles::Roles;
use compare::Run;
use format::import::Imported;
use query::finding::Integrity;
use query::run_profile::Conditions;
use replay::index::Index;
use replay::{Replay, Replayed};
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
        let integrity = Integrity::of(&findings);
        let known = Conditions {
            conf: snapshot.settings.conf.clone(),
            is_damaged: integrity.is_damaged || integrity.is_cut,
            ..header.unwrap_or_default().conditions(trace.device)
        };
        Ok(Self { name: short_name_of(path), trace, snapshot, replay, best_frames, roles: Roles::default(), known })
    }

    /// Returns the run.
    pub(in super::super) fn run(&self) -> Run<'_> {
        let Self { name, trace, snapshot, replay, best_frames, roles, known } = self;
        let input = Replayed { trace, tags: &snapshot.tags, replay };
        Run { name, input, symbols: &snapshot.symbols, best_frames, roles, known }
    }
}
