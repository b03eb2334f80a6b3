//! One step over another, line by line.

use super::context::Context;
use super::device::Caches;
use crate::analysis::step_memory::StepSums;
use crate::analysis::steps::Step;
use crate::frames::StackId;
use crate::limits::LINE_ROWS;
use crate::query::{
    Answer, CompareStepsQuery, ComparedLine, ComparedStep, StepComparison, StepMemory, step_growth,
};

/// Answers [`Query::CompareSteps`](crate::query::Query::CompareSteps).
pub(super) fn answer(context: Context<'_>, caches: &mut Caches, query: CompareStepsQuery) -> Answer {
    let Some(found) = caches.told.known_steps(context) else {
        return Answer::Refused("Nothing in this trace repeats, so it has no steps.".to_owned());
    };
    let step = |index: u32| found.steps.get(index as usize).copied();
    let (Some(earlier), Some(later)) = (step(query.earlier), step(query.later)) else {
        return Answer::Refused("This trace has no such step.".to_owned());
    };
    let sites = context.sites;
    let mut sums = |step: &Step| {
        let before = caches.states.at(context.replay, step.from);
        StepSums::build(context.replayed(), before.active.iter().copied(), step, |stack| sites.first(stack))
    };
    let (before, after) = (sums(&earlier), sums(&later));
    let mut stacks: Vec<StackId> = before.lines.keys().chain(after.lines.keys()).copied().collect();
    stacks.sort_unstable();
    stacks.dedup();
    let of = |sums: &StepSums<StackId>, stack: &StackId| sums.lines.get(stack).copied().unwrap_or_default();
    let mut lines: Vec<(StackId, StepMemory, StepMemory)> =
        stacks.iter().map(|stack| (*stack, of(&before, stack), of(&after, stack))).collect();
    lines.retain(|(_, earlier, later)| earlier.peak > 0 || later.peak > 0);
    let growth = |(_, earlier, later): &(StackId, StepMemory, StepMemory)| step_growth(earlier, later, query.by_peak);
    lines.sort_by(|a, b| {
        let by_size = growth(b).cmp(&growth(a)).then(b.2.bytes(query.by_peak).cmp(&a.2.bytes(query.by_peak)));
        by_size.then_with(|| sites.label(a.0).cmp(sites.label(b.0))).then(a.0.cmp(&b.0))
    });
    let others = lines.split_off(lines.len().min(query.rows as usize).min(LINE_ROWS));
    let mut rest = (StepMemory::default(), StepMemory::default());
    for (_, earlier, later) in &others {
        rest.0.plus(*earlier);
        rest.1.plus(*later);
    }
    let line = |(stack, earlier, later): &(StackId, StepMemory, StepMemory)| ComparedLine {
        stack: stack.0,
        label: sites.label(*stack).to_owned(),
        paint: sites.paint(*stack),
        earlier: *earlier,
        later: *later,
    };
    let facts = |step: Step, sums: &StepSums<StackId>| ComparedStep {
        number: step.number,
        from: step.from,
        to: step.to,
        is_whole: step.is_whole,
        memory: sums.all,
        peak_position: sums.peak_position,
    };
    Answer::StepComparison(Box::new(StepComparison {
        query,
        source: found.source.to_string(),
        count: u32::try_from(found.steps.len()).unwrap_or(u32::MAX),
        earlier: facts(earlier, &before),
        later: facts(later, &after),
        lines: lines.iter().map(line).collect(),
        others: others.len() as u32,
        rest,
    }))
}
