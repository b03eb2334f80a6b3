//! The timeline and the overview: what they are drawn from is built when first asked for, and kept.

use super::Caches;
use super::context::Context;
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
}

/// What timelines of one device are drawn from, the colouring used last at the end.
#[derive(Debug, Default)]
pub(super) struct Drawings {
    totals: Option<RunningTotals>,
    kept: Vec<Drawing>,
}

impl Caches {
    fn totals(&mut self, context: Context<'_>) -> &RunningTotals {
        self.drawings.totals.get_or_insert_with(|| RunningTotals::build(context.trace, context.replay))
    }

    /// Makes the colouring that a question needs the last one that is kept.
    fn prepare(&mut self, context: Context<'_>, query: &TimelineQuery) -> Result<(), String> {
        let key = Key {
            color_by: query.color_by,
            filter: query.filter.clone(),
            highlight: query.highlight.clone().filter(|term| !term.trim().is_empty()),
        };
        if let Some(i) = self.drawings.kept.iter().position(|d| d.key == key) {
            let found = self.drawings.kept.remove(i);
            self.drawings.kept.push(found);
            return Ok(());
        }
        let filter = self.terms.all(context, &key.filter)?;
        let highlight = key.highlight.as_deref().map(|term| self.terms.matches(context, term)).transpose()?;
        let painter = context.painter(key.color_by);
        let lit: Option<&Matches> = highlight.as_deref();
        let classes = Classes::build(&painter, context.usage, filter.as_deref(), lit);
        let pyramid = Pyramid::build(context.trace, context.replay, &classes);
        let kept = &mut self.drawings.kept;
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(Drawing { key, classes, pyramid });
        Ok(())
    }
}

/// To [`Query::Timeline`](crate::query::Query::Timeline).
pub(super) fn stacked(context: Context<'_>, caches: &mut Caches, query: &TimelineQuery) -> Answer {
    if let Err(sentence) = caches.prepare(context, query) {
        return Answer::Refused(sentence);
    }
    caches.totals(context);
    let Drawings { totals: Some(totals), kept } = &caches.drawings else {
        return Answer::Refused("This trace has no timeline.".to_owned());
    };
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
    Answer::Overview(overview(context.trace, context.replay, totals, axis, columns, name))
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
