//! A trace that is written as text, with everything that the doctor looks at.
#![allow(clippy::expect_used, clippy::panic, reason = "a test that is written wrongly fails")]

use analysis::best_frames::BestFrames;
use analysis::roles::Roles;
use analysis::usage::Usage;
use query::diagnosis::Diagnosis;
use query::finding::Integrity;
use replay::index::Index;
use replay::{Replay, Replayed};
use trace::testing::snapshot;
use trace::{DeviceTrace, Snapshot};

use crate::{Case, diagnose};

/// A trace with everything that the doctor looks at.
pub struct TestCase {
    /// The snapshot, without the device.
    pub snapshot: Snapshot,
    /// The device.
    pub trace: DeviceTrace,
    /// The device's total memory in bytes, if it is known.
    pub capacity: Option<u64>,
    best_frames: BestFrames,
    replay: Replay,
    usage: Usage,
    roles: Roles,
}

impl TestCase {
    /// Returns a test case with the trace of these lines (see [`trace::testing`]).
    pub fn new(lines: &str) -> Self {
        Self::of(snapshot(lines))
    }

    /// Returns a test case with the first device of a snapshot.
    pub fn of(mut snapshot: Snapshot) -> Self {
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let usage = Usage::build(Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay });
        let best_frames = BestFrames::build(&snapshot.symbols);
        Self { snapshot, trace, capacity: None, best_frames, replay, usage, roles: Roles::default() }
    }

    /// Returns the doctor's answer.
    pub fn diagnosis(&self) -> Diagnosis {
        diagnose(&self.case())
    }

    /// Returns what the doctor looks at.
    pub fn case(&self) -> Case<'_> {
        Case {
            roles: &self.roles,
            trace: &self.trace,
            tags: &self.snapshot.tags,
            symbols: &self.snapshot.symbols,
            best_frames: &self.best_frames,
            settings: &self.snapshot.settings,
            replay: &self.replay,
            usage: &self.usage,
            capacity: self.capacity,
            integrity: Integrity::default(),
        }
    }
}
