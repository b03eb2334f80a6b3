//! What is under the pointer, and the outlines of hovered and selected things.

use query::link::Selection;
use query::{Class, Detail, Paint, Quads, Timeline};
use raster::Transform;
use trace::order::{SortFew, Within};

use crate::render::pick::pick;
use crate::render::shape::{Quad, iter};

/// A thing on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A class: an index into the answer's classes.
    Class(u32),
    /// An allocation.
    Allocation(u32),
    /// Allocations too small to draw separately.
    Sum(Paint),
    /// Memory lost to rounding.
    Rest,
    /// Memory hidden by a filter.
    HeldBack,
    /// Reserved memory outside of active blocks.
    Cached,
    /// Nothing is reserved there.
    Free,
    /// An annotated span in the strip above the shapes: an index into the marks.
    Annotation(u32),
    /// Lost events: an index into the marks.
    Loss(u32),
}

/// What is under the pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hover {
    /// The thing.
    pub thing: Thing,
    /// Its bytes in this column.
    pub bytes: u64,
    /// Whether the requested bytes are those that match a filter.
    pub is_filtered: bool,
    /// The column's position: its peak of requested bytes.
    pub position: u32,
    /// The requested bytes at that position.
    pub requested: u64,
    /// The active bytes at that position, rounding included.
    pub active: u64,
    /// The largest reserved total in the column.
    pub reserved: u64,
}

/// Returns what an answer shows at a device pixel; `None` outside of its columns.
pub fn at(timeline: &Timeline, transform: Transform, pixel: (f64, f64)) -> Option<Hover> {
    let unit = |(scale, offset): (f32, f32), at: f64| (at - f64::from(offset)) / f64::from(scale);
    let column = unit(transform.x, pixel.0).floor();
    if !(column >= 0.0 && column < timeline.top.len() as f64) {
        return None;
    }
    let query = &timeline.query;
    let bytes = query.bytes.start + unit(transform.y, pixel.1);
    let is_filtered = !query.filter.is_empty();
    // Things thinner than a pixel can't be hit exactly: one pixel of tolerance. What is beside the pointer is not in its
    // column: the sums are those of the nearest column that it is in.
    let quad = pick(&timeline.quads, transform, pixel, 1.0).map(|(_, quad)| quad);
    let column = match &quad {
        Some(Quad { x: (from, to), .. }) => {
            let first = f64::from(*from).floor();
            column.within(first, (f64::from(*to).ceil() - 1.0).max(first))
        }
        None => column,
    } as usize;
    let (requested, active) = (*timeline.top.get(column)?, *timeline.active.get(column)?);
    let (reserved, position) = (*timeline.reserved.get(column)?, *timeline.position.get(column)?);
    let hover = |thing, bytes| Some(Hover { thing, bytes, is_filtered, position, requested, active, reserved });
    if let Some(quad) = quad {
        let height = f64::from(quad.y.1 - quad.y.0) as u64;
        return hover(thing(timeline.detail, &quad), height);
    }
    if bytes < 0.0 || bytes >= reserved as f64 {
        hover(Thing::Free, 0)
    } else if bytes < active as f64 {
        hover(if is_filtered { Thing::HeldBack } else { Thing::Rest }, active.saturating_sub(requested))
    } else {
        hover(Thing::Cached, reserved.saturating_sub(active))
    }
}

fn thing(detail: Detail, quad: &Quad) -> Thing {
    match detail {
        _ if quad.id == Quads::NONE => Thing::Sum(quad.paint),
        Detail::Classes => Thing::Class(quad.id),
        Detail::Allocations => Thing::Allocation(quad.id),
    }
}

impl Hover {
    /// Creates the hover of an annotated span, which has no totals.
    pub fn annotation(i: usize) -> Self {
        Self::without_sums(Thing::Annotation(i as u32), 0)
    }

    /// Creates the hover of lost events after a position, whose totals are unknown.
    pub fn loss(i: usize, position: u32) -> Self {
        Self::without_sums(Thing::Loss(i as u32), position)
    }

    fn without_sums(thing: Thing, position: u32) -> Self {
        Self { thing, bytes: 0, is_filtered: false, position, requested: 0, active: 0, reserved: 0 }
    }
}

impl Thing {
    /// Returns what a click on it selects.
    pub fn selection(self, timeline: &Timeline) -> Selection {
        match self {
            Self::Class(i) => match timeline.classes.get(i as usize).and_then(|class| class.stack) {
                Some(stack) => Selection::Line(stack),
                None => Selection::Class(i),
            },
            Self::Allocation(id) => Selection::Allocation(id),
            Self::Sum(paint) => {
                class_of(timeline, paint).and_then(|class| class.stack).map_or(Selection::None, Selection::Line)
            }
            Self::Rest | Self::HeldBack | Self::Cached | Self::Free | Self::Annotation(_) | Self::Loss(_) => {
                Selection::None
            }
        }
    }
}

/// Returns the class of a paint, if the paint belongs to one class.
pub fn class_of(timeline: &Timeline, paint: Paint) -> Option<&Class> {
    let is_own = paint.base() != Paint::OTHER;
    let mut found = timeline.classes.iter().filter(|class| is_own && class.paint.unmarked() == paint.unmarked());
    let first = found.next()?;
    // With a search each class occurs twice.
    found.all(|other| other.stack == first.stack).then_some(first)
}

/// Returns the rectangles of a selection or a hovered thing, from left to right.
pub fn pieces(timeline: &Timeline, is_meant: impl Fn(&Quad) -> bool) -> Vec<Quad> {
    let mut pieces: Vec<Quad> = iter(&timeline.quads).filter(|quad| is_meant(quad)).collect();
    pieces.sort_few_by(|a, b| a.x.0.total_cmp(&b.x.0));
    pieces
}

/// How the rectangles of a selection are recognised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Chosen {
    /// By what they stand for.
    Id(u32),
    /// By their paint.
    Paint(Paint),
}

impl Chosen {
    /// Returns how the rectangles of a selection are recognised; `None` if the answer has none.
    pub fn of(timeline: &Timeline, selection: Selection) -> Option<Self> {
        let class_of = |stack| (0..).zip(&timeline.classes).find(|(_, class)| class.stack == Some(stack));
        match (selection, timeline.detail) {
            (Selection::Allocation(id), Detail::Allocations) => Some(Self::Id(id)),
            (Selection::Class(class), Detail::Classes) => Some(Self::Id(class)),
            (Selection::Site(stack) | Selection::Line(stack), Detail::Classes) => {
                class_of(stack).map(|(i, _)| Self::Id(i))
            }
            (Selection::Site(stack) | Selection::Line(stack), Detail::Allocations) => {
                // The paint of an allocation identifies its call site, if the site has a class of its own.
                let own = class_of(stack).map(|(_, class)| class.paint.unmarked());
                own.filter(|paint| *paint != Paint::OTHER).map(Self::Paint)
            }
            _ => None,
        }
    }

    /// Returns whether a rectangle belongs to the selection.
    pub fn has(self, id: u32, paint: Paint) -> bool {
        match self {
            Self::Id(own) => own == id,
            Self::Paint(own) => own == paint.unmarked(),
        }
    }
}

/// Returns the outline of each chain of touching rectangles: along the upper edges, and back along the lower ones.
pub fn outlines(pieces: &[Quad], point: impl Fn(f32, f32) -> (f64, f64)) -> Vec<Vec<(f64, f64)>> {
    let mut outlines = Vec::new();
    // Rectangles of several allocations may interleave; each joins the chain that ends where it begins.
    let mut chains: Vec<Vec<Quad>> = Vec::new();
    for piece in pieces {
        let open =
            chains.iter_mut().rev().take(64).find(|chain| {
                chain.last().is_some_and(|last| (last.x.1 - piece.x.0).abs() < 1e-3 && last.id == piece.id)
            });
        match open {
            Some(chain) => chain.push(*piece),
            None => chains.push(vec![*piece]),
        }
    }
    for chain in chains {
        let above = chain.iter().flat_map(|q| [point(q.x.0, q.y.1), point(q.x.1, q.y.1)]);
        let below = chain.iter().rev().flat_map(|q| [point(q.x.1, q.y.0), point(q.x.0, q.y.0)]);
        outlines.push(above.chain(below).collect());
    }
    outlines
}

#[cfg(test)]
mod tests {
    use query::TimelineQuery;

    use super::super::bands::tests::answer;
    use super::*;

    /// Ten pixels per column and per byte; byte 0 is at pixel 100.
    const TRANSFORM: Transform = Transform { x: (10.0, 0.0), y: (-10.0, 100.0) };

    #[test]
    fn picking_returns_the_thing_under_the_pointer() {
        let timeline = answer();
        let check = |pixel, want: Option<(Thing, u64)>| {
            assert_eq!(at(&timeline, TRANSFORM, pixel).map(|hover| (hover.thing, hover.bytes)), want, "{pixel:?}");
        };
        check((5.0, 90.0), Some((Thing::Class(0), 2)));
        check((15.0, 65.0), Some((Thing::Class(1), 3)));
        check((15.0, 45.0), Some((Thing::Rest, 1)));
        check((15.0, 30.0), Some((Thing::Cached, 2)));
        check((15.0, 5.0), Some((Thing::Free, 0)));
        check((45.0, 90.0), None);
        check((-1.0, 90.0), None);
        let filtered = TimelineQuery { filter: vec!["model".to_owned()], ..timeline.query.clone() };
        let filtered = Timeline { query: filtered, ..timeline.clone() };
        let hover = at(&filtered, TRANSFORM, (15.0, 45.0)).unwrap();
        assert_eq!((hover.thing, hover.is_filtered), (Thing::HeldBack, true));
        let hover = at(&timeline, TRANSFORM, (25.0, 90.0)).unwrap();
        assert_eq!((hover.position, hover.requested, hover.active, hover.reserved), (102, 5, 6, 9));
    }

    #[test]
    fn the_sums_are_of_a_moment_at_which_the_thing_is_live() {
        let mut timeline = answer();
        // Only the second column has the upper class, and it is a pixel wide.
        timeline.quads.x1[1] = 2.0;
        timeline.top = vec![2, 5, 2, 2].into();
        let one = Transform { x: (1.0, 0.0), y: (-10.0, 100.0) };
        for pixel in [0.5, 1.5, 2.5] {
            let hover = at(&timeline, one, (pixel, 65.0)).unwrap();
            assert_eq!((hover.thing, hover.position, hover.requested), (Thing::Class(1), 101, 5), "{pixel}");
        }
        assert_eq!(at(&timeline, one, (3.5, 65.0)).unwrap().thing, Thing::Cached);
    }

    #[test]
    fn clicks_select_call_sites_and_allocations() {
        let timeline = answer();
        assert_eq!(Thing::Class(1).selection(&timeline), Selection::Line(9));
        assert_eq!(Thing::Allocation(5).selection(&timeline), Selection::Allocation(5));
        assert_eq!(Thing::Sum(Paint::slot(1)).selection(&timeline), Selection::Line(9));
        assert_eq!(Thing::Sum(Paint::OTHER).selection(&timeline), Selection::None);
        assert_eq!(Thing::Cached.selection(&timeline), Selection::None);
        let line = Chosen::of(&timeline, Selection::Line(9)).unwrap();
        let chosen = pieces(&timeline, |quad| line.has(quad.id, quad.paint));
        assert_eq!(chosen.len(), 1);
        assert_eq!(chosen[0].x, (1.0, 3.0));
    }

    #[test]
    fn lines_of_one_color_are_told_apart() {
        let (low, high) = (Paint(3 | 1 << 10), Paint(3 | 2 << 10));
        assert_eq!(low.base(), high.base());
        let cases = [
            ([low, high], low, Some(5)),
            ([low, high], high.with(Paint::DIM), Some(9)),
            ([low, high], Paint::slot(4), None),
            // Nothing tells which of the two it is.
            ([low, low], low, None),
        ];
        for (paints, sum, want) in cases {
            let mut timeline = answer();
            for (class, (paint, stack)) in timeline.classes.iter_mut().zip(paints.into_iter().zip([5, 9])) {
                (class.paint, class.stack) = (paint, Some(stack));
            }
            let want = want.map_or(Selection::None, Selection::Line);
            assert_eq!(Thing::Sum(sum).selection(&timeline), want, "{paints:?} {sum:?}");
        }
        let mut timeline = answer();
        timeline.detail = Detail::Allocations;
        (timeline.classes[0].paint, timeline.classes[1].paint) = (low, high);
        let chosen = Chosen::of(&timeline, Selection::Line(9)).unwrap();
        assert_eq!([low, high, high.with(Paint::PRIVATE)].map(|paint| chosen.has(1, paint)), [false, true, true]);
    }

    #[test]
    fn a_staircase_has_one_outline() {
        let step = |x, y, id| Quad { x, y, paint: Paint::OTHER, id };
        let pieces =
            [step((0.0, 2.0), (1.0, 2.0), 1), step((2.0, 3.0), (0.0, 1.0), 1), step((5.0, 6.0), (0.0, 1.0), 1)];
        let lines = outlines(&pieces, |x, y| (f64::from(x), f64::from(y)));
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[0],
            [(0.0, 2.0), (2.0, 2.0), (2.0, 1.0), (3.0, 1.0), (3.0, 0.0), (2.0, 0.0), (2.0, 1.0), (0.0, 1.0)]
        );
    }
}
