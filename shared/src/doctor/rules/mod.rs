//! The rules: each looks for one kind of trouble, in a file of its own.

mod fragmentation;
mod leak;
mod moment;
mod pinned;
mod survey;
mod thresholds;
mod waiting;

use moment::{Moment, Outcome};
use survey::Survey;

use super::Case;
use crate::analysis::leak::{LeakCandidate, LeakSource};
use crate::analysis::oom;
use crate::analysis::site::label;
use crate::finding::Finding;
use crate::frames::StackId;

/// What looks for one kind of trouble.
struct Rule {
    /// What it looks for, as it stands in "Looked for: …".
    subject: &'static str,
    /// Returns what it finds. It returns no finding without evidence.
    check: fn(&Ground<'_>) -> Vec<Finding>,
}

/// All rules.
const RULES: [Rule; 4] = [
    Rule { subject: "leaks", check: leak::check },
    Rule { subject: "fragmentation", check: fragmentation::check },
    Rule { subject: "segments pinned by small blocks", check: pinned::check },
    Rule { subject: "blocks waiting for streams", check: waiting::check },
];

/// Returns what the rules find, in the order of the rules.
pub(super) fn check(case: &Case<'_>) -> Vec<Finding> {
    let ground = Ground::of(case);
    RULES.iter().flat_map(|rule| (rule.check)(&ground)).map(|finding| finding.on_device(case.trace.device)).collect()
}

/// Returns what the rules look for: `leaks, fragmentation, …`.
pub fn looked_for() -> String {
    RULES.map(|rule| rule.subject).join(", ")
}

/// What the rules stand on: a case, and what several of them need to know about it.
struct Ground<'a> {
    case: &'a Case<'a>,
    survey: Survey,
    /// The requests that cached memory did not serve, as far as they matter most.
    moments: Vec<Moment>,
    /// The lines that keep what they allocate.
    rising: Vec<LeakCandidate>,
}

impl<'a> Ground<'a> {
    fn of(case: &'a Case<'a>) -> Self {
        let Case { trace, replay, symbols, best_frames, usage, .. } = *case;
        let survey = Survey::of(case);
        let peak = survey.peak.and_then(|miss| Moment::of(case, miss, Outcome::Peak));
        let worst = survey.worst.filter(|miss| survey.peak != Some(*miss));
        let worst = worst.and_then(|miss| Moment::of(case, miss, Outcome::Served));
        let moments = [Moment::failed(case), peak, worst].into_iter().flatten().collect();
        let end = oom::decisive(trace, &oom::positions(trace)).unwrap_or_else(|| replay.positions());
        let source = LeakSource { trace, replay, symbols, best_frames };
        Self { case, survey, moments, rising: LeakCandidate::all(source, end, usage.peak_bytes) }
    }

    /// Returns the line that represents a stack.
    fn label(&self, stack: StackId) -> String {
        label(self.case.symbols, self.case.best_frames, stack)
    }

    fn has_expandable_segments(&self) -> bool {
        self.case.settings.expandable_segments
    }

    /// Returns the settings of the trace with one more, as an environment variable to copy.
    fn setting(&self, setting: &str) -> String {
        let name = setting.split_once(':').map_or(setting, |(name, _)| name);
        let conf = &self.case.settings.conf;
        let is_listed = conf.contains('[');
        let others = conf.split(',').filter(|own| !own.is_empty() && !own.trim_start().starts_with(name));
        // A list has commas of its own: settings with one are kept as they are.
        let kept: Vec<&str> = if is_listed { vec![conf.as_str()] } else { others.collect() };
        format!("PYTORCH_CUDA_ALLOC_CONF={}", kept.into_iter().chain([setting]).collect::<Vec<_>>().join(","))
    }
}
