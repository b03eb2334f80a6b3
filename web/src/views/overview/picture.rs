//! The overview's picture: three totals over the whole run, the classes that hold most, its events, and the brush.

use std::rc::Rc;

use query::{Answer, Axis, Overview, Paint, Timeline, Window};
use raster::{Pixels, Shape, Style, Transform};
use trace::order::Within;
use trace::units::Bytes;

use super::lines::{line_at, stacked};
use crate::hooks::PinFlag;
use crate::render::canvas::{Picture, Size};
use crate::render::color::Rgb;
use crate::render::labels::Labels;
use crate::render::painter::Painter;
use crate::render::palette::Palette;
use crate::render::scale::Scale;
use crate::render::surface::{Align, Area, Font, Surface};
use crate::render::ticks;
use crate::views::chart::cut;
use crate::views::chart::lanes::ANNOTATED;
use crate::views::whatif::RunLines;
use crate::views::{losses, pin_flags, range_band};

/// Room for the label of the height, equal to the timeline's.
const GUTTER: f64 = 68.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
/// Room for the labels of the x axis.
const FOOT: f64 = 17.0;

/// What to draw, as set by the component.
pub struct Scene {
    /// The answer to draw.
    pub answer: Rc<Answer>,
    /// The whole run as a timeline, once it is known: an [`Answer::Timeline`].
    pub stack: Option<Rc<Answer>>,
    /// The theme's colours.
    pub palette: Rc<Palette>,
    /// The x axis.
    pub axis: Axis,
    /// The whole axis.
    pub extent: Window,
    /// The coordinate beyond which nothing is drawn, if any.
    pub newest: Option<f64>,
    /// The brush.
    pub window: Window,
    /// The cursor's coordinate.
    pub cursor: Option<f64>,
    /// The selected range.
    pub range: Option<Window>,
    /// Whether the end of the file is missing.
    pub is_cut_off: bool,
    /// The pins.
    pub pins: Rc<[PinFlag]>,
    /// The reserved memory of what-if runs.
    pub runs: Option<RunLines>,
}

/// The picture of the overview.
#[derive(Default)]
pub struct OverviewPicture {
    /// What to draw; `None` until the first answer.
    pub scene: Option<Scene>,
    /// The range that is being selected.
    pub preview: Option<Window>,
    shapes: Rc<Vec<Shape>>,
    made_of: Option<Made>,
    revision: u64,
}

/// What shapes were made of: the totals, the stack and the palette.
#[derive(Clone)]
struct Made(Rc<Answer>, Option<Rc<Answer>>, Rc<Palette>);

impl PartialEq for Made {
    fn eq(&self, other: &Self) -> bool {
        let is_same_stack = match (&self.1, &other.1) {
            (Some(one), Some(other)) => Rc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        is_same_stack && Rc::ptr_eq(&self.0, &other.0) && Rc::ptr_eq(&self.2, &other.2)
    }
}

/// Returns the area of the plot, on whole device pixels.
pub fn plot(size: Size) -> Area {
    let ratio = if size.ratio > 0.0 { size.ratio } else { 1.0 };
    let snap = |value: f64| (value * ratio).round() / ratio;
    let left = snap(GUTTER);
    Area {
        x: left,
        y: snap(TOP),
        width: snap((size.width - left - RIGHT).max(0.0)),
        height: snap((size.height - TOP - FOOT).max(0.0)),
    }
}

/// The share of its own colour of memory that is allocated in only a part of a column.
pub(super) const AT_TIMES: f32 = 0.5;

/// Returns the largest values of columns, where a value between two larger ones that are at most two columns away is raised
/// to the smaller of these. Teeth that are about as narrow as a column would otherwise come and go with the columns that
/// they happen to be in, as if the run had phases.
fn closed(values: &[u64]) -> Vec<u64> {
    let around = |values: &[u64], pick: fn(u64, u64) -> u64| -> Vec<u64> {
        values.windows(3).filter_map(|near| near.iter().copied().reduce(pick)).collect()
    };
    // Beyond the ends is nothing, which raises nothing.
    let padded = [&[0, 0], values, &[0, 0]].concat();
    around(&around(&padded, u64::max), u64::min)
}

/// Returns the shapes of an answer; x in columns, y in bytes. Reserved memory that is not allocated is grey, as on the
/// timeline, so that what is allocated stands out: up to the least of a column in full, from there to the largest in a lighter
/// colour, and over both the stack, if it is known.
fn shapes(overview: &Overview, stack: Option<&Timeline>, palette: &Palette) -> Vec<Shape> {
    let mut shapes = Vec::new();
    let at_times = palette.background.blend(palette.fill(Paint::ALLOCATED), AT_TIMES);
    let raised = closed(&overview.allocated);
    let columns = overview.reserved.iter().zip(overview.active.iter()).zip(overview.allocated.iter());
    let columns: Vec<(u64, u64, u64)> =
        columns.map(|((reserved, active), allocated)| (*reserved, *active, *allocated)).collect();
    // Reserved memory rarely changes, so the grey is drawn as wide rectangles. The other areas cover their lower
    // parts.
    let mut from = 0;
    for equal in columns.chunk_by(|a, b| a.0 == b.0) {
        let (x, to) = ((from as f32, (from + equal.len()) as f32), equal.first().map_or(0, |first| first.0));
        from += equal.len();
        let below = equal.iter().map(|column| column.1).min().unwrap_or(0);
        if to > below {
            shapes.push(palette.shape(x, (below as f32, to as f32), Paint::CACHED, Style::PLAIN));
        }
    }
    for (i, (reserved, active, allocated)) in columns.iter().copied().enumerate() {
        let x = (i as f32, i as f32 + 1.0);
        let mut area = |from: u64, to: u64, color: Rgb| {
            if to > from {
                shapes.push(Shape::plain(x, (from as f32, to as f32), color.pixel()));
            }
        };
        let least = overview.least.get(i).copied().unwrap_or(allocated).min(allocated);
        let most = raised.get(i).copied().unwrap_or(0).min(reserved).max(allocated);
        area(least, most, at_times);
        area(allocated, active, palette.fill(Paint::PENDING));
        area(0, least, palette.fill(Paint::ALLOCATED));
    }
    if let Some(timeline) = stack {
        stacked(timeline, overview, palette, &mut shapes);
    }
    let mut before: Option<u64> = None;
    for (i, (reserved, active, _)) in columns.into_iter().enumerate() {
        if reserved < active {
            // Less than what is active, as in a damaged file: the reserved total is unknown.
            before = None;
            continue;
        }
        // The line, with a step wherever it changes.
        let from = before.unwrap_or(reserved);
        let y = (from.min(reserved) as f32, from.max(reserved) as f32);
        let mut line = Shape::plain((i as f32, i as f32), y, palette.reserved.pixel());
        line.style = Style::VISIBLE;
        shapes.push(line);
        before = Some(reserved);
    }
    shapes
}

impl Scene {
    /// Returns the whole run as a timeline, if it is known on this axis.
    fn timeline(&self) -> Option<&Timeline> {
        match self.stack.as_deref()? {
            Answer::Timeline(timeline) if timeline.query.axis == self.axis => Some(timeline),
            _ => None,
        }
    }

    /// Returns the bytes at the top of the plot.
    fn most(&self, overview: &Overview) -> u64 {
        let sampled =
            overview.losses.iter().flat_map(|loss| &loss.samples).map(|sample| sample.reserved.max(sample.active));
        let columns = overview.reserved.iter().chain(overview.active.iter()).copied();
        columns.chain(sampled).chain(self.runs.as_ref().map(RunLines::most)).max().unwrap_or(0)
    }

    /// Returns the name of the line at a point of the plot, in CSS pixels.
    pub fn line_at(&self, plot: Area, (x, y): (f64, f64)) -> Option<&str> {
        let Answer::Overview(overview) = self.answer.as_ref() else { return None };
        let bytes = Window { start: 0.0, end: self.most(overview).max(1) as f64 };
        let at =
            (Scale::new(self.extent, plot.x, plot.right()).value(x), Scale::new(bytes, plot.bottom(), plot.y).value(y));
        line_at(self.timeline()?, at)
    }
}

impl Picture for OverviewPicture {
    fn draw(&mut self, painter: &mut dyn Painter, surface: &mut dyn Surface, size: Size) -> bool {
        let Some(scene) = &self.scene else { return true };
        let Answer::Overview(overview) = scene.answer.as_ref() else {
            // A canvas that was never painted is black.
            self.made_of = None;
            self.revision += 1;
            painter.set_shapes(&Rc::default(), self.revision);
            let nowhere = Transform { x: (1.0, 0.0), y: (1.0, 0.0) };
            return painter.paint(scene.palette.background, nowhere, Pixels::default());
        };
        let made = Some(Made(Rc::clone(&scene.answer), scene.stack.clone(), Rc::clone(&scene.palette)));
        if self.made_of != made {
            self.shapes = Rc::new(shapes(overview, scene.timeline(), &scene.palette));
            self.made_of = made;
            self.revision += 1;
        }
        if painter.revision() != self.revision {
            painter.set_shapes(&self.shapes, self.revision);
        }
        let plot = plot(size);
        let largest = scene.most(overview);
        let device = |v: f64| (v * size.ratio).round();
        let columns = overview.reserved.len().max(1) as f64;
        // One row is kept free for the line at the very top.
        let per_byte = -(device(plot.height) - 1.0) / (largest.max(1) as f64);
        // At rest columns are pixels. If a session has grown since the question, its columns are drawn at their old
        // place.
        let (whole, asked) = (scene.extent, overview.window);
        let per_unit = device(plot.width) / if whole.length() > 0.0 { whole.length() } else { 1.0 };
        let x = if asked == whole || asked.length() <= 0.0 {
            (device(plot.width) / columns, device(plot.x))
        } else {
            (asked.length() / columns * per_unit, device(plot.x) + (asked.start - whole.start) * per_unit)
        };
        let transform = Transform { x: (x.0 as f32, x.1 as f32), y: (per_byte as f32, device(plot.bottom()) as f32) };
        let right = scene.newest.map_or(plot.right(), |newest| {
            (Scale::new(scene.extent, plot.x, plot.right()).pixel(newest) + 1.0).within(plot.x, plot.right())
        });
        let clip = Pixels {
            x0: device(plot.x) as i32,
            y0: device(plot.y) as i32 - 1,
            x1: device(right) as i32,
            y1: device(plot.bottom()) as i32,
        };
        if !painter.paint(scene.palette.background, transform, clip) {
            return false;
        }
        over(surface, scene, overview, plot, largest, self.preview);
        true
    }
}

/// Draws everything over the totals. `preview` replaces the selected range.
fn over(
    surface: &mut dyn Surface,
    scene: &Scene,
    overview: &Overview,
    plot: Area,
    largest: u64,
    preview: Option<Window>,
) {
    let palette = &scene.palette;
    let x = Scale::new(scene.extent, plot.x, plot.right());
    // The name of the strip of annotations is above.
    let first = plot.y + if overview.annotations.is_empty() { 6.0 } else { 8.0 };
    let bytes = Bytes(largest).to_string();
    surface.text(&bytes, (plot.x - 8.0, first), Align::End, Font::Label, palette.text_dim.into());
    let is_reserved = overview.reserved.iter().max() >= overview.active.iter().max();
    let name = if is_reserved { "reserved" } else { "in use" };
    surface.text(name, (plot.x - 8.0, first + 12.0), Align::End, Font::Label, palette.text_dim.at(0.8));
    x_axis(surface, scene, x, plot);
    annotations(surface, overview, palette, x, plot);
    let y = Scale::new(Window { start: 0.0, end: largest.max(1) as f64 }, plot.bottom(), plot.y);
    losses::draw(surface, &overview.losses, (x, y), plot, palette);
    if let Some(runs) = &scene.runs {
        runs.draw(surface, (x, y), plot, (&mut Labels::default(), false), palette);
    }
    brush(surface, scene, x, plot);
    if let Some(range) = preview.or(scene.range) {
        range_band::draw(surface, x, plot, range, palette);
    }
    if scene.is_cut_off {
        cut::tear(surface, plot.right(), plot, palette);
    }
    for (at, _) in &overview.ooms {
        let at = x.pixel(*at);
        surface.vertical(at, 1.0, plot.bottom(), palette.oom.into());
        surface.polygon(&[(at, 1.0), (at + 8.0, 4.0), (at, 7.0)], palette.oom.into());
    }
    pin_flags::draw(surface, x, plot, &scene.pins, false, palette);
    if let Some(at) = scene.cursor.map(|cursor| x.pixel(cursor)) {
        surface.vertical(at, plot.y - 6.0, plot.bottom(), palette.text.into());
        let top = plot.y - 8.0;
        surface.polygon(&[(at - 3.5, top), (at + 4.5, top), (at + 0.5, top + 6.0)], palette.text.into());
    }
}

/// Draws the axis below the plot.
fn x_axis(surface: &mut dyn Surface, scene: &Scene, x: Scale, plot: Area) {
    let ink = scene.palette.text_dim;
    surface.horizontal(plot.bottom(), plot.x, plot.right(), false, scene.palette.line.into());
    let (name, marks) = match scene.axis {
        Axis::Time => ("time", ticks::time(scene.extent, plot.width / 120.0)),
        Axis::Event => ("event", ticks::events(scene.extent, plot.width / 120.0)),
    };
    let middle = plot.bottom() + 10.0;
    surface.text(name, (plot.x - 8.0, middle), Align::End, Font::Label, ink.at(0.8));
    let mut end = plot.x;
    for tick in marks {
        let at = x.pixel(tick.at);
        surface.vertical(at, plot.bottom(), plot.bottom() + 3.0, ink.at(0.6));
        let half = surface.text_width(&tick.label, Font::Label) / 2.0;
        let label = at.within(plot.x + half, (plot.right() - half).max(plot.x + half));
        if label - half >= end {
            end = label + half + 6.0;
            surface.text(&tick.label, (label, middle), Align::Middle, Font::Label, ink.into());
        }
    }
}

/// Draws annotated spans as a thin strip on top, at most one per pixel, with the name of the timeline's lane.
fn annotations(surface: &mut dyn Surface, overview: &Overview, palette: &Palette, x: Scale, plot: Area) {
    if !overview.annotations.is_empty() {
        surface.text(ANNOTATED, (plot.x - 8.0, plot.y - 6.0), Align::End, Font::Label, palette.text_dim.at(0.8));
    }
    let mut drawn = f64::NEG_INFINITY;
    for (i, (span, _)) in overview.annotations.iter().enumerate() {
        let (from, to) = (x.pixel(span.start).max(plot.x), x.pixel(span.end).min(plot.right()));
        let to = to.max(from + 1.0);
        if to >= drawn + 1.0 {
            drawn = to;
            let strip = Area { x: from, y: plot.y - 5.0, width: to - from, height: 3.0 };
            surface.fill(strip, palette.text.at(if i % 2 == 0 { 0.25 } else { 0.45 }));
        }
    }
}

/// Dims what is outside of the window and draws the window's edges with their grips.
fn brush(surface: &mut dyn Surface, scene: &Scene, x: Scale, plot: Area) {
    let palette = &scene.palette;
    let (start, end) = (x.pixel(scene.window.start), x.pixel(scene.window.end).max(x.pixel(scene.window.start) + 2.0));
    let veil = palette.background.at(0.66);
    surface
        .fill(Area { x: plot.x, y: plot.y - 1.0, width: (start - plot.x).max(0.0), height: plot.height + 1.0 }, veil);
    surface
        .fill(Area { x: end, y: plot.y - 1.0, width: (plot.right() - end).max(0.0), height: plot.height + 1.0 }, veil);
    let is_whole = scene.window.length() >= scene.extent.length() * 0.999;
    if !is_whole {
        surface.fill(
            Area { x: start, y: plot.y - 1.0, width: end - start, height: plot.height + 1.0 },
            palette.accent.at(0.07),
        );
    }
    for edge in [start, end] {
        surface.vertical(edge, plot.y - 1.0, plot.bottom(), palette.accent.at(if is_whole { 0.4 } else { 0.9 }));
        let grip = Area { x: edge - 2.5, y: plot.y + plot.height / 2.0 - 8.0, width: 6.0, height: 16.0 };
        surface.fill(grip, palette.background.into());
        surface.outline(grip, 1.0, palette.accent.at(if is_whole { 0.5 } else { 1.0 }));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::render::surface::log::SurfaceLog;

    pub(in crate::views::overview) fn overview() -> Overview {
        Overview {
            window: Window { start: 0.0, end: 30.0 },
            reserved: vec![8, 8, 10].into(),
            active: vec![4, 6, 6].into(),
            allocated: vec![4, 5, 6].into(),
            least: vec![4, 3, 6].into(),
            ooms: vec![(20.0, 20)],
            annotations: vec![(Window { start: 0.0, end: 10.0 }, "step".to_owned())],
            losses: Vec::new(),
            outside: Vec::new(),
        }
    }

    #[test]
    fn sums_lie_over_each_other() {
        let palette = Palette::dark();
        let shapes = shapes(&overview(), None, &palette);
        let heights =
            |color: Rgb| -> Vec<[f32; 2]> { shapes.iter().filter(|s| s.color == color.pixel()).map(|s| s.y).collect() };
        assert_eq!(heights(palette.allocated), [[0.0, 4.0], [0.0, 3.0], [0.0, 6.0]]);
        let at_times = palette.background.blend(palette.allocated, AT_TIMES);
        assert_eq!(heights(at_times), [[3.0, 5.0]], "from the least to the largest of the column");
        assert_eq!(heights(palette.pending), [[5.0, 6.0]]);
        assert_eq!(heights(palette.reserved), [[8.0, 8.0], [8.0, 8.0], [8.0, 10.0]]);
    }

    #[test]
    fn teeth_as_narrow_as_columns_show_no_phases() {
        // Teeth of three heights, of which 1.47 fall into a column.
        let teeth = |column: usize| {
            let (from, to) = (column as f64 * 1.47, (column + 1) as f64 * 1.47);
            (from.ceil() as usize..to.ceil() as usize).map(|tooth| [192, 256, 320][tooth % 3]).max().unwrap_or(128)
        };
        let columns: Vec<u64> = (0..1_360).map(teeth).collect();
        assert!(columns.contains(&192), "some columns miss the highest teeth");
        let drawn = closed(&columns);
        assert!(drawn[2..1_357].iter().all(|most| *most == 320));
        // What is wider, or stands alone, stays as it is.
        let wide = [1, 1, 9, 1, 1, 1, 9, 9, 9, 2, 2, 2, 5];
        assert_eq!(closed(&wide), wide);
        assert_eq!(closed(&[9, 1, 8, 1, 1, 7]), [9, 8, 8, 7, 7, 7]);
        assert!(closed(&[]).is_empty());
    }

    /// A scene of 30 events.
    fn scene() -> Scene {
        Scene {
            stack: None,
            answer: Rc::new(Answer::Overview(overview())),
            palette: Rc::new(Palette::light()),
            axis: Axis::Event,
            extent: Window { start: 0.0, end: 30.0 },
            newest: None,
            window: Window { start: 10.0, end: 15.0 },
            cursor: Some(12.0),
            range: None,
            is_cut_off: false,
            pins: Rc::default(),
            runs: None,
        }
    }

    #[test]
    fn marks_lie_over_the_brush() {
        let plot = plot(Size { width: 380.0, height: 85.0, ratio: 1.0 });
        let mut log = SurfaceLog::default();
        over(&mut log, &scene(), &overview(), plot, 10, None);
        let palette = Palette::light();
        let order: Vec<Option<usize>> = [
            "text \"10 B\"",
            &format!("fill 68,11 100x57 {}", palette.background.css()),
            &format!("vertical 168 from 11 to 68 {}", palette.accent.css()),
            &format!("vertical 268 from 1 to 68 {}", palette.oom.css()),
            &format!("vertical 188 from 6 to 68 {}", palette.text.css()),
        ]
        .iter()
        .map(|part| log.0.iter().position(|line| line.contains(part)))
        .collect();
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?} {:#?}", log.0);
    }

    #[test]
    fn the_strip_of_annotations_has_a_name_that_touches_no_other() {
        let words = |overview: &Overview| {
            let mut log = SurfaceLog::default();
            over(&mut log, &scene(), overview, plot(Size { width: 380.0, height: 60.0, ratio: 1.0 }), 10, None);
            log.words()
        };
        let found = words(&overview());
        assert!(found.iter().any(|(_, text)| text == ANNOTATED), "{found:?}");
        for (i, (one, text)) in found.iter().enumerate() {
            assert!(found[..i].iter().all(|(other, _)| !one.overlaps(*other)), "{text} in {found:?}");
        }
        let without = Overview { annotations: Vec::new(), ..overview() };
        assert!(words(&without).iter().all(|(_, text)| text != ANNOTATED));
    }

    #[test]
    fn a_file_that_was_cut_off_ends_with_a_torn_edge() {
        let edges = |is_cut_off| {
            let (mut log, scene) = (SurfaceLog::default(), Scene { is_cut_off, ..scene() });
            let plot = plot(Size { width: 380.0, height: 85.0, ratio: 1.0 });
            over(&mut log, &scene, &overview(), plot, 10, None);
            log.0.iter().filter(|line| line.starts_with("contour")).count()
        };
        assert_eq!((edges(false), edges(true)), (0, 2));
    }
}
