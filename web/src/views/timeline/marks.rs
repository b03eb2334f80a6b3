//! The marks over the timeline: axes, out-of-memory flags, lanes of spans, the peak, the cursor. Labels over the shapes
//! are placed so that none overlaps another.

use std::rc::Rc;

use shared::order::Within;
use shared::query::{Axis, Class, LossSpan, Window};
use shared::units::Bytes;

use super::cut;
use super::gesture::PlotArea;
use super::lanes::{self, Lane, Rows, Span};
use super::outline::{distance, nearest};
use crate::hooks::PinFlag;
use crate::render::canvas::Size;
use crate::render::labels::Labels;
use crate::render::palette::Palette;
use crate::render::scale::Scale;
use crate::render::surface::{Align, Area, Font, Surface, fit_site};
use crate::render::ticks;
use crate::views::{losses, pin_flags};

/// Room for the labels of bytes.
const GUTTER: f64 = 68.0;
/// The strip above the shapes that moves the cursor and has the flags.
const CURSOR_STRIP: f64 = 20.0;
/// Room for the labels of the x axis.
const FOOT: f64 = 24.0;
const RIGHT: f64 = 12.0;

/// An out-of-memory event.
#[derive(Clone, Debug, PartialEq)]
pub struct Oom {
    /// Its coordinate.
    pub x: f64,
    /// The position just after it.
    pub position: u32,
    /// The bytes of the failed request.
    pub bytes: u64,
}

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
    /// Coordinate of the largest requested total, and the bytes.
    pub peak: Option<(f64, u64)>,
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
        Lane { name: "annotated", spans: &self.annotations, rows: Some(&self.rows), below: 0 }
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
    x_axis(surface, plot_area, axis, palette);
    marks.annotation_lane().draw(surface, plot_area, palette);
    if marks.steps.has_lane {
        marks.step_lane().draw(surface, plot_area, palette);
    }
    flags(surface, plot_area, marks, palette);
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
        surface.vertical(at, top + 2.0, plot.bottom() + 4.0, palette.accent.into());
        surface.polygon(
            &[(at - 4.5, top), (at + 5.5, top), (at + 5.5, top + 5.0), (at + 0.5, top + 10.0), (at - 4.5, top + 5.0)],
            palette.accent.into(),
        );
    }
}

fn is_across(at: f64, plot: Area) -> bool {
    at >= plot.x - 0.5 && at <= plot.right() + 0.5
}

fn height_axis(surface: &mut dyn Surface, plot_area: &PlotArea, palette: &Palette) {
    let (y, plot) = (plot_area.y(), plot_area.plot);
    for tick in ticks::bytes(plot_area.bytes, plot.height / if plot.height < 200.0 { 30.0 } else { 44.0 }) {
        let at = y.pixel(tick.at);
        surface.horizontal(at, plot.x, plot.right(), false, palette.text.at(0.09));
        // Stays clear of the names of the lanes above and of the x axis below.
        let middle = at.within(plot.y + 5.0, plot.bottom());
        surface.text(&tick.label, (plot.x - 8.0, middle), Align::End, Font::Label, palette.text_dim.into());
    }
}

fn x_axis(surface: &mut dyn Surface, plot_area: &PlotArea, axis: Axis, palette: &Palette) {
    let (x, plot) = (plot_area.x(), plot_area.plot);
    surface.horizontal(plot.bottom(), plot.x, plot.right(), false, palette.line.into());
    let name = match axis {
        Axis::Time => "time",
        Axis::Event => "event",
    };
    let middle = plot.bottom() + 13.0;
    surface.text(name, (plot.x - 8.0, middle), Align::End, Font::Label, palette.text_dim.into());
    let every = |width: f64| match axis {
        Axis::Time => ticks::time(plot_area.window, plot.width / width),
        Axis::Event => ticks::events(plot_area.window, plot.width / width),
    };
    // One number alone tells no scale.
    let marks = Some(every(96.0)).filter(|marks| marks.len() > 1).unwrap_or_else(|| every(48.0));
    let mut end = plot.x;
    for tick in marks {
        let at = x.pixel(tick.at);
        surface.vertical(at, plot.bottom(), plot.bottom() + 4.0, palette.text_dim.at(0.6));
        // The outermost labels stay inside the plot.
        let width = surface.text_width(&tick.label, Font::Label);
        let label =
            at.within(plot.x + width / 2.0, (plot.right() + RIGHT - 2.0 - width / 2.0).max(plot.x + width / 2.0));
        if label - width / 2.0 < end {
            continue;
        }
        end = label + width / 2.0 + 6.0;
        surface.text(&tick.label, (label, middle), Align::Middle, Font::Label, palette.text_dim.into());
    }
}

/// The peak's label in pixels: margin, height of a line, maximum width of a name, size of a colour's square.
const PEAK: (f64, f64, f64, f64) = (5.0, 15.0, 190.0, 8.0);

/// The least width of a plot whose peak is labelled with classes: on a narrower one they would hide half of it.
const CLASSES_ROOM: f64 = 480.0;
/// From this distance in pixels on, a line leads from the label of the peak to its mark.
const FAR: f64 = 40.0;

/// Draws the peak's mark and its label: the bytes, and below them the largest classes at the peak if there is a place where
/// they hide nothing. `places` returns such places for a label of a width and a height, the best first.
pub fn peak(
    surface: &mut dyn Surface,
    plot_area: &PlotArea,
    peak: Option<(f64, u64)>,
    largest: &[&Class],
    (labels, places): (&mut Labels, impl Fn((f64, f64), (f64, f64)) -> Vec<Area>),
    palette: &Palette,
) {
    let plot = plot_area.plot;
    let Some((at, bytes)) = peak else { return };
    let (x, y) = (plot_area.x().pixel(at), plot_area.y().pixel(bytes as f64));
    if !is_across(x, plot) || y < plot.y - 0.5 || y > plot.bottom() {
        return;
    }
    surface.polygon(&[(x - 3.5, y - 6.0), (x + 4.5, y - 6.0), (x + 0.5, y - 1.0)], palette.text.into());
    let title = format!("peak {}", Bytes(bytes));
    let title_width = surface.text_width(&title, Font::Strong);
    let (margin, line, name_width, square) = PEAK;
    let rows: Vec<(&Class, String, String, f64)> = largest
        .iter()
        .filter_map(|class| {
            let name = fit_site(surface, &class.label, Font::Label, name_width)?;
            let (size, width) = (Bytes(class.peak_bytes).to_string(), surface.text_width(&name, Font::Label));
            let width = square + 6.0 + width + 12.0 + surface.text_width(&size, Font::Label);
            Some((*class, name, size, width))
        })
        .collect();
    let mut place = |rows: &[(&Class, String, String, f64)]| {
        let width = rows.iter().map(|row| row.3).fold(title_width, f64::max) + 2.0 * margin;
        let height = (rows.len() + 1) as f64 * line + if rows.is_empty() { 1.0 } else { 4.0 };
        let mut all = places((x, y), (width, height));
        if rows.is_empty() {
            // Beside the mark, so that the cursor's line (initially at the peak) doesn't run through it.
            let (right, left) = (x + 8.0, x - 7.0 - width);
            let at = |left: f64, top: f64| Area { x: left, y: top.max(plot.y + 1.0), width, height };
            let top = y - 14.0;
            all.extend([at(right, top), at(left, top), at(right, y - height), at(left, y - height)]);
        }
        labels.place(plot, all)
    };
    let all = Some(&rows[..]).filter(|rows| plot.width >= CLASSES_ROOM && !rows.is_empty());
    let found = all.and_then(|rows| Some((place(rows)?, rows))).or_else(|| Some((place(&[])?, &rows[..0])));
    let Some((area, rows)) = found else { return };
    if distance(area, (x, y)) > FAR {
        // It names the mark all the same.
        surface.contour(&[nearest(area, (x, y)), (x + 0.5, y - 6.0)], 1.0, palette.text_dim.at(0.6));
    }
    surface.fill(area, palette.background.at(0.88));
    if !rows.is_empty() {
        surface.outline(area, 1.0, palette.line.into());
    }
    let mut middle = area.y + line / 2.0 + if rows.is_empty() { 0.5 } else { 2.0 };
    surface.text(&title, (area.x + margin, middle), Align::Start, Font::Strong, palette.text.into());
    for (class, name, size, _) in rows {
        middle += line;
        let chip = Area { x: area.x + margin, y: middle - square / 2.0, width: square, height: square };
        surface.fill(chip, palette.fill(class.paint.base()).into());
        let left = chip.right() + 6.0;
        surface.text(name, (left, middle), Align::Start, Font::Label, palette.text.into());
        surface.text(size, (area.right() - margin, middle), Align::End, Font::Label, palette.text_dim.into());
    }
}

/// Returns where the cursor's handle is: in the strip above the lanes, where it can be dragged.
fn handle(at: f64) -> Area {
    Area { x: at - 4.5, y: CURSOR_STRIP - 11.0, width: 10.0, height: 10.0 }
}

fn flags(surface: &mut dyn Surface, plot_area: &PlotArea, marks: &Marks, palette: &Palette) {
    let ooms = &marks.ooms;
    let (x, plot) = (plot_area.x(), plot_area.plot);
    // One label with a count for flags that are close together.
    let mut groups: Vec<(f64, f64, usize, u64)> = Vec::new();
    let seen = ooms.iter().filter(|oom| is_across(x.pixel(oom.x), plot)).count();
    // Many lines would hide what is behind them.
    let height = if seen > MANY_FLAGS { plot.y } else { plot.bottom() } - 4.0;
    let mut labels = Labels::default();
    for oom in ooms.iter() {
        let at = x.pixel(oom.x);
        if !is_across(at, plot) {
            continue;
        }
        // Two pixels wide, so that a flag under the cursor remains visible.
        surface.fill(Area { x: at - 1.0, y: 4.0, width: 2.0, height }, palette.oom.at(0.85));
        let tip = if flies_left(at, plot) { at - 9.0 } else { at + 9.0 };
        surface.polygon(&[(at, 3.0), (tip, 6.5), (at, 10.0)], palette.oom.into());
        labels.keep_out(Area { x: at.min(tip) - 1.0, y: 0.0, width: 11.0, height: 14.0 });
        match groups.last_mut() {
            Some((first, last, count, bytes)) if at - *first < LABEL_ROOM => {
                *last = at;
                *count += 1;
                *bytes = (*bytes).max(oom.bytes);
            }
            _ => groups.push((at, at, 1, oom.bytes)),
        }
    }
    // The handle of the cursor hides nothing, nor is it hidden.
    let handle = marks.cursor.map(|cursor| handle(x.pixel(cursor)));
    handle.into_iter().for_each(|area| labels.keep_out(area));
    let strip = Area { x: 0.0, y: 0.0, height: CURSOR_STRIP, width: plot.right() + RIGHT };
    for (first, last, count, bytes) in groups {
        let size = Bytes(bytes).to_string();
        let text = match count {
            1 => format!("out of memory, {size}"),
            n => format!("{n} × out of memory, {size}"),
        };
        let width = surface.text_width(&text, Font::Strong);
        let place = |left: f64| Area { x: left, y: 1.0, width, height: 12.0 };
        let (right, left) =
            (place(last + 12.0), place(first - if flies_left(first, plot) { 13.0 } else { 5.0 } - width));
        // Beside the handle, if that is where the label would be.
        let beside = handle.filter(|handle| handle.overlaps(right) || handle.overlaps(left));
        let beside = beside.map(|handle| [place(handle.right() + 3.0), place(handle.x - 3.0 - width)]);
        let places = [right, left].into_iter().chain(beside.into_iter().flatten());
        if let Some(area) = labels.place(strip, places) {
            surface.text(&text, (area.x, 7.0), Align::Start, Font::Strong, palette.oom.into());
        }
    }
}

/// Returns whether a flag points to the left, as there is no room to its right.
fn flies_left(at: f64, plot: Area) -> bool {
    at + 9.0 > plot.right()
}

/// From more flags than this in view, they have short lines.
const MANY_FLAGS: usize = 16;
/// Flags closer than this share a label.
const LABEL_ROOM: f64 = 24.0;

/// Returns the out-of-memory flag at a point.
pub fn flag_at(ooms: &[Oom], x: Scale, plot: Area, point: (f64, f64)) -> Option<&Oom> {
    if point.1 > plot.y {
        return None;
    }
    let hit = |oom: &&Oom| {
        let at = x.pixel(oom.x);
        let away = if flies_left(at, plot) { at - point.0 } else { point.0 - at };
        (-3.0..=12.0).contains(&away)
    };
    ooms.iter().rev().find(hit)
}

#[cfg(test)]
mod tests {
    use shared::query::Paint;

    use super::*;
    use crate::render::surface::log::SurfaceLog;

    fn plot_area() -> PlotArea {
        let window = Window { start: 0.0, end: 1000.0 };
        let bytes = Window { start: 0.0, end: 4.0 * 1_073_741_824.0 };
        PlotArea::at_rest(plot(Size { width: 580.0, height: 244.0, ratio: 1.0 }, 0), window, bytes)
    }

    /// Everything is covered.
    fn nowhere(_: (f64, f64), _: (f64, f64)) -> Vec<Area> {
        Vec::new()
    }

    /// Nothing is covered above and below the mark.
    fn anywhere((x, y): (f64, f64), (width, height): (f64, f64)) -> Vec<Area> {
        [y - height, y].map(|top| Area { x: x + 8.0, y: top, width, height }).to_vec()
    }

    fn drawn(marks: &Marks) -> Vec<String> {
        let mut log = SurfaceLog::default();
        let palette = Palette::dark();
        below(&mut log, &plot_area(), Axis::Event, marks, &palette);
        peak(&mut log, &plot_area(), marks.peak, &[], (&mut Labels::default(), nowhere), &palette);
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
    fn the_peaks_label_stays_out_of_what_is_taken() {
        let label = |taken: Option<Area>| {
            let (mut log, mut labels) = (SurfaceLog::default(), Labels::default());
            taken.into_iter().for_each(|area| labels.keep_out(area));
            peak(&mut log, &plot_area(), Some((500.0, 3 << 30)), &[], (&mut labels, nowhere), &Palette::light());
            log.0.into_iter().find(|line| line.contains("peak 3.00 GiB"))
        };
        let (free, plot) = (label(None), plot_area().plot);
        assert!(free.is_some());
        let elsewhere = Area { x: plot.x, y: plot.bottom() + 50.0, width: 10.0, height: 10.0 };
        assert_eq!(label(Some(elsewhere)), free);
        let middle = plot.x + plot.width / 2.0;
        let moved = label(Some(Area { x: middle, width: plot.width / 2.0, ..plot }));
        assert!(moved.is_some() && moved != free, "{moved:?}");
        assert_eq!(label(Some(plot)), None);
    }

    type Places = fn((f64, f64), (f64, f64)) -> Vec<Area>;

    #[test]
    fn the_peaks_label_names_classes_only_where_they_hide_nothing() {
        let class =
            |label: &str| Class { label: label.to_owned(), paint: Paint::slot(1), stack: None, peak_bytes: 1 << 29 };
        let classes = ["forward", "backward"].map(class);
        let largest: Vec<&Class> = classes.iter().collect();
        let area = |width: f64| {
            let window = Window { start: 0.0, end: 1000.0 };
            let size = Size { width: width + GUTTER + RIGHT, height: 244.0, ratio: 1.0 };
            PlotArea::at_rest(plot(size, 0), window, Window { start: 0.0, end: (4_u64 << 30) as f64 })
        };
        let texts = |area: &PlotArea, places: Places| {
            let (mut log, mut labels) = (SurfaceLog::default(), Labels::default());
            peak(&mut log, area, Some((100.0, 3 << 30)), &largest, (&mut labels, places), &Palette::light());
            words(&log.0).into_iter().map(|(_, text)| text).collect::<Vec<_>>()
        };
        assert_eq!(texts(&area(600.0), anywhere).len(), 5);
        assert_eq!(texts(&area(600.0), nowhere), ["peak 3.00 GiB"]);
        assert_eq!(texts(&area(300.0), anywhere), ["peak 3.00 GiB"], "a phone has no room for more");
    }

    #[test]
    fn the_peaks_label_stands_over_flags_and_the_cursor_over_all() {
        let gib = 1_073_741_824;
        let oom = |x: f64| Oom { x, position: x as u32, bytes: 2 * gib };
        let log = drawn(&Marks {
            cursor: Some(400.0),
            ooms: [oom(300.0), oom(310.0), oom(700.0), oom(5000.0)].into(),
            peak: Some((500.0, 3 * gib)),
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
        assert_eq!(log.iter().filter(|line| line.contains("out of memory")).count(), 2);
        assert_eq!(log.iter().filter(|line| line.starts_with("fill") && line.ends_with(&red)).count(), 3);
    }

    #[test]
    fn labels_of_flags_never_overlap_and_many_flags_are_short() {
        let palette = Palette::dark();
        let (mut log, plot) = (SurfaceLog::default(), plot_area().plot);
        let oom = |x: f64| Oom { x, position: x as u32, bytes: 2 << 30 };
        // The first label goes to the right; there is no room left for that of a flag at the edge.
        let x = plot_area().window.end;
        let of = |ooms: &[Oom], cursor| Marks { ooms: ooms.into(), cursor, ..Marks::default() };
        flags(&mut log, &plot_area(), &of(&[oom(x * 0.6), oom(x)], None), &palette);
        assert_eq!(log.0.iter().filter(|line| line.contains("out of memory")).count(), 1, "{:#?}", log.0);
        let mut log = SurfaceLog::default();
        let many: Vec<_> = (0..20).map(|i| oom(x * f64::from(i) / 20.0)).collect();
        flags(&mut log, &plot_area(), &of(&many, None), &palette);
        let lines: Vec<_> = log.0.iter().filter(|line| line.starts_with("fill")).collect();
        let height = format!("x{} ", plot.y - 4.0);
        assert!(lines.len() == 20 && lines.iter().all(|line| line.contains(&height)), "{lines:#?}");
    }

    #[test]
    fn a_flags_label_stands_beside_the_handle_of_the_cursor() {
        let area = plot_area();
        let label = |cursor: f64| {
            let mut log = SurfaceLog::default();
            let ooms: Rc<[Oom]> = [Oom { x: 990.0, position: 990, bytes: 2 << 30 }].into();
            flags(&mut log, &area, &Marks { ooms, cursor: Some(cursor), ..Marks::default() }, &Palette::dark());
            words(&log.0).into_iter().find(|(_, text)| text.starts_with("out of memory")).map(|(area, _)| area)
        };
        let free = label(100.0).unwrap();
        for cursor in 600..=1000 {
            let handle = handle(area.x().pixel(f64::from(cursor)));
            let found = label(f64::from(cursor)).unwrap_or_else(|| panic!("{cursor}"));
            assert!(!found.overlaps(handle), "{cursor}: {found:?} {handle:?}");
        }
        assert_eq!(label(990.0), Some(free), "at the failure");
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

    /// Returns the rectangles of all words of a log, whose letters are six pixels wide.
    fn words(log: &[String]) -> Vec<(Area, String)> {
        let number = |text: &str| text.parse::<f64>().unwrap();
        let found = log.iter().filter_map(|line| {
            let (text, rest) = line.strip_prefix("text \"")?.rsplit_once("\" at ")?;
            let (point, align) = rest.split_once(' ')?;
            let (x, y) = point.split_once(',')?;
            let width = text.chars().count() as f64 * 6.0;
            let x = match align {
                "Start" => number(x),
                "Middle" => number(x) - width / 2.0,
                _ => number(x) - width,
            };
            Some((Area { x, y: number(y) - 5.0, width, height: 10.0 }, text.to_owned()))
        });
        found.collect()
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
            peak(
                &mut log,
                &plot_area,
                Some((peak_at, (high * 0.7) as u64)),
                &largest,
                (&mut labels, anywhere),
                &palette,
            );
            let found = words(&log.0);
            for (i, (one, text)) in found.iter().enumerate() {
                for (other, before) in &found[..i] {
                    assert!(!one.overlaps(*other), "{round}: {text:?} over {before:?}: {one:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn flags_can_be_hit() {
        let ooms = [Oom { x: 100.0, position: 7, bytes: 1 }];
        let plot_area = plot_area();
        let hit = |x, y| flag_at(&ooms, plot_area.x(), plot_area.plot, (x, y)).map(|oom| oom.position);
        assert_eq!(hit(120.0, 6.0), Some(7));
        assert_eq!(hit(120.0, 60.0), None);
        let last = [Oom { x: 1000.0, position: 9, bytes: 1 }];
        assert!(flag_at(&last, plot_area.x(), plot_area.plot, (plot_area.plot.right() - 8.0, 6.0)).is_some());
        assert_eq!(hit(200.0, 6.0), None);
    }
}
