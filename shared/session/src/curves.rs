//! The curves of measures. Their index is built when first asked for, and kept.

use super::context::Context;
use super::device::Caches;
use analysis::lod::RunningMeasures;
use query::{Answer, CurvesQuery};
use replay::index::Index;

impl Caches {
    /// Returns the measures by bucket, built or extended.
    pub(super) fn measures(&mut self, context: Context<'_>) -> &RunningMeasures {
        self.measures.extend(context.replayed());
        &self.measures
    }
}

/// Answers [`Query::Curves`](query::Query::Curves).
pub(super) fn answer(context: Context<'_>, caches: &mut Caches, query: &CurvesQuery) -> Answer {
    Answer::Curves(caches.measures(context).curves(context.trace, context.replay, query))
}
