//! The curves of measures. Their index is built when first asked for, and kept.

use super::{Answering, windows};
use crate::caches::{Cache, Caches};
use crate::context::Context;
use analysis::lod::RunningMeasures;
use query::{Curves, CurvesQuery, DeviceSummary, Measure};
use replay::index::Index;

impl Cache for RunningMeasures {
    fn bytes(&self) -> usize {
        Index::bytes(self)
    }

    fn forget_categories(&mut self) {}
}

impl Answering for CurvesQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Curves, String> {
        let measures = caches.of::<RunningMeasures>();
        measures.extend(context.replayed());
        Ok(measures.curves(context.trace, context.replay, self))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let of = |(axis, window)| Self { axis, window, columns: 41, measures: Measure::ALL.to_vec() };
        windows(device).map(of).into()
    }
}
