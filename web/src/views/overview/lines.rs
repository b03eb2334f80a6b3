//! The lines of the overview: those that hold most over the whole run in the timeline's colours, and which one is where.

use query::{Overview, Paint, Timeline};
use raster::{Shape, Transform};
use trace::order::SortFew;

use super::picture::AT_TIMES;
use crate::render::palette::Palette;
use crate::render::pick::pick;
use crate::render::shape::iter;

/// The number of classes that have their own colours. More could not be told apart at this height.
const STACKED: usize = 5;

/// Appends the allocations of the whole run as a stack: the classes that hold most over the run, and the line that the verdict
/// blames, have the timeline's colours, and everything else a pale form of that of allocated memory.
pub fn stacked(timeline: &Timeline, overview: &Overview, palette: &Palette, into: &mut Vec<Shape>) {
    let (from, to) = (timeline.query.window, overview.window);
    if from.length() <= 0.0 || to.length() <= 0.0 {
        return;
    }
    let mut areas = vec![0.0; 1 << 16];
    for quad in iter(&timeline.quads).filter(|quad| quad.paint.unmarked() != Paint::OTHER) {
        areas[usize::from(quad.paint.unmarked().0)] += (quad.x.1 - quad.x.0) * (quad.y.1 - quad.y.0);
    }
    let mut largest: Vec<(u16, f32)> = (0..=u16::MAX).zip(areas).filter(|(_, area)| *area > 0.0).collect();
    largest.sort_few_by(|a, b| b.1.total_cmp(&a.1));
    largest.truncate(STACKED);
    let stands_out =
        |paint: Paint| palette.is_culprit(paint) || largest.iter().any(|(code, _)| *code == paint.unmarked().0);
    // The answer may be of a session that has grown since.
    let columns = overview.reserved.len() as f64;
    let unit = from.length() / f64::from(timeline.query.columns.max(1));
    let rest = palette.background.blend(palette.fill(Paint::ALLOCATED), AT_TIMES);
    let column = |x: f32| ((from.start + f64::from(x) * unit - to.start) / to.length() * columns) as f32;
    into.extend(iter(&timeline.quads).map(|quad| {
        let color = if stands_out(quad.paint) { palette.fill(quad.paint) } else { rest };
        Shape::plain((column(quad.x.0), column(quad.x.1)), quad.y, color.pixel())
    }));
}

/// Returns the name of the line that holds memory at a coordinate of the axis and a height in bytes.
pub fn line_at(timeline: &Timeline, (x, bytes): (f64, f64)) -> Option<&str> {
    let query = &timeline.query;
    let column = (x - query.window.start) / query.window.length() * f64::from(query.columns);
    let units = Transform { x: (1.0, 0.0), y: (1.0, 0.0) };
    let (_, quad) = pick(&timeline.quads, units, (column, bytes), 0.0)?;
    let class = timeline.classes.iter().find(|class| class.paint.unmarked() == quad.paint.unmarked())?;
    Some(&class.label)
}

#[cfg(test)]
mod tests {
    use query::{Axis, Class, ColorBy, Detail, LineColors, Packed, Quads, TimelineQuery, Window};

    use super::super::picture::tests::overview;
    use super::*;

    #[test]
    fn only_the_classes_that_hold_most_and_the_culprit_have_their_colours() {
        let paint = |i: u16| Paint::slot(i);
        let mut quads = Quads::default();
        for i in 0..9 {
            quads.push((0.0, 1.0), (f32::from(i), f32::from(i) + f32::from(10 - i)), paint(i), u32::from(i));
        }
        let timeline = Timeline {
            query: TimelineQuery {
                axis: Axis::Event,
                window: Window { start: 10.0, end: 20.0 },
                columns: 2,
                bytes: Window { start: 0.0, end: 9.0 },
                rows: 9,
                color_by: ColorBy::Site,
                filter: Vec::new(),
                highlight: None,
            },
            detail: Detail::Classes,
            quads,
            classes: (0..8)
                .map(|i| Class { label: format!("f  m.py:{i}"), paint: paint(i), stack: None, peak_bytes: 0 })
                .collect(),
            top: Packed::default(),
            position: Packed::default(),
            active: Packed::default(),
            reserved: Packed::default(),
            allocations: 9,
            newest_us: None,
        };
        let palette = Palette::dark().coloring(Some(paint(7)), LineColors::default());
        let mut found = Vec::new();
        stacked(&timeline, &overview(), &palette, &mut found);
        let own: Vec<usize> = (0..9).filter(|i| found[*i].color == palette.fill(paint(*i as u16)).pixel()).collect();
        assert_eq!(own, [0, 1, 2, 3, 4, 7]);
        // Half of the window from 10 to 20 is half of a column of three from 0 to 30.
        assert_eq!(found[0].x, [1.0, 1.5]);
        // Half of a column: that of the stack ends at event 15. The last rectangle there lies over the others.
        assert_eq!(line_at(&timeline, (12.0, 0.5)), Some("f  m.py:0"));
        assert_eq!(line_at(&timeline, (12.0, 7.5)), Some("f  m.py:7"), "what has no colour of its own has a name");
        assert_eq!([line_at(&timeline, (16.0, 0.5)), line_at(&timeline, (12.0, 20.0))], [None, None]);
    }
}
