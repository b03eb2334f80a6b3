//! The doctor: why memory ran out, what else is wrong with a trace, and what to try.
//!
//! There is one pipeline for the page, `report`, `doctor`, `run`, live sessions and tests: a [`Case`] goes in, and a
//! [`Diagnosis`] comes out.

mod rules;

pub use rules::looked_for;

use crate::analysis::folding::BestFrames;
use crate::analysis::usage::Usage;
use crate::diagnosis::Diagnosis;
use crate::finding::Finding;
use crate::frames::Symbols;
use crate::replay::Replay;
use crate::trace::{DeviceTrace, Settings, Tags};

/// A device's trace, and everything else that its diagnosis follows from.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The trace.
    pub trace: &'a DeviceTrace,
    /// The tags of its events.
    pub tags: &'a Tags,
    /// Strings, frames and stacks.
    pub symbols: &'a Symbols,
    /// Which frame represents each stack.
    pub best_frames: &'a BestFrames,
    /// The allocator's settings.
    pub settings: &'a Settings,
    /// The allocator's states.
    pub replay: &'a Replay,
    /// The memory use by call site.
    pub usage: &'a Usage,
    /// Bytes of the device that the process may use, if known.
    pub capacity: Option<u64>,
}

/// Returns the diagnosis of a case.
pub fn diagnose(case: &Case<'_>) -> Diagnosis {
    let mut findings: Vec<Finding> = rules::check(case);
    findings.sort_by_key(|finding| (finding.severity, std::cmp::Reverse(finding.bytes)));
    Diagnosis { device: case.trace.device, findings, ..Diagnosis::default() }
}
