//! The diagnosis of a device, made when it is asked for.

use super::context::Context;
use super::device::Caches;
use crate::diagnosis::Diagnosis;
use crate::doctor::{self, Case};
use crate::query::Answer;

/// The diagnosis that was made last, with the number of events that it covers.
#[derive(Debug, Default)]
pub(super) struct LastDiagnosis(Option<(u32, Box<Diagnosis>)>);

/// Answers [`Query::Diagnosis`](crate::query::Query::Diagnosis).
pub(super) fn answer(context: Context<'_>, caches: &mut Caches) -> Answer {
    let positions = context.replay.positions();
    let known = caches.diagnosis.0.take().filter(|(covered, _)| *covered == positions);
    let (_, diagnosis) = known.unwrap_or_else(|| (positions, Box::new(doctor::diagnose(&case(context)))));
    caches.diagnosis.0 = Some((positions, diagnosis.clone()));
    Answer::Diagnosis(diagnosis)
}

/// Returns what the doctor looks at.
pub(super) fn case(context: Context<'_>) -> Case<'_> {
    Case {
        trace: context.trace,
        tags: &context.snapshot.tags,
        symbols: &context.snapshot.symbols,
        best_frames: context.sites.best_frames(),
        settings: &context.snapshot.settings,
        replay: context.replay,
        usage: context.usage,
        capacity: Some(context.summary.capacity).filter(|bytes| *bytes > 0),
    }
}
