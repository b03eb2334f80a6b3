//! The doctor: why memory ran out, what else is wrong with a trace, and what to try.
//!
//! There is one pipeline for the page, `report`, `doctor`, `run`, live sessions and tests: a [`Case`] goes in, and a
//! [`Diagnosis`] comes out.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod blocking;
pub mod cause;
mod course;
mod failure;
mod headline;
mod held;
mod obstruction;
mod pool;
pub mod remedies;
mod request;
mod rise;
mod rules;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod verdict;

use failure::Failures;
use rules::looked_for;

use analysis::best_frames::BestFrames;
use analysis::inner_lines::inner_lines;
use analysis::leak::LeakSource;
use analysis::oom;
use analysis::peak::held_at;
use analysis::roles::Roles;
use analysis::steps::Steps;
use analysis::usage::Usage;
use query::diagnosis::{Diagnosis, FailedRequest, HeldCategory, InnerLines, Verdict};
use query::finding::{Evidence, Finding, FindingCode, Integrity};
use replay::{Replay, Replayed};
use trace::frames::Symbols;
use trace::order::SortFew;
use trace::units::Count;
use trace::{DeviceTrace, Settings, Tags};

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
    /// The steps and the categories.
    pub roles: &'a Roles,
    /// Bytes of the device that the process may use, if known.
    pub capacity: Option<u64>,
    /// What the file lacks.
    pub integrity: Integrity,
}

impl<'a> Case<'a> {
    /// Returns the trace with its replay.
    fn replayed(&self) -> Replayed<'a> {
        Replayed { trace: self.trace, tags: self.tags, replay: self.replay }
    }

    /// Returns the input of a search for leaks.
    const fn leak_source(&self) -> LeakSource<'a> {
        let Self { trace, replay, symbols, best_frames, .. } = *self;
        LeakSource { trace, replay, symbols, best_frames }
    }

    /// Returns the steps of the trace, if it has any.
    fn steps(&self) -> Option<&'a Steps> {
        self.roles.steps(self.replayed(), self.symbols)
    }
}

/// Returns the diagnosis of a case.
pub fn diagnose(case: &Case<'_>) -> Diagnosis {
    let failures = Failures::of(case);
    let positions = oom::positions(case.trace);
    let decisive = oom::decisive(case.trace, &positions);
    let mut ooms = failures.all(&positions, decisive);
    ooms.iter_mut().for_each(|failed| failed.categories = categories(case, failed.position()));
    let verdict = match ooms.iter_mut().find(|failed| Some(failed.position()) == decisive) {
        Some(failed) => verdict::of_failure(case, &failures, failed),
        None => verdict::without_failure(case),
    };
    let mut verdict = verdict;
    let failed = positions.len() as u32;
    let (mut findings, step_growth) = rules::check(case, verdict.cause);
    verdict::add_growth(&mut verdict, step_growth.as_ref());
    let subject = ooms.iter().find(|failed| Some(failed.position()) == verdict.position);
    if let Some(subject) = subject {
        remedies::add_rounding(&mut verdict, subject, &findings);
        findings.push(out_of_memory(case.trace, &verdict, subject, failed));
    }
    findings.sort_few_by_key(|finding| (finding.severity, std::cmp::Reverse(finding.bytes)));
    let inner_lines = inner_lines_at(case, verdict.position.unwrap_or(case.usage.peak_position));
    Diagnosis { device: case.trace.device, verdict, failed, ooms, inner_lines, findings, looked_for: looked_for(case) }
}

/// Returns the diagnosis of one failure: the verdict is about the request right before `position`, and no other failure
/// is listed. `None` if none failed there.
pub fn diagnose_failure(case: &Case<'_>, position: u32) -> Option<Diagnosis> {
    let failures = Failures::of(case);
    let mut failed = failures.at(position)?;
    failed.categories = categories(case, position);
    let verdict = verdict::of_failure(case, &failures, &mut failed);
    let findings = vec![out_of_memory(case.trace, &verdict, &failed, 1)];
    Some(Diagnosis {
        device: case.trace.device,
        verdict,
        failed: 1,
        ooms: vec![failed],
        inner_lines: inner_lines_at(case, position),
        findings,
        ..Diagnosis::default()
    })
}

/// Returns the facts of the failure right before a position in one or two sentences, without its cause, which takes
/// longer to find. `None` if no request failed there.
pub fn failure_facts(case: &Case<'_>, position: u32) -> Option<String> {
    Failures::of(case).at(position).map(|failed| failed.message)
}

/// Returns what the line called that held most at a position, if that says more than the line.
fn inner_lines_at(case: &Case<'_>, position: u32) -> Option<InnerLines> {
    inner_lines(case.symbols, case.best_frames, &held_at(case.replay, position))
}

/// Returns what the active memory at a position is used for.
fn categories(case: &Case<'_>, position: u32) -> Vec<HeldCategory> {
    let replay = case.replay;
    let categories = case.roles.categories(case.replayed(), case.symbols);
    categories.held(replay, replay.active_at(position).into_iter())
}

/// Returns the finding about the failure of a verdict. It states the facts; the verdict states the cause.
fn out_of_memory(trace: &DeviceTrace, verdict: &Verdict, subject: &FailedRequest, failed: u32) -> Finding {
    let mut finding = failure_finding(trace, subject.position(), &subject.message, failed);
    finding.evidence = verdict.stack.map(Evidence::Site);
    finding.remedies.clone_from(&verdict.remedies);
    finding
}

/// Returns the finding that one of `failed` requests failed right before a position, given its facts.
pub fn failure_finding(trace: &DeviceTrace, position: u32, facts: &str, failed: u32) -> Finding {
    let others = match failed.saturating_sub(1) {
        0 => String::new(),
        1 => " One more request failed.".to_owned(),
        n => format!(" {} more requests failed.", Count(n.into())),
    };
    let (device, event) = (trace.device, Count(position.into()));
    let message = format!("Device {device}: out of memory at event {event}. {facts}{others}");
    let mut finding = Finding::new(FindingCode::OutOfMemory, message).on_device(device).at(position);
    finding.bytes = trace.events.size.get(position.saturating_sub(1) as usize);
    finding
}

#[cfg(test)]
mod tests;
