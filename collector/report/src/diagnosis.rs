//! A diagnosis for programs: the JSON of `doctor` and of reports.

use serde::Serialize;

use super::CategoryReport;
use analysis::{backward, oom};
use doctor::Case;
use query::diagnosis::{Diagnosis, FailedRequest, HeldLine, InnerLines, Obstacle, PoolBasis};
use query::finding::{Evidence, Finding, FindingCode, Remedy, Severity};
use trace::frames::StackId;
use trace::order::SortFew;

/// A device's diagnosis. Sizes are in bytes; `event` is the number of an event, from 1, as texts and the page count
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiagnosisReport {
    /// The device's number.
    pub device: i64,
    /// The verdict.
    pub verdict: VerdictReport,
    /// The number of requests that failed.
    pub failed: u32,
    /// Those requests, in order; at most the first few hundred.
    pub ooms: Vec<OomReport>,
    /// What the line called that held most when the request failed that the verdict is about, or else at the peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner_lines: Option<InnerLinesReport>,
    /// Where what has no stack was called, most likely the backward pass, as far as the stacks around it tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded_call: Option<String>,
    /// What was found, worst first.
    pub findings: Vec<FindingReport>,
    /// What was looked for, as a list for a sentence.
    #[serde(skip)]
    pub looked_for: String,
}

/// A verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictReport {
    /// The name of the cause.
    pub cause: &'static str,
    /// What happened, in one line.
    pub headline: String,
    /// One or two sentences.
    pub sentence: String,
    /// The line that it is about.
    pub line: Option<String>,
    /// The event that it is about.
    pub event: Option<u32>,
    /// The number of the failure that it is about, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<u32>,
    /// What to try.
    pub remedies: Vec<Remedy>,
    /// Whether the headline is about a line that holds more at every step.
    #[serde(skip)]
    pub(crate) is_growing: bool,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OomReport {
    /// Its number among all failures of the device, from 1.
    pub number: u32,
    /// The event.
    pub event: u32,
    /// The rounded request.
    pub requested: u64,
    /// The segment or the pages that the request needed.
    pub asked_of_driver: u64,
    /// What the driver had free.
    pub driver_free: u64,
    /// Reserved and in no active block.
    pub cached: u64,
    /// The largest request that cached memory of its pool and stream could have served.
    pub largest_servable: u64,
    /// In live tensors.
    pub allocated: u64,
    /// The name of the cause.
    pub cause: &'static str,
    /// In active blocks.
    pub active: u64,
    /// Reserved from the driver.
    pub reserved: u64,
    /// What the process could use in all.
    pub capacity: u64,
    /// What others held of the device, if that is known and not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by_others: Option<u64>,
    /// The part of `cached` in segments of the request's pool and stream.
    pub cached_in_reach: u64,
    /// The largest gap, whatever its pool and stream.
    pub largest_gap: u64,
    /// Number of gaps.
    pub gaps: u32,
    /// What the request lacked if all free memory had been in one piece.
    pub missing: u64,
    /// The pool that the request was for, as PyTorch numbers pools.
    pub pool: (u64, u64),
    /// How that is known.
    pub pool_basis: PoolBasis,
    /// The line that made the request, if a stack was recorded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub line: String,
    /// The facts as text.
    pub message: String,
    /// The lines that held most.
    pub lines: Vec<LineHeld>,
    /// What the memory was used for, the largest first.
    pub categories: Vec<CategoryReport>,
    /// What stood in the way where the request was closest to fitting.
    pub obstacle: Option<ObstacleReport>,
}

/// The memory of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineHeld {
    /// The line.
    pub line: String,
    /// Requested bytes.
    pub bytes: u64,
    /// The number of allocations.
    pub count: u32,
}

impl From<&HeldLine> for LineHeld {
    fn from(HeldLine { line, bytes, count, .. }: &HeldLine) -> Self {
        Self { line: line.clone(), bytes: *bytes, count: *count }
    }
}

/// A line that held most of the memory, and what it called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InnerLinesReport {
    /// The line.
    pub line: String,
    /// What it called, the largest first.
    pub lines: Vec<LineHeld>,
}

impl From<&InnerLines> for InnerLinesReport {
    fn from(InnerLines { line, lines }: &InnerLines) -> Self {
        Self { line: line.clone(), lines: lines.iter().map(LineHeld::from).collect() }
    }
}

/// The obstacle to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObstacleReport {
    /// The first address of the place.
    pub address: u64,
    /// The number of blocks in it.
    pub blocks: u32,
    /// Their bytes.
    pub bytes: u64,
    /// The line of the largest.
    pub line: Option<String>,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingReport {
    /// The kind.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// One or two sentences.
    pub message: String,
    /// The bytes that it is about.
    pub bytes: Option<u64>,
    /// The event that it shows after.
    pub event: Option<u32>,
    /// What to try.
    pub remedies: Vec<Remedy>,
    /// Whether the verdict on a run that grows is about the same line: it is said once.
    #[serde(skip)]
    pub(super) is_of_verdict: bool,
}

impl DiagnosisReport {
    /// Reports the diagnosis of a case.
    pub(super) fn of(case: &Case<'_>, diagnosis: &Diagnosis) -> Self {
        let Case { trace, symbols, best_frames, .. } = *case;
        let failures = oom::positions(trace);
        let Diagnosis { device, verdict, failed, ooms, inner_lines, findings, looked_for } = diagnosis;
        let frame = |stack: u32| best_frames.frame(symbols.stack(StackId(stack)));
        let is_of_verdict = |finding: &Finding| match (finding.evidence, verdict.stack) {
            (Some(Evidence::Site(site)), Some(stack))
                if verdict.is_growing && FindingCode::CAUSES.contains(&finding.code) =>
            {
                frame(site) == frame(stack)
            }
            _ => false,
        };
        Self {
            device: *device,
            verdict: VerdictReport {
                cause: verdict.cause.name(),
                headline: verdict.headline.clone(),
                sentence: verdict.sentence.clone(),
                line: verdict.line.clone(),
                event: verdict.position.filter(|position| *position > 0),
                failure: verdict.position.map(|position| number_of(&failures, position)),
                remedies: verdict.remedies.clone(),
                is_growing: verdict.is_growing,
            },
            failed: *failed,
            ooms: ooms.iter().map(|failed| OomReport::of(failed, number_of(&failures, failed.position()))).collect(),
            inner_lines: inner_lines.as_ref().map(InnerLinesReport::from),
            unrecorded_call: backward::call(trace, symbols),
            findings: findings
                .iter()
                .map(|finding| FindingReport { is_of_verdict: is_of_verdict(finding), ..FindingReport::from(finding) })
                .collect(),
            looked_for: looked_for.clone(),
        }
    }
}

/// Returns the number, from 1, of the failure right before a position, among those of [`oom::positions`].
fn number_of(failures: &[(u32, u64)], position: u32) -> u32 {
    failures.partition_point(|(other, _)| *other < position) as u32 + 1
}

/// Makes a diagnosis one of the failure with a number, from 1, instead of the one that ended the run. It stays as it is if there
/// is no such failure.
pub(super) fn choose(case: &Case<'_>, diagnosis: &mut Diagnosis, number: u32) {
    let failures = oom::positions(case.trace);
    let position = number.checked_sub(1).and_then(|index| failures.get(index as usize)).map(|(position, _)| *position);
    let Some(chosen) = position.and_then(|position| doctor::diagnose_failure(case, position)) else { return };
    (diagnosis.verdict, diagnosis.inner_lines) = (chosen.verdict, chosen.inner_lines);
    for failed in chosen.ooms {
        match diagnosis.ooms.iter_mut().find(|other| other.event == failed.event) {
            Some(other) => *other = failed,
            None => diagnosis.ooms.push(failed),
        }
    }
    diagnosis.ooms.sort_few_by_key(|failed| failed.event);
    diagnosis.findings.retain(|finding| finding.code != FindingCode::OutOfMemory);
    diagnosis.findings.splice(0..0, chosen.findings);
}

impl OomReport {
    fn of(failed: &FailedRequest, number: u32) -> Self {
        let obstacle = |obstacle: &Obstacle| ObstacleReport {
            address: obstacle.address.0,
            blocks: obstacle.blocks,
            bytes: obstacle.bytes,
            line: obstacle.largest.first().map(|block| block.line.clone()),
        };
        Self {
            number,
            event: failed.event.saturating_add(1),
            requested: failed.requested,
            asked_of_driver: failed.asked_of_driver,
            driver_free: failed.driver_free,
            cached: failed.cached,
            largest_servable: failed.largest_servable,
            allocated: failed.allocated,
            cause: failed.cause.name(),
            active: failed.active,
            reserved: failed.reserved,
            capacity: failed.whole(),
            held_by_others: failed.held_by_others.filter(|bytes| *bytes > 0),
            cached_in_reach: failed.cached_in_reach,
            largest_gap: failed.largest_gap,
            gaps: failed.gaps,
            missing: failed.missing,
            pool: (failed.pool.0, failed.pool.1),
            pool_basis: failed.pool_basis,
            line: failed.line.clone(),
            message: failed.message.clone(),
            lines: failed.lines.iter().map(LineHeld::from).collect(),
            categories: failed.categories.iter().map(CategoryReport::from).collect(),
            obstacle: failed.obstacle.as_ref().map(obstacle),
        }
    }
}

impl From<&Finding> for FindingReport {
    fn from(finding: &Finding) -> Self {
        Self {
            code: finding.code.name(),
            severity: finding.severity,
            message: finding.message.clone(),
            bytes: finding.bytes,
            event: finding.position.filter(|position| *position > 0),
            remedies: finding.remedies.clone(),
            is_of_verdict: false,
        }
    }
}
