//! The rules, each in its own file: each looks for one kind of trouble.

mod driver_calls;
mod fragmentation;
mod growth;
mod ineffective_setting;
mod leak;
mod lines;
mod moment;
mod other_process;
mod pinned;
mod rounding;
mod spike;
mod step_peaks;
mod stuck_cache;
mod survey;
mod thresholds;
mod waiting;

pub(super) use step_peaks::StepGrowth;

use std::cell::OnceCell;

use moment::{MissMoment, Outcome};
use survey::Survey;

use super::Case;
use super::remedies::EXPANDABLE;
use analysis::leak::{LeakCandidate, StepRise};
use analysis::oom;
use analysis::site::label;
use query::diagnosis::Cause;
use query::finding::{Evidence, Finding, FindingCode, Remedy};
use query::line_in_sentence;
use query::setting::merged;
use trace::event::Action;
use trace::frames::{FrameId, StackId};
use trace::units::Count;

/// A rule, which looks for one kind of trouble.
struct Rule {
    /// What it looks for, as in "Looked for: …".
    subject: &'static str,
    /// Whether it can't be seen in the final state alone.
    needs_history: bool,
    /// Returns what it finds. It returns no finding without evidence.
    check: fn(&RuleContext<'_>) -> Vec<Finding>,
}

/// All rules.
const RULES: [Rule; 11] = [
    Rule { subject: "leaks", needs_history: true, check: leak::check },
    Rule { subject: "growth", needs_history: true, check: growth::check },
    Rule { subject: "fragmentation", needs_history: true, check: fragmentation::check },
    Rule { subject: "segments pinned by small blocks", needs_history: false, check: pinned::check },
    Rule { subject: "rounding", needs_history: false, check: rounding::check },
    Rule { subject: "blocks waiting for streams", needs_history: true, check: waiting::check },
    Rule { subject: "retries and driver calls", needs_history: true, check: driver_calls::check },
    Rule { subject: "cache stuck in a stream or pool", needs_history: true, check: stuck_cache::check },
    Rule { subject: "spikes", needs_history: true, check: spike::check },
    Rule { subject: "memory held by others", needs_history: true, check: other_process::check },
    Rule { subject: "settings without effect", needs_history: true, check: ineffective_setting::check },
];

/// Returns what the rules find, in the order of the rules, and whether the steps need more and more. `cause` is that of the
/// verdict.
pub(super) fn check(case: &Case<'_>, cause: Cause) -> (Vec<Finding>, Option<StepGrowth>) {
    let context = RuleContext::of(case, cause);
    let found = RULES.iter().flat_map(|rule| (rule.check)(&context)).chain(contradictions(&context));
    let found = found.map(|finding| finding.on_device(case.trace.device)).collect();
    (found, context.step_growth().cloned())
}

/// Returns a finding if gaps could not be followed to the end.
fn contradictions(context: &RuleContext<'_>) -> Option<Finding> {
    let (from, end) = (context.survey.lost_at?, context.case.replay.positions());
    let message = format!(
        "Blocks and segments contradict each other too often to be followed: from event {} on, gaps and what follows from \
         them (fragmentation, curves, the heatmap) stay as they are.",
        Count(from.into())
    );
    let advice = Remedy::advice("Record again: no allocator makes such a trace.");
    let finding = Finding::new(FindingCode::Inconsistent, message).at(from);
    Some(finding.with_evidence(Evidence::Window(from, end)).with_remedy(advice))
}

/// Returns what the rules look for in a trace: `leaks, fragmentation, …`. Without a history, most of it can't be seen.
pub(super) fn looked_for(case: &Case<'_>) -> String {
    let rules = RULES.iter().filter(|rule| has_history(case) || !rule.needs_history);
    rules.map(|rule| rule.subject).collect::<Vec<_>>().join(", ")
}

/// Returns whether a trace has more than the newest event, which recording leaves that keeps no others.
pub(super) fn has_history(case: &Case<'_>) -> bool {
    case.trace.events.len() > 1
}

/// The context shared by all rules: a case, and what several of them need to know about it.
struct RuleContext<'a> {
    case: &'a Case<'a>,
    /// The cause of the verdict.
    cause: Cause,
    survey: Survey,
    /// The requests that cached memory did not serve, as far as they matter most.
    moments: Vec<MissMoment>,
    /// The requests that failed (see [`oom::positions`]), and the position of the failure that matters most.
    failures: Vec<(u32, u64)>,
    failed: Option<u32>,
    /// The lines that keep what they allocate.
    rising: Vec<LeakCandidate>,
    step_growth: OnceCell<Option<StepGrowth>>,
}

impl<'a> RuleContext<'a> {
    fn of(case: &'a Case<'a>, cause: Cause) -> Self {
        let Case { trace, replay, usage, .. } = *case;
        let survey = Survey::of(case);
        let peak = survey.peak.and_then(|miss| MissMoment::of(case, miss, Outcome::Peak));
        let worst = survey.worst.filter(|miss| survey.peak != Some(*miss));
        let worst = worst.and_then(|miss| MissMoment::of(case, miss, Outcome::Served));
        let failures = oom::positions(trace);
        let failed = oom::decisive(trace, &failures);
        // Where something else made a request fail, gaps at that moment do not matter.
        let fragmented = failed.filter(|_| cause == Cause::Fragmented);
        let failure = fragmented.and_then(|position| MissMoment::failed(case, position));
        let end = Some(()).filter(|()| !has_history(case)).map(|()| MissMoment::end(case));
        let moments = [failure, peak, worst, end].into_iter().flatten().collect();
        let end = failed.unwrap_or_else(|| replay.positions());
        Self {
            case,
            cause,
            survey,
            moments,
            failures,
            failed,
            rising: LeakCandidate::all(case.leak_source(), end, usage.peak_bytes),
            step_growth: OnceCell::new(),
        }
    }

    /// Returns how the peaks of the steps rise, if they do.
    fn step_growth(&self) -> Option<&StepGrowth> {
        self.step_growth.get_or_init(|| step_peaks::step_growth(self)).as_ref()
    }

    /// Returns the line that represents a stack.
    fn label(&self, stack: StackId) -> String {
        label(self.case.symbols, self.case.best_frames, stack)
    }

    /// Returns the line that represents a stack, as a sentence has it.
    fn line(&self, stack: StackId) -> String {
        line_in_sentence(&self.label(stack)).into_owned()
    }

    /// Returns the line that represents a stack, as a sentence has it; `None` if it was not recorded.
    fn known(&self, stack: StackId) -> Option<String> {
        self.frame(stack).map(|_| self.line(stack))
    }

    /// Returns what a line kept step by step, if the trace has steps.
    fn rise_by_step(&self, candidate: &LeakCandidate) -> Option<StepRise> {
        candidate.by_step(self.case.leak_source(), self.case.steps()?)
    }

    /// Returns the frame that represents a stack.
    fn frame(&self, stack: StackId) -> Option<FrameId> {
        self.case.best_frames.frame(self.case.symbols.stack(stack))
    }

    /// Returns how many segments there were, ordinary and expandable ones: those at the start, and those taken from the
    /// driver later (mapped ranges of expandable ones).
    fn segments(&self) -> (u64, u64) {
        let start = self.case.replay.state_at(0);
        let expandable = start.ranges.iter().filter(|range| range.is_expandable).count() as u64;
        let mut counts = (start.ranges.len() as u64 - expandable, expandable);
        for action in self.case.trace.events.action.iter() {
            counts.0 += u64::from(action == Action::SegmentAlloc as u8);
            counts.1 += u64::from(action == Action::SegmentMap as u8);
        }
        counts
    }

    fn has_expandable_segments(&self) -> bool {
        self.case.settings.expandable_segments
    }

    /// Returns the advice to let segments grow, together with the settings of the run. `effect` is what that brings.
    fn grow(&self, effect: &str) -> Remedy {
        let remedy = Remedy::advice("").with_setting(&merged(&self.case.settings.conf, EXPANDABLE));
        Remedy { text: format!("Set {}: {effect}.", remedy.copy), ..remedy }
    }
}

#[cfg(test)]
mod testing;
