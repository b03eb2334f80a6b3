//! What the rules find in traces that are written as text.

use proptest::prelude::*;

use super::RULES;
use crate::{Case, diagnose};
use analysis::best_frames::BestFrames;
use analysis::roles::Roles;
use analysis::usage::Usage;
use query::finding::{Finding, FindingCode, Integrity};
use replay::index::Index;
use replay::{Replay, Replayed};
use trace::event::Action;
use trace::units::{Address, Stream};
use trace::{DeviceTrace, Event, Settings, Snapshot, Tag};

/// A trace with settings and capacity, to check the rules on.
#[derive(Default)]
pub(super) struct RuleCase {
    lines: String,
    settings: Settings,
    capacity: Option<u64>,
}

/// A trace of these events, written as [`trace::testing`] says.
pub(super) fn trace(lines: &str) -> RuleCase {
    RuleCase { lines: lines.to_owned(), ..RuleCase::default() }
}

impl RuleCase {
    pub(super) fn with_capacity(self, bytes: u64) -> Self {
        Self { capacity: Some(bytes), ..self }
    }

    pub(super) fn with_settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// Returns everything that is found.
    pub(super) fn findings(&self) -> Vec<Finding> {
        found(trace::testing::snapshot(&self.lines), &self.settings, self.capacity)
    }

    /// Returns the messages of one kind.
    pub(super) fn messages(&self, code: FindingCode) -> Vec<String> {
        self.findings().into_iter().filter(|finding| finding.code == code).map(|finding| finding.message).collect()
    }
}

/// Returns everything that the rules find in a snapshot's device, each with its evidence.
pub(super) fn found(mut snapshot: Snapshot, settings: &Settings, capacity: Option<u64>) -> Vec<Finding> {
    let trace = snapshot.devices.remove(0);
    let replay = Replay::build(&trace, &mut snapshot.tags, settings);
    let usage = Usage::build(Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay });
    let best_frames = BestFrames::build(&snapshot.symbols);
    let mut found = diagnose(&Case {
        roles: &Roles::default(),
        trace: &trace,
        tags: &snapshot.tags,
        symbols: &snapshot.symbols,
        best_frames: &best_frames,
        settings,
        replay: &replay,
        usage: &usage,
        capacity,
        integrity: Integrity::default(),
    })
    .findings;
    found.retain(|finding| finding.code != FindingCode::OutOfMemory);
    for finding in &found {
        assert!(finding.position.is_some_and(|position| position <= replay.positions()), "{}", finding.message);
        assert!(finding.evidence.is_some(), "no evidence: {}", finding.message);
        assert!(finding.device == Some(0) && !finding.remedies.is_empty(), "{}", finding.message);
        assert!(finding.message.ends_with('.') && !finding.message.contains('\n'), "{}", finding.message);
    }
    found
}

proptest! {
    #[test]
    fn no_rule_panics_on_events_that_contradict_each_other(
        events in proptest::collection::vec((0_u8..12, 0_u64..24, 0_u64..64, 0_i64..3, 0_u64..6), 0..400),
    ) {
        let mut snapshot = Snapshot { devices: vec![DeviceTrace::default()], ..Snapshot::default() };
        for (action, place, size, stream, line) in events {
            let stack = trace::testing::stack(&mut snapshot.symbols, &[&format!("f@/m/cache.py:{line}")]);
            let tag = snapshot.tags.intern(Tag { stream: Stream(stream), ..Tag::default() });
            // Places and sizes overlap, and some are as large as numbers get.
            let address = Address(if place == 23 { u64::MAX - 512 } else { 0x1000_0000 + (place << 21) });
            let size = if size == 63 { u64::MAX } else { size << 20 };
            let event = Event { action: Action::from_code(action), address, size, time_us: 0, tag, stack };
            snapshot.devices[0].events.push(event);
        }
        let settings = Settings { roundup_power2_divisions: [2; 16], max_split_size: Some(1 << 24), ..Settings::default() };
        found(snapshot, &settings, Some(1 << 33));
    }
}

/// Overlapping segments with blocks across their borders: each event contradicts those before it.
#[test]
fn a_trace_that_contradicts_itself_all_the_time_is_followed_as_far_as_that_is_worth_it() {
    let found = |count: u64| {
        let mut snapshot = Snapshot { devices: vec![DeviceTrace::default()], ..Snapshot::default() };
        let tag = snapshot.tags.intern(Tag::default());
        for (i, action) in (0..count).flat_map(|i| [(i, Action::SegmentAlloc), (i, Action::Alloc)]) {
            let half = if action == Action::Alloc { 1 << 20 } else { 0 };
            let address = Address(0x7000_0000_0000 - (i << 20) + half);
            let event = Event { action, address, size: 2 << 20, time_us: 0, tag, stack: trace::frames::StackId(0) };
            snapshot.devices[0].events.push(event);
        }
        let trace = &mut snapshot.devices[0];
        replay::end(trace, &mut snapshot.tags, &Settings::default(), &[], 0);
        let found = found(snapshot, &Settings::default(), None);
        found.into_iter().filter(|finding| finding.code == FindingCode::Inconsistent).count()
    };
    assert_eq!([found(20), found(3_000)], [0, 1]);
}

#[test]
fn an_empty_trace_has_no_findings() {
    assert_eq!(trace("").findings(), []);
    assert_eq!(trace("oom 100 5000").with_capacity(1 << 40).messages(FindingCode::Fragmentation), [""; 0]);
}

#[test]
fn each_rule_says_what_it_looks_for() {
    let subjects = |lines: &str| {
        let test_case = crate::testing::TestCase::new(lines);
        diagnose(&test_case.case()).looked_for
    };
    let all = subjects("alloc 0x1000000 1000\nfree 0x1000000");
    assert_eq!(all.split(", ").count(), RULES.len());
    assert!(all.starts_with("leaks, growth, fragmentation, "), "{all}");
    // A state without a history shows little.
    assert_eq!(subjects(""), "segments pinned by small blocks, rounding");
}
