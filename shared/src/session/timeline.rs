//! The timeline and the overview: what they are drawn from is built when first asked for, and kept.

use super::context::Context;
use super::{Caches, terms};
use crate::analysis::matches::Matches;
use crate::lod::{Classes, Pyramid, RunningTotals, Scene, overview, timeline};
use crate::query::{Answer, Axis, ColorBy, TimelineQuery};

/// Colourings kept for one device: some 10 MB each for five million events. One is on the screen, one is what a search
/// is compared with, one is what the user switches back to.
const KEPT: usize = 3;

/// What a colouring depends on.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    color_by: ColorBy,
    filter: Vec<String>,
    highlight: Option<String>,
}

#[derive(Debug)]
struct Drawing {
    key: Key,
    classes: Classes,
    pyramid: Pyramid,
    /// The positions that it knows.
    until: u32,
}

/// What timelines of one device are drawn from, the colouring used last at the end.
#[derive(Debug, Default)]
pub(super) struct Drawings {
    totals: RunningTotals,
    kept: Vec<Drawing>,
}

impl Drawings {
    /// Bytes of memory that they take, about.
    pub(super) fn bytes(&self) -> usize {
        let drawing = |drawing: &Drawing| drawing.classes.of.capacity() + drawing.pyramid.bytes();
        self.totals.bytes() + self.kept.iter().map(drawing).sum::<usize>()
    }
}

impl Caches {
    fn totals(&mut self, context: Context<'_>) -> &RunningTotals {
        self.drawings.totals.extend(context.trace, context.replay);
        &self.drawings.totals
    }

    /// Makes the colouring that a question needs the last one that is kept.
    fn prepare(&mut self, context: Context<'_>, query: &TimelineQuery) -> Result<(), String> {
        let key = Key {
            color_by: query.color_by,
            filter: query.filter.clone(),
            highlight: query.highlight.clone().filter(|term| !term.trim().is_empty()),
        };
        let until = context.replay.positions();
        let known = self.drawings.kept.iter().position(|d| d.key == key);
        let mut known = known.map(|i| self.drawings.kept.remove(i));
        if known.as_ref().is_none_or(|drawing| drawing.until != until) {
            let filter = self.terms.all(context, &key.filter)?;
            let highlight = key.highlight.as_deref().map(|term| self.terms.matches(context, term)).transpose()?;
            let painter = context.painter(key.color_by);
            let (lit, shown): (Option<&Matches>, Option<&Matches>) = (highlight.as_deref(), filter.as_deref());
            let lasts = key.filter.iter().chain(&key.highlight).all(|term| terms::lasts(term));
            let mut extended = None;
            if let Some(mut drawing) = known.filter(|_| lasts)
                && drawing.classes.extend(&painter, context.usage, shown, lit)
            {
                drawing.pyramid.extend(context.trace, context.replay, &drawing.classes);
                extended = Some(Drawing { until, ..drawing });
            }
            let drawing = extended.unwrap_or_else(|| {
                let classes = Classes::build(&painter, context.usage, shown, lit);
                let pyramid = Pyramid::build(context.trace, context.replay, &classes);
                Drawing { key, classes, pyramid, until }
            });
            known = Some(drawing);
        }
        let kept = &mut self.drawings.kept;
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.extend(known);
        Ok(())
    }
}

/// To [`Query::Timeline`](crate::query::Query::Timeline).
pub(super) fn stacked(context: Context<'_>, caches: &mut Caches, query: &TimelineQuery) -> Answer {
    if let Err(sentence) = caches.prepare(context, query) {
        return Answer::Refused(sentence);
    }
    caches.totals(context);
    let Drawings { totals, kept } = &caches.drawings;
    let Some(drawing) = kept.last() else {
        return Answer::Refused("This trace has no timeline.".to_owned());
    };
    let scene = Scene {
        trace: context.trace,
        replay: context.replay,
        totals,
        classes: &drawing.classes,
        pyramid: &drawing.pyramid,
        painter: &context.painter(query.color_by),
        is_highlighted: drawing.key.highlight.is_some(),
    };
    Answer::Timeline(timeline(scene, query))
}

/// To [`Query::Overview`](crate::query::Query::Overview).
pub(super) fn whole(context: Context<'_>, caches: &mut Caches, axis: Axis, columns: u32) -> Answer {
    let totals = caches.totals(context);
    let name = |id| context.symbols().text(id).into_owned();
    Answer::Overview(overview(context.trace, context.replay, totals, axis, columns, &context.summary.ooms, name))
}

/// To [`Query::PositionAt`](crate::query::Query::PositionAt).
pub(super) fn position(context: Context<'_>, axis: Axis, x: f64) -> Answer {
    let end = context.replay.positions();
    let position = match axis {
        // Casts of floats saturate.
        Axis::Event => (x.max(0.0) as u32).min(end),
        Axis::Time => context.replay.position_at_time(context.trace, x),
    };
    Answer::Position(Some(position))
}
