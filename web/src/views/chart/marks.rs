//! The marks over the timeline: axes, lanes of spans, the cursor, and around them the flags of failures. Labels over the
//! shapes are placed so that none overlaps another.

use std::rc::Rc;

use query::{Axis, LossSpan, Window};
use trace::order::Within;
use trace::units::Count;

use super::cut;
use super::flags::{self, Oom};
use super::gesture::PlotArea;
use super::lanes::{self, Lane, Rows, Span};
use super::peak::Peak;
use crate::hooks::PinFlag;
use crate::render::canvas::Size;
use crate::render::palette::Palette;
use crate::render::scale::Scale;
use crate::render::surface::{Align, Area, Font, Surface};
use crate::render::ticks;
use crate::views::{losses, pin_flags};

/// Room for the labels of bytes.
pub(super) const GUTTER: f64 = 68.0;
/// The strip above the shapes that moves the cursor and has the flags.
pub(super) const CURSOR_STRIP: f64 = 20.0;
/// Room for the labels of the x axis.
const FOOT: f64 = 24.0;
/// Room to the right of the shapes.
pub(in crate::views) const RIGHT: f64 = 12.0;

/// The marks. Cheap to clone, since every movement creates a new value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marks {
    /// The cursor's coordinate.
    pub cursor: Option<f64>,
    /// Out-of-memory events, from left to right.
    pub ooms: Rc<[Oom]>,
    /// Annotated spans.
    pub annotations: Rc<[Span]>,
    /// Their rows.
    pub rows: Rows,
    /// The steps of the job.
    pub steps: Steps,
    /// Lost events.
    pub losses: Rc<[LossSpan]>,
    /// The peak of requested memory.
    pub peak: Option<Peak>,
    /// The lifetime of the selected allocation.
    pub lifetime: Option<Window>,
    /// The selected range.
    pub range: Option<Window>,
    /// The end of a file that was cut off.
    pub cut: Option<f64>,
    /// The pins.
    pub pins: Rc<[PinFlag]>,
}

impl Marks {
    /// Returns an annotated span or, behind those, a step.
    pub fn span(&self, i: usize) -> Option<&Span> {
        self.annotations.iter().chain(self.steps.spans.iter()).nth(i)
    }

    /// Returns the number of rows above the shapes.
    pub fn row_count(&self) -> u32 {
        self.rows.count + u32::from(self.steps.has_lane)
    }

    fn annotation_lane(&self) -> Lane<'_> {
        Lane { name: lanes::ANNOTATED, spans: &self.annotations, rows: Some(&self.rows), below: 0 }
    }

    fn step_lane(&self) -> Lane<'_> {
        Lane { name: "steps", spans: &self.steps.spans, rows: None, below: self.rows.count }
    }

    /// Returns the index of the annotated span at a point.
    pub fn annotation_at(&self, x: Scale, plot: Area, point: (f64, f64)) -> Option<usize> {
        self.annotation_lane().at(x, plot, point)
    }

    /// Returns the index of the step at a point: in the lane of steps, or on the annotation that is the step.
    pub fn step_at(&self, x: Scale, plot: Area, point: (f64, f64)) -> Option<usize> {
        if self.steps.has_lane {
            return self.step_lane().at(x, plot, point);
        }
        let (span, _) = self.annotations.get(self.annotation_at(x, plot, point)?)?;
        self.steps.spans.iter().position(|(step, _)| step == span)
    }
}

/// The steps of the job, which have a lane of their own unless annotations are the steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    /// Their coordinates and names.
    pub spans: Rc<[Span]>,
    /// The positions at which each begins and ends.
    pub positions: Rc<[(u32, u32)]>,
    /// How they were found, and what a click does: a sentence for the tooltip.
    pub hint: Rc<str>,
    /// Whether they have a lane, above the annotations.
    pub has_lane: bool,
}

/// Returns the area of the shapes, on whole device pixels, below a number of rows of spans.
pub fn plot(size: Size, rows: u32) -> Area {
    let ratio = if size.ratio > 0.0 { size.ratio } else { 1.0 };
    let snap = |value: f64| (value * ratio).round() / ratio;
    let top = snap(CURSOR_STRIP + lanes::ROW * f64::from(rows));
    let left = snap(GUTTER);
    Area {
        x: left,
        y: top,
        width: snap((size.width - left - RIGHT).max(0.0)),
        height: snap((size.height - top - FOOT).max(0.0)),
    }
}

/// Draws everything below the hovered and selected outlines except the labels over the shapes: axes, losses, lanes,
/// flags.
pub fn below(surface: &mut dyn Surface, plot_area: &PlotArea, axis: Axis, marks: &Marks, palette: &Palette) {
    height_axis(surface, plot_area, palette);
    losses::draw(surface, &marks.losses, (plot_area.x(), plot_area.y()), plot_area.plot, palette);
    cut::draw(surface, plot_area, marks.cut, palette);
    along(surface, plot_area, axis, marks, palette);
}

/// Draws the marks that all pictures over time have: the x axis, lanes, flags.
pub fn along(surface: &mut dyn Surface, plot_area: &PlotArea, axis: Axis, marks: &Marks, palette: &Palette) {
    let cursor = marks.cursor.filter(|cursor| is_across(plot_area.x().pixel(*cursor), plot_area.plot));
    x_axis(surface, plot_area, axis, cursor, palette);
    marks.annotation_lane().draw(surface, plot_area, palette);
    if marks.steps.has_lane {
        marks.step_lane().draw(surface, plot_area, palette);
    }
    let handle = marks.cursor.map(|cursor| handle(plot_area.x().pixel(cursor)));
    flags::draw(surface, plot_area, &marks.ooms, handle, palette);
}

/// Draws everything on top: the lifetime of the selected allocation, and the cursor.
pub fn above(surface: &mut dyn Surface, plot_area: &PlotArea, marks: &Marks, palette: &Palette) {
    let (x, plot) = (plot_area.x(), plot_area.plot);
    if let Some(life) = marks.lifetime {
        let from = x.pixel(life.start).max(plot.x);
        let to = x.pixel(life.end).min(plot.right()).max(from + 2.0);
        if from < plot.right() && to > plot.x {
            let bar = Area { x: from, y: plot.bottom() - 3.0, width: to - from, height: 3.0 };
            surface.fill(bar, palette.background.into());
            surface.fill(Area { y: bar.y + 1.0, height: 2.0, ..bar }, palette.accent.into());
        }
    }
    pin_flags::draw(surface, x, plot, &marks.pins, true, palette);
    if let Some(at) = marks.cursor.map(|cursor| x.pixel(cursor)).filter(|at| is_across(*at, plot)) {
        let top = handle(at).y;
        surface.vertical(at, top + 2.0, plot.bottom() + 4.0, palette.text.into());
        surface.polygon(
            &[(at - 4.5, top), (at + 5.5, top), (at + 5.5, top + 5.0), (at + 0.5, top + 10.0), (at - 4.5, top + 5.0)],
            palette.text.into(),
        );
    }
}

/// Returns whether a pixel is over the shapes.
pub(in crate::views) fn is_across(at: f64, plot: Area) -> bool {
    at >= plot.x - 0.5 && at <= plot.right() + 0.5
}

/// Draws the axis of bytes.
pub(in crate::views) fn height_axis(surface: &mut dyn Surface, plot_area: &PlotArea, palette: &Palette) {
    let (y, plot) = (plot_area.y(), plot_area.plot);
    for tick in ticks::bytes(plot_area.bytes, plot.height / if plot.height < 200.0 { 30.0 } else { 44.0 }) {
        let at = y.pixel(tick.at);
        surface.horizontal(at, plot.x, plot.right(), false, palette.text.at(0.09));
        // Stays clear of the names of the lanes above and of the x axis below.
        let middle = at.within(plot.y + 5.0, plot.bottom());
        surface.text(&tick.label, (plot.x - 8.0, middle), Align::End, Font::Label, palette.text_dim.into());
    }
}

/// Draws the x axis, with the moment of the cursor on a plate. Numbers that the plate would touch are left out.
fn x_axis(surface: &mut dyn Surface, plot_area: &PlotArea, axis: Axis, cursor: Option<f64>, palette: &Palette) {
    let (x, plot) = (plot_area.x(), plot_area.plot);
    surface.horizontal(plot.bottom(), plot.x, plot.right(), false, palette.line.into());
    let name = match axis {
        Axis::Time => "time",
        Axis::Event => "event",
    };
    let middle = plot.bottom() + 13.0;
    surface.text(name, (plot.x - 8.0, middle), Align::End, Font::Label, palette.text_dim.into());
    let every = |room: f64| match axis {
        Axis::Time => ticks::time(plot_area.window, room),
        Axis::Event => ticks::events(plot_area.window, room),
    };
    // One number alone tells no scale.
    let wide = plot.width / 96.0;
    let room = if every(wide).len() > 1 { wide } else { 2.0 * wide };
    let plate = cursor.map(|cursor| {
        let text = match axis {
            Axis::Time => ticks::moment(plot_area.window, room, x.unit(), cursor),
            // Casts of floating point saturate.
            Axis::Event => Count(cursor.round() as u64).to_string(),
        };
        let half = surface.text_width(&text, Font::Label) / 2.0 + 5.0;
        let right = plot.right() + RIGHT - 1.0 - half;
        let at = x.pixel(cursor).within(plot.x + half, right.max(plot.x + half));
        let area = Area { x: (at - half).round(), y: plot.bottom() + 4.0, width: (2.0 * half).round(), height: 17.0 };
        surface.fill(area, palette.text.into());
        surface.text(&text, (at, middle), Align::Middle, Font::Label, palette.background.into());
        (area.x - 4.0, area.right() + 4.0)
    });
    let mut end = plot.x;
    for tick in every(room) {
        let at = x.pixel(tick.at);
        surface.vertical(at, plot.bottom(), plot.bottom() + 4.0, palette.text_dim.at(0.6));
        // The outermost labels stay inside the plot.
        let width = surface.text_width(&tick.label, Font::Label);
        let label =
            at.within(plot.x + width / 2.0, (plot.right() + RIGHT - 2.0 - width / 2.0).max(plot.x + width / 2.0));
        let is_under = plate.is_some_and(|(from, to)| label + width / 2.0 > from && label - width / 2.0 < to);
        if label - width / 2.0 < end || is_under {
            continue;
        }
        end = label + width / 2.0 + 6.0;
        surface.text(&tick.label, (label, middle), Align::Middle, Font::Label, palette.text_dim.into());
    }
}

/// Returns where the cursor's handle is: in the strip above the lanes, where it can be dragged.
pub(super) fn handle(at: f64) -> Area {
    Area { x: at - 4.5, y: CURSOR_STRIP - 11.0, width: 10.0, height: 10.0 }
}

#[cfg(test)]
pub(super) mod tests {
    use query::{Class, Paint};

    use super::*;
    use crate::render::labels::Labels;
    use crate::render::surface::log::SurfaceLog;
    use crate::views::chart::peak;
    use crate::views::chart::peak::tests::{anywhere, nowhere};

    /// A plot of 1,000 events and 4 GiB.
    pub fn plot_area() -> PlotArea {
        let window = Window { start: 0.0, end: 1000.0 };
        let bytes = Window { start: 0.0, end: 4.0 * 1_073_741_824.0 };
        PlotArea::at_rest(plot(Size { width: 580.0, height: 244.0, ratio: 1.0 }, 0), window, bytes)
    }

    fn drawn(marks: &Marks) -> Vec<String> {
        let mut log = SurfaceLog::default();
        let palette = Palette::dark();
        below(&mut log, &plot_area(), Axis::Event, marks, &palette);
        peak::draw(&mut log, &plot_area(), marks.peak, &[], (&mut Labels::default(), nowhere), &palette);
        above(&mut log, &plot_area(), marks, &palette);
        log.0
    }

    #[test]
    fn axes_have_units() {
        let log = drawn(&Marks::default());
        let texts: Vec<&str> = log.iter().filter_map(|line| line.strip_prefix("text ")).collect();
        assert_eq!(
            texts,
            [
                "\"0\" at 60,220 End",
                "\"1 GiB\" at 60,170 End",
                "\"2 GiB\" at 60,120 End",
                "\"3 GiB\" at 60,70 End",
                "\"4 GiB\" at 60,25 End",
                "\"event\" at 60,233 End",
                "\"0\" at 71,233 Middle",
                "\"200\" at 168,233 Middle",
                "\"400\" at 268,233 Middle",
                "\"600\" at 368,233 Middle",
                "\"800\" at 468,233 Middle",
                "\"1,000\" at 563,233 Middle",
            ]
        );
    }

    #[test]
    fn the_peaks_label_stands_over_flags_and_the_cursor_over_all() {
        let gib = 1_073_741_824;
        let oom = |x: f64| Oom { x, position: x as u32, bytes: 2 * gib };
        let log = drawn(&Marks {
            cursor: Some(400.0),
            ooms: [oom(300.0), oom(310.0), oom(700.0), oom(5000.0)].into(),
            peak: Some(Peak { x: 500.0, bytes: 3 * gib, is_partial: false }),
            lifetime: Some(Window { start: 100.0, end: 200.0 }),
            ..Marks::default()
        });
        let red = Palette::dark().oom.css();
        let order: Vec<usize> = [
            &format!("fill 217,4 2x216 {red}"),
            "2 × out of memory",
            "peak 3.00 GiB",
            "fill 118,218 50x2",
            "vertical 268 from 11 to 224",
        ]
        .iter()
        .map(|part| log.iter().position(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {log:#?}")))
        .collect();
        assert!(order.is_sorted(), "{order:?}");
        // The cursor's moment, in the place of the tick of the same number.
        assert_eq!(log.iter().filter(|line| line.starts_with("text \"400\"")).count(), 1);
        assert_eq!(log.iter().filter(|line| line.contains("out of memory")).count(), 2);
        assert_eq!(log.iter().filter(|line| line.starts_with("fill") && line.ends_with(&red)).count(), 3);
    }

    #[test]
    fn steps_have_a_lane_above_the_annotations() {
        let span = |start, end, name: &str| (Window { start, end }, name.to_owned());
        let spans: Rc<[_]> = [span(0.0, 400.0, "step 1"), span(400.0, 800.0, "step 2")].into();
        let marks = |has_lane| Marks {
            annotations: if has_lane { [span(0.0, 900.0, "epoch")].into() } else { spans.clone() },
            rows: Rows::unknown(1),
            steps: Steps { spans: spans.clone(), positions: [(0, 400), (400, 800)].into(), hint: "".into(), has_lane },
            ..Marks::default()
        };
        assert_eq!((marks(true).row_count(), marks(false).row_count()), (2, 1));
        let area = plot(Size { width: 580.0, height: 244.0, ratio: 1.0 }, 2);
        let at = |has_lane, y| marks(has_lane).step_at(plot_area().x(), area, (area.x + 250.0, y));
        assert_eq!((at(true, area.y - 20.0), at(true, area.y - 5.0)), (Some(1), None));
        // Annotations that are steps are drawn once, and are hit in their own lane.
        assert_eq!((at(false, area.y - 20.0), at(false, area.y - 5.0)), (None, Some(1)));
        let texts = |has_lane| drawn(&marks(has_lane)).iter().filter(|line| line.contains("\"step ")).count();
        assert_eq!((texts(true), texts(false)), (2, 2));
    }

    #[test]
    fn no_words_overprint_others() {
        let mut seed = 3_u32;
        let mut random = |most: f64| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (f64::from(seed >> 8) / f64::from(1 << 24) * most).floor()
        };
        let class =
            |label: &str| Class { label: label.to_owned(), paint: Paint::slot(1), stack: None, peak_bytes: 1 << 29 };
        let classes =
            ["forward  models/gpt.py:24", "a", "a very long name of a function  in/a/deep/folder.py:1234"].map(class);
        let largest: Vec<&Class> = classes.iter().collect();
        for round in 0..300 {
            let far = [1_000.0, 1_234_567.0, 40.0][round % 3];
            let start = random(far);
            let window = Window { start, end: start + random(far) + 10.0 };
            let mut within = || start + random(window.length() * 1.2) - window.length() * 0.1;
            let span = |from: f64, to: f64| Window { start: from.min(to), end: from.max(to) };
            let mut spans: Vec<Span> =
                (0..round % 12).map(|i| (span(within(), within()), format!("step {i}"))).collect();
            spans.sort_by(|a, b| a.0.start.total_cmp(&b.0.start).then(b.0.end.total_cmp(&a.0.end)));
            let mut losses: Vec<LossSpan> = (0..round % 4)
                .map(|i| LossSpan {
                    span: span(within(), within()),
                    position: 0,
                    events: i as u64 * 1_234_567,
                    kinds: String::new(),
                    samples: Vec::new(),
                })
                .collect();
            losses.sort_by(|a, b| a.span.start.total_cmp(&b.span.start));
            let mut ooms: Vec<Oom> =
                (0..round % 5).map(|_| Oom { x: within(), position: 0, bytes: 961 << 20 }).collect();
            ooms.sort_by(|a, b| a.x.total_cmp(&b.x));
            let (rows, peak_at, range) = (Rows::of(&spans), within(), span(within(), within()));
            let marks = Marks {
                cursor: Some(within()),
                ooms: ooms.into(),
                annotations: spans.into(),
                rows,
                losses: losses.into(),
                ..Marks::default()
            };
            let area = plot(
                Size {
                    width: 380.0 + (round % 7) as f64 * 100.0,
                    height: 144.0 + (round % 5) as f64 * 90.0,
                    ratio: 1.0,
                },
                marks.row_count(),
            );
            let high = [1e3, 5e9, 3e11][round % 3];
            let plot_area = PlotArea::at_rest(area, window, Window { start: 0.0, end: high });
            let (mut log, palette, mut labels) = (SurfaceLog::default(), Palette::dark(), Labels::default());
            below(&mut log, &plot_area, [Axis::Event, Axis::Time][round % 2], &marks, &palette);
            crate::views::range_band::label(&mut log, (plot_area.x(), area), Axis::Event, range, &mut labels, &palette);
            losses::label(&mut log, &marks.losses, (plot_area.x(), area), &mut labels, &palette);
            peak::draw(
                &mut log,
                &plot_area,
                Some(Peak { x: peak_at, bytes: (high * 0.7) as u64, is_partial: round % 2 == 0 }),
                &largest,
                (&mut labels, anywhere),
                &palette,
            );
            let found = log.words();
            for (i, (one, text)) in found.iter().enumerate() {
                for (other, before) in &found[..i] {
                    assert!(!one.overlaps(*other), "{round}: {text:?} over {before:?}: {one:?} {other:?}");
                }
            }
        }
    }
}
