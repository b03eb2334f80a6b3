//! A line whose use rises, in the words and figures that both the verdict and the finding about it have.

use analysis::leak::{LeakCandidate, StepRise, Trend};
use analysis::site::label;
use query::line_in_sentence;
use trace::units::{Bytes, Count, counted};

use super::Case;

/// A line whose use rose step by step.
#[derive(Clone, Debug)]
pub(super) struct Rise {
    pub(super) line: String,
    pub(super) candidate: LeakCandidate,
    /// What it kept step by step, if the trace has steps.
    by_step: Option<StepRise>,
}

impl Rise {
    /// Returns the line that rises most up to a position, if any does.
    pub(super) fn until(case: &Case<'_>, position: u32) -> Option<Self> {
        let candidate = LeakCandidate::largest(case.leak_source(), position, case.usage.peak_bytes)?;
        Some(Self::of(case, candidate))
    }

    /// Creates it from a line that was found.
    pub(super) fn of(case: &Case<'_>, candidate: LeakCandidate) -> Self {
        let by_step = case.steps().and_then(|steps| candidate.by_step(case.leak_source(), steps));
        Self { line: label(case.symbols, case.best_frames, candidate.stack), candidate, by_step }
    }

    /// Returns how much it rose, without the line.
    pub(super) fn in_short(&self) -> String {
        match &self.by_step {
            Some(rise) => format!("{} kept over {}", Bytes(rise.bytes), counted(rise.steps.into(), "step")),
            None => {
                let LeakCandidate { first_bytes, last_bytes, .. } = self.candidate;
                format!("grew from {} to {}", Bytes(first_bytes), Bytes(last_bytes))
            }
        }
    }

    /// Returns what the line did, without a full stop.
    pub(super) fn text(&self) -> String {
        let LeakCandidate { first_bytes, last_bytes, first_seen, until, trend, .. } = self.candidate;
        let (line, first, last) = (line_in_sentence(&self.line), Bytes(first_bytes), Bytes(last_bytes));
        if let Some(rise) = &self.by_step {
            // What it held before the first step, and made in the one that is not over, is no part of the rise.
            let kept = Bytes(rise.bytes).to_string();
            return match kept == last.to_string() {
                true => format!("{line} kept {rise} ({last} in all)"),
                false => format!("{line} kept {rise} ({kept} of the {last} that it holds)"),
            };
        }
        if trend == Trend::Replaced {
            let (from, to) = (Count(first_seen.into()), Count(until.into()));
            return format!(
                "{line} replaces one tensor by a larger one again and again: {first} after event {from}, {last} after event {to}"
            );
        }
        format!("{line} held {first} a quarter of the way through and {last} at the end, more at every step")
    }
}
