//! Turns an answer into shapes: the stack, and above it rounding loss, cached memory and the line of reserved memory.

use query::{Detail, Paint, Quads, Timeline};
use raster::{Shape, Style};

use super::hover::Chosen;
use crate::render::palette::Palette;

/// The share of its own colour of filtered memory.
const HELD_BACK_SHARE: f32 = 0.26;

/// Consecutive columns with equal totals.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    from: usize,
    to: usize,
    top: u64,
    active: u64,
    reserved: u64,
}

/// Returns the shapes of an answer; x in columns, y in bytes from the start of the question's height. With a selection
/// in the answer, everything else is dimmed.
#[inline(never)]
pub fn shapes(timeline: &Timeline, palette: &Palette, chosen: Option<Chosen>) -> Vec<Shape> {
    let mut shapes = Vec::with_capacity(timeline.quads.len() + timeline.top.len() * 2);
    let runs = runs(timeline);
    let base = timeline.query.bytes.start;
    let y = |bytes: u64| (bytes as f64 - base) as f32;
    let is_filtered = !timeline.query.filter.is_empty();
    // An allocation that is selected during a search is one of many matches, which stay in their colours; an outline shows
    // which one it is.
    let is_match = timeline.query.highlight.is_some() && matches!(chosen, Some(Chosen::Id(_)));
    let dimmed = chosen.filter(|_| !is_match).and_then(|chosen| dimmed(&timeline.quads, chosen));
    // During a search only matches have their full colour, unless there are none.
    let is_search = timeline.quads.paint.iter().any(|paint| Paint(*paint).has(Paint::DIM));
    let dim = if is_search || dimmed.is_some() { Paint::DIM } else { 0 };
    let held_back = palette.background.blend(palette.fill(Paint::OTHER), HELD_BACK_SHARE);
    // Reserved memory rarely changes, so what lies above the stack is drawn as a few wide rectangles, whose lower parts
    // the stack covers. A rectangle for each column would take a painter many times as long.
    for equal in runs.chunk_by(|a, b| a.reserved == b.reserved) {
        let (Some(first), Some(last)) = (equal.first(), equal.last()) else { continue };
        // A column has its largest reserved total, which may be of another moment than the stack's.
        let active = equal.iter().map(|run| run.active).min().unwrap_or(0);
        if first.reserved > active {
            let (x, y) = ((first.from as f32, last.to as f32), (y(active), y(first.reserved)));
            shapes.push(palette.shape(x, y, Paint::CACHED.with(dim), Style::PLAIN));
        }
    }
    for run in &runs {
        let x = (run.from as f32, run.to as f32);
        if run.active > run.top {
            let y = (y(run.top), y(run.active));
            // Under a filter the rest is mostly what the filter hides, not rounding.
            shapes.push(if is_filtered {
                Shape::plain(x, y, held_back.pixel())
            } else {
                palette.shape(x, y, Paint::ROUNDING.with(dim), Style::PLAIN)
            });
        }
    }
    let quads = dimmed.as_ref().unwrap_or(&timeline.quads);
    match timeline.detail {
        Detail::Allocations => palette.outlined(quads, &mut shapes),
        // A line between neighbours.
        Detail::Classes => palette.filled(quads, Style::EDGE_TOP, &mut shapes),
    }
    line(&runs, y, palette, &mut shapes);
    shapes
}

/// Returns the rectangles, of which all but the chosen ones are dimmed; `None` if none is chosen.
fn dimmed(quads: &Quads, chosen: Chosen) -> Option<Quads> {
    let is_chosen = |(id, paint): (&u32, &u16)| chosen.has(*id, Paint(*paint));
    if !quads.id.iter().zip(quads.paint.iter()).any(is_chosen) {
        return None;
    }
    let paint = |pair: (&u32, &u16)| if is_chosen(pair) { *pair.1 } else { pair.1 | Paint::DIM };
    let paint: Vec<u16> = quads.id.iter().zip(quads.paint.iter()).map(paint).collect();
    Some(Quads { paint: paint.into(), ..quads.clone() })
}

fn runs(timeline: &Timeline) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let sums = timeline.top.iter().zip(timeline.active.iter()).zip(timeline.reserved.iter());
    for (column, ((top, active), reserved)) in sums.enumerate() {
        match runs.last_mut() {
            Some(run) if (run.top, run.active, run.reserved) == (*top, *active, *reserved) => run.to = column + 1,
            _ => runs.push(Run { from: column, to: column + 1, top: *top, active: *active, reserved: *reserved }),
        }
    }
    runs
}

/// Draws the line of reserved bytes: a step wherever it changes, one pixel thick at any scale.
fn line(runs: &[Run], y: impl Fn(u64) -> f32, palette: &Palette, shapes: &mut Vec<Shape>) {
    let mut thin = |x: (f32, f32), y: (f32, f32)| {
        shapes.push(Shape { style: Style::VISIBLE, ..Shape::plain(x, y, palette.reserved.pixel()) });
    };
    let mut last: Option<u64> = None;
    let mut begin = 0usize;
    for run in runs {
        if run.reserved < run.active {
            // Less than what is active, as in a damaged file: the reserved total is unknown.
            if let Some(before) = last.take() {
                thin((begin as f32, run.from as f32), (y(before), y(before)));
            }
            begin = run.to;
            continue;
        }
        if last.is_none() {
            begin = run.from;
        }
        if let Some(before) = last.filter(|before| *before != run.reserved) {
            let x = run.from as f32;
            thin((begin as f32, x), (y(before), y(before)));
            thin((x, x), (y(before.min(run.reserved)), y(before.max(run.reserved))));
            begin = run.from;
        }
        last = Some(run.reserved);
    }
    if let (Some(reserved), Some(run)) = (last, runs.last()) {
        thin((begin as f32, run.to as f32), (y(reserved), y(reserved)));
    }
}

#[cfg(test)]
pub(in crate::views) mod tests {
    use query::{Axis, Class, ColorBy, Quads, TimelineQuery, Window};

    use super::*;

    /// An answer of four columns, ten bytes high: one class below, another above it in the middle.
    pub(crate) fn answer() -> Timeline {
        let mut quads = Quads::default();
        quads.push((0.0, 4.0), (0.0, 2.0), Paint::slot(0), 0);
        quads.push((1.0, 3.0), (2.0, 5.0), Paint::slot(1), 1);
        let class = |label: &str, slot, stack| Class {
            label: label.to_owned(),
            paint: Paint::slot(slot),
            stack: Some(stack),
            peak_bytes: 3,
        };
        Timeline {
            query: TimelineQuery {
                axis: Axis::Event,
                window: Window { start: 100.0, end: 104.0 },
                columns: 4,
                bytes: Window { start: 0.0, end: 10.0 },
                rows: 10,
                color_by: ColorBy::Site,
                filter: Vec::new(),
                highlight: None,
            },
            detail: Detail::Classes,
            quads,
            classes: vec![class("model.py:1 forward", 0, 7), class("model.py:2 backward", 1, 9)],
            top: vec![2, 5, 5, 2].into(),
            position: vec![100, 101, 102, 103].into(),
            active: vec![3, 6, 6, 3].into(),
            reserved: vec![8, 8, 9, 9].into(),
            allocations: 2,
            newest_us: Some(1_700_000_000_000_000),
        }
    }

    #[test]
    fn above_the_stack_lie_rounding_loss_cache_and_the_reserved_line() {
        let palette = Palette::dark();
        let shapes = shapes(&answer(), &palette, None);
        let of = |color: crate::render::color::Rgb| -> Vec<([f32; 2], [f32; 2])> {
            shapes.iter().filter(|s| s.color == color.pixel()).map(|s| (s.x, s.y)).collect()
        };
        let rounding = of(palette.rounding);
        assert_eq!(rounding.first(), Some(&([0.0, 1.0], [2.0, 3.0])));
        let cached = palette.shape((0.0, 1.0), (0.0, 1.0), Paint::CACHED, Style::PLAIN).color;
        let cached: Vec<_> = shapes.iter().filter(|s| s.color == cached).map(|s| (s.x, s.y)).collect();
        // Each covers the columns of one reserved total, and the stack covers what is below it.
        assert_eq!(cached, [([0.0, 2.0], [3.0, 8.0]), ([2.0, 4.0], [3.0, 9.0])]);
        assert_eq!(
            of(palette.reserved),
            [([0.0, 2.0], [8.0, 8.0]), ([2.0, 2.0], [8.0, 9.0]), ([2.0, 4.0], [9.0, 9.0])]
        );
        assert_eq!(of(palette.fill(Paint::slot(1))), [([1.0, 3.0], [2.0, 5.0])]);
    }

    #[test]
    fn a_reserved_total_that_cannot_be_is_left_out() {
        let palette = Palette::dark();
        let mut damaged = answer();
        damaged.reserved = vec![8, 3, 3, 9].into();
        let shapes = shapes(&damaged, &palette, None);
        let lines: Vec<_> = shapes.iter().filter(|s| s.color == palette.reserved.pixel()).map(|s| (s.x, s.y)).collect();
        assert_eq!(lines, [([0.0, 1.0], [8.0, 8.0]), ([3.0, 4.0], [9.0, 9.0])]);
    }

    #[test]
    fn under_a_filter_the_rest_is_not_rounding() {
        let palette = Palette::light();
        let mut filtered = answer();
        filtered.query.filter = vec!["model".to_owned()];
        assert!(shapes(&filtered, &palette, None).iter().all(|shape| shape.color != palette.rounding.pixel()));
    }

    #[test]
    fn a_search_leaves_rounding_and_cache_faint() {
        let palette = Palette::dark();
        let mut searched = answer();
        searched.query.highlight = Some("forward".to_owned());
        let bright = shapes(&answer(), &palette, None);
        assert_eq!(shapes(&searched, &palette, None), bright, "without a match nothing is faint");
        searched.quads.paint = vec![Paint::slot(0).with(Paint::DIM).0, Paint::slot(1).0].into();
        let faint = shapes(&searched, &palette, None);
        let is_lost = |shape: &&Shape| shape.color == palette.rounding.pixel();
        assert!(bright.iter().any(|shape| is_lost(&shape)) && !faint.iter().any(|shape| is_lost(&shape)));
        let cached = |paint| palette.shape((0.0, 1.0), (0.0, 1.0), paint, Style::PLAIN).color;
        let has = |shapes: &[Shape], paint| shapes.iter().any(|shape| shape.color == cached(paint));
        let faint_cache = Paint::CACHED.with(Paint::DIM);
        assert!(has(&bright, Paint::CACHED) && has(&faint, faint_cache) && !has(&faint, Paint::CACHED));
    }

    #[test]
    fn the_other_matches_of_a_search_keep_their_colours() {
        let palette = Palette::dark();
        let mut searched = answer();
        searched.detail = Detail::Allocations;
        searched.query.highlight = Some("model".to_owned());
        assert_eq!(shapes(&searched, &palette, Some(Chosen::Id(1))), shapes(&searched, &palette, None));
        searched.query.highlight = None;
        assert_ne!(shapes(&searched, &palette, Some(Chosen::Id(1))), shapes(&searched, &palette, None));
    }

    #[test]
    fn a_selection_keeps_its_colour_and_dims_the_rest() {
        let palette = Palette::dark();
        let drawn = |chosen| shapes(&answer(), &palette, chosen);
        let has = |shapes: &[Shape], paint: Paint| shapes.iter().any(|s| s.color == palette.fill(paint).pixel());
        let (first, second) = (Paint::slot(0), Paint::slot(1));
        let one = drawn(Some(Chosen::Id(1)));
        assert!(has(&one, second) && !has(&one, first) && has(&one, first.with(Paint::DIM)));
        assert_eq!(drawn(Some(Chosen::Paint(second))), one);
        assert_eq!(drawn(Some(Chosen::Id(7))), drawn(None), "nothing of it is in view");
    }
}
