//! The timeline and the overview. Their indexes are built when first asked for, and kept.

use super::context::Context;
use super::device::Caches;
use super::terms::is_permanent_text;
use analysis::lod::{Classes, Coloring, ColoringInput, RunningTotals, Scene, overview, timeline};
use query::{Answer, Axis, ClassesQuery, ColorBy, Memory, Moments, Paint, TimelineQuery};
use replay::AllocatorState;
use replay::index::{Index, Kept};
use trace::totals::Amount;

/// Colourings kept for one device: some 10 MB each for five million events. One is on the screen, one is compared with
/// a search, one is the one that the user switches back to.
const KEPT: usize = 3;

/// What a colouring depends on.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    color_by: ColorBy,
    filter: Vec<String>,
    highlight: Option<String>,
}

/// The indexes that timelines of one device are drawn from.
#[derive(Debug, Default)]
pub(super) struct Drawings {
    totals: RunningTotals,
    kept: Kept<Key, Coloring, KEPT>,
}

impl Drawings {
    /// Returns the approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.totals.bytes() + self.kept.values().map(Index::bytes).sum::<usize>()
    }
}

impl Caches {
    fn totals(&mut self, context: Context<'_>) -> &RunningTotals {
        self.drawings.totals.extend(context.replayed());
        &self.drawings.totals
    }

    /// Builds or extends the colouring that a question needs, which becomes the last of those kept.
    fn prepare(
        &mut self,
        context: Context<'_>,
        color_by: ColorBy,
        filter: &[String],
        highlight: Option<&String>,
    ) -> Result<(), String> {
        let highlight = highlight.filter(|term| !term.trim().is_empty()).cloned();
        let key = Key { color_by, filter: filter.to_vec(), highlight };
        let mut coloring = self.drawings.kept.remove(&key).unwrap_or_default();
        if !coloring.is_current(context.replay.positions()) {
            let filter = self.terms.all(context, &key.filter)?;
            let highlight = key.highlight.as_deref().map(|term| self.terms.matches(context, term)).transpose()?;
            coloring.extend(ColoringInput {
                painter: &context.painter(key.color_by),
                usage: context.usage,
                filter: filter.as_deref(),
                highlight: highlight.as_deref(),
                is_permanent: key.filter.iter().chain(&key.highlight).all(|term| is_permanent_text(term)),
            });
        }
        self.drawings.kept.insert(key, coloring);
        Ok(())
    }
}

/// Answers [`Query::Timeline`](query::Query::Timeline).
pub(super) fn stacked(context: Context<'_>, caches: &mut Caches, query: &TimelineQuery) -> Answer {
    if let Err(sentence) = caches.prepare(context, query.color_by, &query.filter, query.highlight.as_ref()) {
        return Answer::Refused(sentence);
    }
    let has_match = match caches.terms.highlight(context, query.highlight.as_deref()) {
        Ok(found) => found.is_none_or(|found| found.count > 0),
        Err(sentence) => return Answer::Refused(sentence),
    };
    caches.totals(context);
    let Drawings { totals, kept } = &caches.drawings;
    let Some((key, coloring)) = kept.last() else {
        return Answer::Refused("This trace has no timeline.".to_owned());
    };
    let scene = Scene {
        trace: context.trace,
        replay: context.replay,
        totals,
        classes: &coloring.classes,
        pyramid: &coloring.pyramid,
        painter: &context.painter(query.color_by),
        is_highlighted: key.highlight.is_some(),
    };
    let mut answer = timeline(scene, query);
    if !has_match {
        // A search without a match leaves everything as it is.
        let paint = answer.quads.paint.iter().map(|paint| paint & !Paint::DIM).collect::<Vec<_>>();
        answer.quads.paint = paint.into();
        answer.classes.iter_mut().for_each(|class| class.paint.0 &= !Paint::DIM);
    }
    Answer::Timeline(answer)
}

/// Answers [`Query::Classes`](query::Query::Classes).
pub(super) fn classes(context: Context<'_>, caches: &mut Caches, query: &ClassesQuery) -> Answer {
    if let Err(sentence) = caches.prepare(context, query.color_by, &query.filter, query.highlight.as_ref()) {
        return Answer::Refused(sentence);
    }
    let Moments { at, since } = query.moments;
    let now = caches.states.at(context.replay, at);
    let before = since.map(|since| caches.states.at(context.replay, since));
    let Some((_, coloring)) = caches.drawings.kept.last() else {
        return Answer::Refused("This trace has no timeline.".to_owned());
    };
    let Classes { class_of, classes, .. } = &coloring.classes;
    let mut memory = vec![Memory::default(); classes.len()];
    let mut each = |state: &AllocatorState, of_moment: fn(&mut Memory) -> &mut Amount| {
        for &id in &state.active {
            // What the filter excludes has no class.
            let class = class_of.get(id as usize).and_then(|class| memory.get_mut(usize::from(*class)));
            if let Some(class) = class {
                of_moment(class).add(context.replay.allocations.requested.get(id as usize).unwrap_or(0));
            }
        }
    };
    each(&now, |memory| &mut memory.now);
    if let Some(before) = before {
        each(&before, |memory| &mut memory.before);
    }
    Answer::Classes(query::Classes { query: query.clone(), classes: classes.clone(), memory })
}

/// Answers [`Query::Overview`](query::Query::Overview).
pub(super) fn whole(context: Context<'_>, caches: &mut Caches, axis: Axis, columns: u32) -> Answer {
    let totals = caches.totals(context);
    let name = |id| context.symbols().text(id).into_owned();
    Answer::Overview(overview(context.trace, context.replay, totals, axis, columns, &context.summary.ooms, name))
}

/// Answers [`Query::PositionAt`](query::Query::PositionAt).
pub(super) fn position(context: Context<'_>, axis: Axis, x: f64) -> Answer {
    let end = context.replay.positions();
    let position = match axis {
        // Casts of floats saturate.
        Axis::Event => (x.max(0.0) as u32).min(end),
        Axis::Time => context.replay.position_at_time(context.trace, x),
    };
    Answer::Position(Some(position))
}
