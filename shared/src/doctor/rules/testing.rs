//! What the rules find in traces that are written as text.

use super::{RULES, looked_for};
use crate::analysis::folding::BestFrames;
use crate::analysis::usage::Usage;
use crate::doctor::{Case, diagnose};
use crate::finding::{Finding, FindingCode};
use crate::index::Index;
use crate::replay::{Replay, Replayed};
use crate::trace::Settings;

/// A trace, and what is known beside it.
#[derive(Default)]
pub(super) struct Trouble {
    lines: String,
    settings: Settings,
    capacity: Option<u64>,
}

/// A trace of these events (see [`crate::testing`]).
pub(super) fn trace(lines: &str) -> Trouble {
    Trouble { lines: lines.to_owned(), ..Trouble::default() }
}

impl Trouble {
    pub(super) fn with_capacity(self, bytes: u64) -> Self {
        Self { capacity: Some(bytes), ..self }
    }

    pub(super) fn with_settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// Returns everything that is found.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut snapshot = crate::testing::snapshot(&self.lines);
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &self.settings);
        let usage = Usage::build(Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay });
        let best_frames = BestFrames::build(&snapshot.symbols);
        let found = diagnose(&Case {
            trace: &trace,
            tags: &snapshot.tags,
            symbols: &snapshot.symbols,
            best_frames: &best_frames,
            settings: &self.settings,
            replay: &replay,
            usage: &usage,
            capacity: self.capacity,
        });
        let mut found = found.findings;
        found.retain(|finding| finding.code != FindingCode::OutOfMemory);
        for finding in &found {
            assert!(finding.position.is_some() && finding.evidence.is_some(), "no evidence: {}", finding.message);
            assert!(finding.device == Some(0) && !finding.remedies.is_empty(), "{}", finding.message);
            assert!(finding.message.ends_with('.') && !finding.message.contains('\n'), "{}", finding.message);
        }
        found
    }

    /// Returns the messages of one kind.
    pub(super) fn messages(&self, code: FindingCode) -> Vec<String> {
        self.findings().into_iter().filter(|finding| finding.code == code).map(|finding| finding.message).collect()
    }
}

#[test]
fn an_empty_trace_has_no_findings() {
    assert_eq!(trace("").findings(), []);
    assert_eq!(trace("oom 100 5000").with_capacity(1 << 40).messages(FindingCode::Fragmentation), [""; 0]);
}

#[test]
fn each_rule_says_what_it_looks_for() {
    let subjects = looked_for();
    assert_eq!(subjects.split(", ").count(), RULES.len());
    assert!(subjects.starts_with("leaks, growth, fragmentation, "), "{subjects}");
}
