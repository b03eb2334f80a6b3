//! The timeline and the overview. Their indexes are built when first asked for, and kept.

use super::{Answering, moments, searches, windows};
use crate::caches::Cache;
use crate::caches::Caches;
use crate::context::Context;
use crate::states::States;
use crate::terms::{Terms, is_permanent_text};
use analysis::lod::{Classes, Coloring, ColoringInput, RunningTotals, Scene, overview, timeline};
use query::{
    Axis, ClassesQuery, ColorBy, DeviceSummary, Memory, Moments, Overview, OverviewQuery, Paint, PositionAtQuery,
    Timeline, TimelineQuery, Window,
};
use replay::AllocatorState;
use replay::index::{Index, RecentCache};
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
struct Drawings {
    totals: RunningTotals,
    kept: RecentCache<Key, Coloring, KEPT>,
}

impl Cache for Drawings {
    fn bytes(&self) -> usize {
        self.totals.bytes() + self.kept.values().map(Index::bytes).sum::<usize>()
    }

    fn forget_categories(&mut self) {
        *self = Self::default();
    }
}

/// Builds or extends the colouring that a question needs, which becomes the last of those kept.
fn prepare(
    context: Context<'_>,
    caches: &mut Caches,
    color_by: ColorBy,
    filter: &[String],
    highlight: Option<&String>,
) -> Result<(), String> {
    let highlight = highlight.filter(|term| !term.trim().is_empty()).cloned();
    let key = Key { color_by, filter: filter.to_vec(), highlight };
    let mut coloring = caches.of::<Drawings>().kept.remove(&key).unwrap_or_default();
    if !coloring.is_current(context.replay.positions()) {
        let terms = caches.of::<Terms>();
        let filter = terms.all(context, &key.filter)?;
        let highlight = key.highlight.as_deref().map(|term| terms.matches(context, term)).transpose()?;
        coloring.extend(ColoringInput {
            painter: &context.painter(key.color_by),
            usage: context.usage,
            filter: filter.as_deref(),
            highlight: highlight.as_deref(),
            is_permanent: key.filter.iter().chain(&key.highlight).all(|term| is_permanent_text(term)),
        });
    }
    caches.of::<Drawings>().kept.insert(key, coloring);
    Ok(())
}

impl Answering for TimelineQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Timeline, String> {
        prepare(context, caches, self.color_by, &self.filter, self.highlight.as_ref())?;
        let highlighted = caches.of::<Terms>().highlight(context, self.highlight.as_deref())?;
        let has_match = highlighted.is_none_or(|found| found.count > 0);
        let Drawings { totals, kept } = caches.of::<Drawings>();
        totals.extend(context.replayed());
        let Some((key, coloring)) = kept.last() else {
            return Err("This trace has no timeline.".to_owned());
        };
        let scene = Scene {
            trace: context.trace,
            replay: context.replay,
            totals,
            classes: &coloring.classes,
            pyramid: &coloring.pyramid,
            painter: &context.painter(self.color_by),
            is_highlighted: key.highlight.is_some(),
        };
        let mut picture = timeline(scene, self);
        if !has_match {
            // A search without a match leaves everything as it is.
            let paint = picture.quads.paint.iter().map(|paint| paint & !Paint::DIM).collect::<Vec<_>>();
            picture.quads.paint = paint.into();
            picture.classes.iter_mut().for_each(|class| class.paint.0 &= !Paint::DIM);
        }
        Ok(picture)
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let bytes = Window { start: 0.0, end: device.peak_reserved as f64 + 1.0 };
        let mut all = Vec::new();
        for (axis, window) in windows(device) {
            for color_by in ColorBy::ALL {
                for (filter, highlight) in searches() {
                    all.push(Self { axis, window, columns: 23, bytes, rows: 100, color_by, filter, highlight });
                }
            }
        }
        all
    }
}

impl Answering for ClassesQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<query::Classes, String> {
        prepare(context, caches, self.color_by, &self.filter, self.highlight.as_ref())?;
        let Moments { at, since } = self.moments;
        let now = caches.of::<States>().at(context.replay, at);
        let before = since.map(|since| caches.of::<States>().at(context.replay, since));
        let Some((_, coloring)) = caches.of::<Drawings>().kept.last() else {
            return Err("This trace has no timeline.".to_owned());
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
        Ok(query::Classes { query: self.clone(), classes: classes.clone(), memory })
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let mut all = Vec::new();
        for moments in moments(device) {
            for color_by in ColorBy::ALL {
                for (filter, highlight) in searches() {
                    all.push(Self { moments, color_by, filter, highlight });
                }
            }
        }
        all
    }
}

impl Answering for OverviewQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Overview, String> {
        let totals = &mut caches.of::<Drawings>().totals;
        totals.extend(context.replayed());
        let (ooms, name) = (&context.summary.ooms, |id| context.symbols().text(id).into_owned());
        Ok(overview(context.trace, context.replay, totals, self.axis, self.columns, ooms, name))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        windows(device).map(|(axis, _)| Self { axis, columns: 37 }).into()
    }
}

impl Answering for PositionAtQuery {
    fn answer(&self, context: Context<'_>, _: &mut Caches) -> Result<u32, String> {
        let end = context.replay.positions();
        Ok(match self.axis {
            // Casts of floats saturate.
            Axis::Event => (self.x.max(0.0) as u32).min(end),
            Axis::Time => context.replay.position_at_time(context.trace, self.x),
        })
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let of = |(axis, window): (Axis, Window)| {
            [-0.1, 0.0, 0.3, 0.9, 1.1].map(|share| Self { axis, x: window.start + window.length() * share })
        };
        windows(device).into_iter().flat_map(of).collect()
    }
}
