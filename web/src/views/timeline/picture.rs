//! The timeline's picture: the last answer, drawn at its place in the current window, with the marks. While a gesture
//! is ahead of the answers the last one is stretched, until the next one replaces it.

use std::rc::Rc;

use query::link::Selection;
use query::{Answer, Axis, Class, ColorBy, Detail, Timeline, Window};
use raster::{Pixels, Shape, Transform};
use trace::order::{SortFew, Within};

use super::bands;
use super::ghost::Ghost;
use super::hover::{self, Chosen, Hover, Thing, outlines, pieces};
use crate::render::canvas::{Picture, Size};
use crate::render::labels::Labels;
use crate::render::painter::Painter;
use crate::render::palette::Palette;
use crate::render::shape::Quad;
use crate::render::surface::{Area, Surface};
use crate::views::chart::drag::{DragPreview, Draggable};
use crate::views::chart::gesture::PlotArea;
use crate::views::chart::marks::{self, Marks};
use crate::views::chart::outline::{Outline, nearest};
use crate::views::chart::{cut, peak};
use crate::views::whatif::RunLines;
use crate::views::{losses, range_band, range_button};

/// What to draw, as set by the component.
pub struct Scene {
    /// The answer to draw.
    pub answer: Rc<Answer>,
    /// The theme's colours.
    pub palette: Rc<Palette>,
    /// The plot area.
    pub plot_area: PlotArea,
    /// The x axis.
    pub axis: Axis,
    /// The coordinate beyond which nothing is drawn, if any.
    pub newest: Option<f64>,
    /// The marks.
    pub marks: Marks,
    /// The selection.
    pub selection: Selection,
    /// A request that failed in view.
    pub ghost: Option<Ghost>,
    /// The reserved memory of what-if runs.
    pub runs: Option<RunLines>,
}

/// The picture of the timeline.
#[derive(Default)]
pub struct TimelinePicture {
    /// What to draw; `None` until the first answer.
    pub scene: Option<Scene>,
    /// What is under the pointer.
    pub hover: Option<Thing>,
    drag: DragPreview,
    shapes: Rc<Vec<Shape>>,
    made_of: Option<(Rc<Answer>, Rc<Palette>, Option<Chosen>)>,
    revision: u64,
}

impl Scene {
    /// Returns the answer, if it is a timeline for this axis.
    pub fn timeline(&self) -> Option<&Timeline> {
        match self.answer.as_ref() {
            Answer::Timeline(timeline) if timeline.query.axis == self.axis => Some(timeline),
            _ => None,
        }
    }

    /// Returns the transform from columns and bytes of the answer to device pixels.
    pub fn transform(&self, timeline: &Timeline, ratio: f64) -> Transform {
        let (plot_area, query) = (&self.plot_area, &timeline.query);
        let x = along(
            query.window,
            f64::from(query.columns.max(1)),
            plot_area.window,
            plot_area.plot.x * ratio,
            plot_area.plot.width * ratio,
        );
        let per_byte = -plot_area.plot.height * ratio / plot_area.bytes.length().max(1.0);
        let bottom = plot_area.plot.bottom() * ratio;
        let y = (per_byte as f32, (bottom + (query.bytes.start - plot_area.bytes.start) * per_byte) as f32);
        Transform { x, y }
    }

    /// Returns the right end of the shapes in CSS pixels.
    fn right(&self) -> f64 {
        let PlotArea { plot, .. } = self.plot_area;
        // The newest moment has a pixel.
        self.newest.map_or(plot.right(), |newest| (self.plot_area.x().pixel(newest) + 1.0).within(plot.x, plot.right()))
    }

    /// Returns the y coordinate of the highest that is drawn between two x coordinates.
    fn roof(&self, timeline: &Timeline, from: f64, to: f64) -> f64 {
        let (x, query) = (self.plot_area.x(), &timeline.query);
        let unit = query.window.length() / f64::from(query.columns.max(1));
        let column = |at: f64| ((x.value(at) - query.window.start) / unit).max(0.0) as usize;
        let (first, last) = (column(from), column(to));
        let largest = |values: &[u64]| {
            let last = last.saturating_add(1).min(values.len());
            values.get(first.min(last)..last).into_iter().flatten().copied().max().unwrap_or(0)
        };
        let most = largest(&timeline.reserved).max(largest(&timeline.active));
        self.plot_area.y().pixel(most as f64)
    }

    /// Returns what is at a point in CSS pixels.
    pub fn at(&self, point: (f64, f64), ratio: f64) -> Option<Hover> {
        let timeline = self.timeline()?;
        let inside = point.0 >= self.plot_area.plot.x && point.0 < self.right();
        if let Some(i) = losses::at(&self.marks.losses, self.plot_area.x(), point.0).filter(|_| inside) {
            return self.marks.losses.get(i).map(|loss| Hover::loss(i, loss.position));
        }
        let transform = self.transform(timeline, ratio);
        // The centre of the device pixel that contains the point.
        let centre = |v: f64| (v * ratio).floor() + 0.5;
        if inside { hover::at(timeline, transform, (centre(point.0), centre(point.1))) } else { None }
    }
}

/// Returns the scale and offset from columns of the answer to pixels of the view. At rest a column is exactly a pixel.
fn along(asked: Window, columns: f64, view: Window, from: f64, pixels: f64) -> (f32, f32) {
    let unit = view.length() / pixels.max(1.0);
    let unit = if unit > 0.0 { unit } else { 1.0 };
    let mut scale = asked.length() / columns / unit;
    let mut offset = from + (asked.start - view.start) / unit;
    if (scale - 1.0).abs() * columns < 0.05 && (offset - offset.round()).abs() < 0.05 {
        scale = 1.0;
        offset = offset.round();
    }
    (scale as f32, offset as f32)
}

impl Picture for TimelinePicture {
    fn draw(&mut self, painter: &mut dyn Painter, surface: &mut dyn Surface, size: Size) -> bool {
        let Some(scene) = &self.scene else { return true };
        let Some(timeline) = scene.timeline() else {
            // The axis has just been switched: the answer is for the other one.
            let is_painted = painter.paint(scene.palette.background, NOTHING, Pixels::default());
            marks::below(surface, &scene.plot_area, scene.axis, &Marks::default(), &scene.palette);
            return is_painted;
        };
        let chosen = Chosen::of(timeline, scene.selection);
        let is_made = self.made_of.as_ref().is_some_and(|(answer, palette, of)| {
            Rc::ptr_eq(answer, &scene.answer) && Rc::ptr_eq(palette, &scene.palette) && *of == chosen
        });
        if !is_made {
            self.shapes = Rc::new(bands::shapes(timeline, &scene.palette, chosen));
            self.made_of = Some((Rc::clone(&scene.answer), Rc::clone(&scene.palette), chosen));
            self.revision += 1;
        }
        if painter.revision() != self.revision {
            painter.set_shapes(&self.shapes, self.revision);
        }
        let plot = scene.plot_area.plot;
        let device = |v: f64| (v * size.ratio).round() as i32;
        let clip =
            Pixels { x0: device(plot.x), y0: device(plot.y), x1: device(scene.right()), y1: device(plot.bottom()) };
        let transform = scene.transform(timeline, size.ratio);
        if !painter.paint(scene.palette.background, transform, clip) {
            return false;
        }
        marks::below(surface, &scene.plot_area, scene.axis, &scene.marks, &scene.palette);
        let over = Over { scene, timeline, transform, ratio: size.ratio };
        if let Some(thing) = self.hover {
            over.hovered(surface, thing);
        }
        over.selected(surface);
        let range = self.drag.range.or(scene.marks.range);
        if let Some(range) = range {
            range_band::draw(surface, scene.plot_area.x(), plot, range, &scene.palette);
        }
        let mut labels = Labels::default();
        if let Some(ghost) = &scene.ghost {
            ghost.draw(surface, &scene.plot_area, &mut labels, &scene.palette);
        }
        if let Some(runs) = &scene.runs {
            let scales = (scene.plot_area.x(), scene.plot_area.y());
            runs.draw(surface, scales, plot, (&mut labels, true), &scene.palette);
        }
        words(surface, scene, timeline, range, labels);
        marks::above(surface, &scene.plot_area, &scene.marks, &scene.palette);
        self.drag.draw_band(surface, &scene.palette);
        true
    }

    fn newest_us(&self) -> Option<i64> {
        self.scene.as_ref()?.timeline()?.newest_us
    }
}

impl Draggable for TimelinePicture {
    fn drag(&mut self) -> &mut DragPreview {
        &mut self.drag
    }
}

/// Draws the words over the shapes, the most important first: each takes a place that is still free.
#[inline(never)]
fn words(surface: &mut dyn Surface, scene: &Scene, timeline: &Timeline, range: Option<Window>, mut labels: Labels) {
    let Scene { plot_area, palette, marks, .. } = scene;
    let (x, plot) = (plot_area.x(), plot_area.plot);
    let button = range.and_then(|range| range_button::area(range, plot_area.window, plot));
    button.into_iter().for_each(|area| labels.keep_out(area));
    let cursor = marks.cursor.map_or(f64::NAN, |cursor| x.pixel(cursor));
    let request = scene.ghost.as_ref().and_then(|ghost| {
        let hides_nothing = |area: Area| {
            // The cursor's line would run through it.
            let is_crossed = area.x < cursor && cursor < area.right();
            !is_crossed && area.bottom() < scene.roof(timeline, area.x, area.right())
        };
        let Area { x, y, width, height } = ghost.label(surface, plot_area, (&mut labels, hides_nothing), palette)?;
        Some(Area { x: x - APART, y: y - APART, width: width + 2.0 * APART, height: height + 2.0 * APART })
    });
    request.into_iter().for_each(|area| labels.keep_out(area));
    if let Some(range) = range {
        range_band::label(surface, (x, plot), scene.axis, range, &mut labels, palette);
    }
    losses::label(surface, &marks.losses, (x, plot), &mut labels, palette);
    cut::label(surface, plot_area, marks.cut, &mut labels, palette);
    let outline = Outline::new(timeline, plot_area, scene.ghost.as_ref().and_then(Ghost::limit));
    let mut lines: Vec<f64> = marks.ooms.iter().map(|oom| x.pixel(oom.x)).collect();
    lines.push(cursor);
    let places = |mark: (f64, f64), size: (f64, f64)| {
        let mut places = outline.places(mark, size, &lines);
        places.retain(|area| !request.is_some_and(|request| is_led_through(*area, mark, request)));
        places
    };
    peak::draw(surface, plot_area, marks.peak, &largest(timeline), (&mut labels, places), palette);
}

/// Pixels between the label of a request and that of the peak.
const APART: f64 = 6.0;

/// Returns whether the line from a label to its mark runs through another label.
fn is_led_through(area: Area, mark: (f64, f64), other: Area) -> bool {
    let from = nearest(area, mark);
    (0..=64).any(|i| {
        let part = f64::from(i) / 64.0;
        other.contains((from.0 + (mark.0 - from.0) * part, from.1 + (mark.1 - from.1) * part))
    })
}

/// The number of classes that the peak is labelled with.
const LARGEST: usize = 3;

/// Returns the classes with the most memory at the peak of the run; none if a filter or a search term is set, since
/// their bytes aren't known then.
fn largest(timeline: &Timeline) -> Vec<&Class> {
    if !timeline.query.filter.is_empty() || timeline.query.highlight.is_some() {
        return Vec::new();
    }
    let mut largest: Vec<&Class> = timeline.classes.iter().filter(|class| class.peak_bytes > 0).collect();
    // What is left of the call sites names none.
    let is_rest = |class: &Class| class.stack.is_none() && timeline.query.color_by == ColorBy::Site;
    largest.sort_few_by_key(|class| (is_rest(class), std::cmp::Reverse(class.peak_bytes)));
    largest.truncate(LARGEST);
    largest
}

const NOTHING: Transform = Transform { x: (1.0, 0.0), y: (1.0, 0.0) };

/// Maximum number of outlined pieces: more would cost time and show nothing new.
const MOST_PIECES: usize = 6000;

/// Draws the overlay of an answer.
struct Over<'a> {
    scene: &'a Scene,
    timeline: &'a Timeline,
    transform: Transform,
    ratio: f64,
}

impl Over<'_> {
    fn hovered(&self, surface: &mut dyn Surface, thing: Thing) {
        let is_meant = |quad: &Quad| match (thing, self.timeline.detail) {
            (Thing::Class(id), Detail::Classes) | (Thing::Allocation(id), Detail::Allocations) => quad.id == id,
            _ => false,
        };
        let ink = self.scene.palette.text;
        for line in self.outlines(is_meant) {
            surface.polygon(&line, ink.at(0.22));
            if self.timeline.detail == Detail::Allocations {
                surface.contour(&line, 1.0, ink.at(0.9));
            }
        }
    }

    /// Outlines a selected allocation softly. Everything else is dimmed, so a line of one pixel is enough; a wider one
    /// would hide the steps of a long-lived block. During a search, when nothing is dimmed for it, the line is stronger.
    fn selected(&self, surface: &mut dyn Surface) {
        let (palette, selection) = (&self.scene.palette, self.scene.selection);
        if !matches!(selection, Selection::Allocation(_)) {
            return;
        }
        let Some(chosen) = Chosen::of(self.timeline, selection) else { return };
        let (width, opacity) = if self.timeline.query.highlight.is_some() { (2.0, 1.0) } else { (1.0, 0.6) };
        for line in self.outlines(|quad| chosen.has(quad.id, quad.paint)) {
            surface.contour(&line, width, palette.text.at(opacity));
        }
    }

    fn outlines(&self, is_meant: impl Fn(&Quad) -> bool) -> Vec<Vec<(f64, f64)>> {
        let plot = self.scene.plot_area.plot;
        let point = |x: f32, y: f32| {
            let x = f64::from((x * self.transform.x.0 + self.transform.x.1).round()) / self.ratio;
            let y = f64::from((y * self.transform.y.0 + self.transform.y.1).round()) / self.ratio;
            (x.within(plot.x, plot.right()), y.within(plot.y, plot.bottom()))
        };
        let is_in_view = |quad: &Quad| {
            let (left, right) = (point(quad.x.0, 0.0).0, point(quad.x.1, 0.0).0);
            right > plot.x && left < plot.right()
        };
        let mut pieces = pieces(self.timeline, |quad| is_meant(quad) && is_in_view(quad));
        pieces.truncate(MOST_PIECES);
        outlines(&pieces, point)
    }
}

#[cfg(test)]
mod tests {
    use query::Paint;

    use super::super::bands::tests::answer;
    use super::*;
    use crate::render::surface::log::SurfaceLog;

    fn scene(window: Window) -> Scene {
        let plot = Area { x: 10.0, y: 5.0, width: 4.0, height: 20.0 };
        let bytes = Window { start: 0.0, end: 10.0 };
        Scene {
            answer: Rc::new(Answer::Timeline(answer())),
            palette: Rc::new(Palette::dark()),
            plot_area: PlotArea::at_rest(plot, window, bytes),
            axis: Axis::Event,
            newest: None,
            marks: Marks::default(),
            selection: Selection::None,
            ghost: None,
            runs: None,
        }
    }

    #[test]
    fn at_rest_a_column_is_a_pixel_and_in_a_gesture_it_is_stretched() {
        let rest = scene(Window { start: 100.0, end: 104.0 });
        let timeline = rest.timeline().unwrap();
        assert_eq!(rest.transform(timeline, 1.0), Transform { x: (1.0, 10.0), y: (-2.0, 25.0) });
        let zoomed = scene(Window { start: 101.0, end: 103.0 });
        assert_eq!(zoomed.transform(timeline, 1.0).x, (2.0, 8.0));
        assert_eq!(zoomed.transform(timeline, 2.0), Transform { x: (4.0, 16.0), y: (-4.0, 50.0) });
    }

    #[test]
    fn points_pick_things() {
        let rest = scene(Window { start: 100.0, end: 104.0 });
        assert_eq!(rest.at((11.4, 17.0), 1.0).map(|hover| (hover.thing, hover.position)), Some((Thing::Class(1), 101)));
        assert_eq!(rest.at((9.0, 17.0), 1.0), None);
    }

    #[test]
    fn a_selected_allocation_is_outlined_softly_and_the_rest_is_dimmed() {
        let mut timeline = answer();
        timeline.detail = Detail::Allocations;
        let mut scene = scene(Window { start: 100.0, end: 104.0 });
        scene.selection = Selection::Allocation(1);
        let transform = scene.transform(&timeline, 1.0);
        let mut log = SurfaceLog::default();
        Over { scene: &scene, timeline: &timeline, transform, ratio: 1.0 }.selected(&mut log);
        assert_eq!(log.0, [format!("contour of 4 by 1 {}", scene.palette.text.css())]);
        timeline.query.highlight = Some("a".to_owned());
        let mut log = SurfaceLog::default();
        Over { scene: &scene, timeline: &timeline, transform, ratio: 1.0 }.selected(&mut log);
        assert_eq!(log.0, [format!("contour of 4 by 2 {}", scene.palette.text.css())], "among other matches");
        timeline.query.highlight = None;
        let chosen = Chosen::of(&timeline, scene.selection);
        let shapes = bands::shapes(&timeline, &scene.palette, chosen);
        let dim = |slot| scene.palette.fill(Paint::slot(slot).with(Paint::DIM)).pixel();
        assert!(shapes.iter().any(|shape| shape.color == dim(0)) && shapes.iter().all(|shape| shape.color != dim(1)));
    }

    #[test]
    fn the_peak_is_labelled_with_the_three_largest_classes() {
        let class =
            |label: &str, peak_bytes| Class { label: label.to_owned(), paint: Paint::slot(0), stack: None, peak_bytes };
        let classes = vec![class("a", 3), class("b", 9), class("c", 0), class("d", 5), class("e", 7)];
        let names = |timeline: &Timeline| largest(timeline).iter().map(|class| class.label.clone()).collect::<Vec<_>>();
        let mut timeline = Timeline { classes, ..answer() };
        assert_eq!(names(&timeline), ["b", "e", "d"]);
        timeline.query.filter.push("x".to_owned());
        assert_eq!(names(&timeline), [""; 0], "the peak is that of all");
    }

    #[test]
    fn a_line_from_a_label_to_its_mark_is_seen_to_run_through_another_label() {
        let (label, mark) = (Area { x: 0.0, y: 0.0, width: 50.0, height: 20.0 }, (300.0, 10.0));
        let other = |y: f64| Area { x: 100.0, y, width: 90.0, height: 30.0 };
        assert!(is_led_through(label, mark, other(0.0)));
        assert!(!is_led_through(label, mark, other(30.0)));
    }

    #[test]
    fn an_answer_for_the_other_axis_is_not_drawn() {
        let mut other = scene(Window { start: 100.0, end: 104.0 });
        other.axis = Axis::Time;
        assert!(other.timeline().is_none());
    }
}
