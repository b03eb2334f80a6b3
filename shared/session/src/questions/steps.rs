//! The steps of the job.

use super::{Answering, windows};
use crate::caches::Caches;
use crate::categories::CategoryCache;
use crate::context::Context;
use analysis::lod::columns::coordinate;
use analysis::steps::StepSource;
use query::{DeviceSummary, StepList, StepSpan, StepsQuery, Window};
use trace::limits::STEPS;

impl Answering for StepsQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<StepList, String> {
        let Some(found) = caches.of::<CategoryCache>().known_steps(context) else {
            return Ok(StepList::default());
        };
        let x = |position| coordinate(context.trace, context.replay, self.axis, position);
        let spans = found.steps.iter().take(STEPS).map(|step| StepSpan {
            number: step.number,
            from: step.from,
            to: step.to,
            span: Window { start: x(step.from), end: x(step.to) },
            is_whole: step.is_whole,
        });
        Ok(StepList {
            source: found.source.to_string(),
            is_annotated: found.source == StepSource::Annotations,
            steps: spans.collect(),
            count: u32::try_from(found.steps.len()).unwrap_or(u32::MAX),
        })
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        windows(device).map(|(axis, _)| Self { axis }).into()
    }
}
