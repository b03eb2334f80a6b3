//! The marks over the timeline: axes, out-of-memory flags, annotations, the peak, the cursor.

use std::rc::Rc;

use shared::order::Within;
use shared::query::{Axis, LossSpan, Window};
use shared::units::Bytes;

use super::gesture::PlotArea;
use crate::hooks::PinFlag;
use crate::render::canvas::Size;
use crate::render::palette::Palette;
use crate::render::scale::Scale;
use crate::render::surface::{Align, Area, Font, Surface, fit};
use crate::render::ticks;
use crate::views::{losses, pin_flags};

/// Room for the labels of bytes.
const GUTTER: f64 = 68.0;
/// The strip above the shapes that moves the cursor and has the flags.
const CURSOR_STRIP: f64 = 20.0;
/// The strip of annotations, if there are any.
const STRIP: f64 = 16.0;
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
    pub annotations: Rc<[(Window, String)]>,
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
    /// The pins.
    pub pins: Rc<[PinFlag]>,
}

impl Marks {
    /// Returns an annotated span or, behind those, a step.
    pub fn span(&self, i: usize) -> Option<&(Window, String)> {
        self.annotations.iter().chain(self.steps.spans.iter()).nth(i)
    }
}

/// The steps of the job, which have a strip of their own unless annotations are the steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    /// Their coordinates and names.
    pub spans: Rc<[(Window, String)]>,
    /// The positions at which each begins and ends.
    pub positions: Rc<[(u32, u32)]>,
    /// How they were found, and what a click does: a sentence for the tooltip.
    pub hint: Rc<str>,
    /// Their strip, counted upwards from the shapes; `None` if they are annotations.
    pub strip: Option<u32>,
}

impl Steps {
    /// Returns the index of the step at a point of the strips.
    pub fn at(&self, x: Scale, plot: Area, point: (f64, f64)) -> Option<usize> {
        span_at(&self.spans, self.strip.unwrap_or(0), x, plot, point)
    }
}

/// Returns the area of the shapes, on whole device pixels, below a number of strips.
pub fn plot(size: Size, strips: u32) -> Area {
    let ratio = if size.ratio > 0.0 { size.ratio } else { 1.0 };
    let snap = |value: f64| (value * ratio).round() / ratio;
    let top = snap(CURSOR_STRIP + STRIP * f64::from(strips));
    let left = snap(GUTTER);
    Area {
        x: left,
        y: top,
        width: snap((size.width - left - RIGHT).max(0.0)),
        height: snap((size.height - top - FOOT).max(0.0)),
    }
}

/// Draws everything below the hovered and selected outlines: axes, annotations, flags, the peak, losses. The peak's label
/// stays out of `taken`.
pub fn below(
    surface: &mut dyn Surface,
    plot_area: &PlotArea,
    axis: Axis,
    marks: &Marks,
    taken: Option<Area>,
    palette: &Palette,
) {
    height_axis(surface, plot_area, palette);
    losses::draw(surface, &marks.losses, (plot_area.x(), plot_area.y()), plot_area.plot, palette);
    x_axis(surface, plot_area, axis, palette);
    strip(surface, plot_area, &marks.annotations, 0, palette);
    if let Some(number) = marks.steps.strip {
        strip(surface, plot_area, &marks.steps.spans, number, palette);
    }
    peak(surface, plot_area, marks.peak, taken, palette);
    flags(surface, plot_area, &marks.ooms, palette);
    losses::label(surface, &marks.losses, plot_area.x(), plot_area.plot, palette);
}

/// Draws what is not of the timeline alone: the x axis, annotations, flags, losses.
pub fn along(surface: &mut dyn Surface, plot_area: &PlotArea, axis: Axis, marks: &Marks, palette: &Palette) {
    x_axis(surface, plot_area, axis, palette);
    strip(surface, plot_area, &marks.annotations, 0, palette);
    if let Some(number) = marks.steps.strip {
        strip(surface, plot_area, &marks.steps.spans, number, palette);
    }
    flags(surface, plot_area, &marks.ooms, palette);
    losses::label(surface, &marks.losses, plot_area.x(), plot_area.plot, palette);
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
        surface.vertical(at, plot.y - 8.0, plot.bottom() + 4.0, palette.accent.into());
        let top = plot.y - 10.0;
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
    for tick in ticks::bytes(plot_area.bytes, plot.height / 44.0) {
        let at = y.pixel(tick.at);
        surface.horizontal(at, plot.x, plot.right(), false, palette.text.at(0.09));
        surface.text(&tick.label, (plot.x - 8.0, at), Align::End, Font::Label, palette.text_dim.into());
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
    let marks = match axis {
        Axis::Time => ticks::time(plot_area.window, plot.width / 96.0),
        Axis::Event => ticks::events(plot_area.window, plot.width / 96.0),
    };
    for tick in marks {
        let at = x.pixel(tick.at);
        surface.vertical(at, plot.bottom(), plot.bottom() + 4.0, palette.text_dim.at(0.6));
        // The outermost labels stay inside the plot.
        let width = surface.text_width(&tick.label, Font::Label);
        let label =
            at.within(plot.x + width / 2.0, (plot.right() + RIGHT - 2.0 - width / 2.0).max(plot.x + width / 2.0));
        surface.text(&tick.label, (label, middle), Align::Middle, Font::Label, palette.text_dim.into());
    }
}

/// Draws named spans in a strip above the shapes. Strip 0 is the lowest.
fn strip(surface: &mut dyn Surface, plot_area: &PlotArea, spans: &[(Window, String)], number: u32, palette: &Palette) {
    let (x, plot) = (plot_area.x(), plot_area.plot);
    let top = plot.y - STRIP * f64::from(number + 1);
    // The end of the last drawn span: one span per pixel is enough.
    let mut drawn = f64::NEG_INFINITY;
    for (i, (span, name)) in spans.iter().enumerate() {
        let (from, to) = (x.pixel(span.start).max(plot.x), x.pixel(span.end).min(plot.right()));
        if to <= plot.x || from >= plot.right() || to.max(from + 1.0) < drawn + 1.0 {
            continue;
        }
        drawn = to.max(from + 1.0);
        let area = Area { x: from, y: top, width: to - from, height: STRIP - 2.0 };
        surface.vertical(from, top, top + STRIP - 2.0, palette.text_dim.at(if area.width < 2.0 { 0.3 } else { 0.5 }));
        if area.width < 2.0 {
            continue;
        }
        surface.fill(area, palette.text.at(if i % 2 == 0 { 0.10 } else { 0.16 }));
        if area.width < NAME_ROOM {
            continue;
        }
        // Steps differ by their number.
        let number = name.get(name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..).unwrap_or_default();
        let room = area.width - 8.0;
        let text = match fit(surface, name, Font::Label, room) {
            Some(text) if number.is_empty() || text == *name => Some(text),
            _ => fit(surface, number, Font::Label, room).filter(|text| text == number),
        };
        if let Some(text) = text {
            surface.text(
                &text,
                (from + 4.0, top + area.height / 2.0),
                Align::Start,
                Font::Label,
                palette.text_dim.into(),
            );
        }
    }
}

/// Spans narrower than this have no name.
const NAME_ROOM: f64 = 28.0;

fn peak(
    surface: &mut dyn Surface,
    plot_area: &PlotArea,
    peak: Option<(f64, u64)>,
    taken: Option<Area>,
    palette: &Palette,
) {
    let plot = plot_area.plot;
    let Some((at, bytes)) = peak else { return };
    let (x, y) = (plot_area.x().pixel(at), plot_area.y().pixel(bytes as f64));
    if !is_across(x, plot) || y < plot.y - 0.5 || y > plot.bottom() {
        return;
    }
    surface.polygon(&[(x - 3.5, y - 6.0), (x + 4.5, y - 6.0), (x + 0.5, y - 1.0)], palette.text.into());
    let text = format!("peak {}", Bytes(bytes));
    let width = surface.text_width(&text, Font::Strong) + 8.0;
    // Beside the mark, so that the cursor's line (initially at the peak) doesn't run through it.
    let is_right = x + 8.0 + width <= plot.right();
    let left = if is_right { x + 8.0 } else { (x - 7.0 - width).max(plot.x + 2.0) };
    let middle = (y - 6.0).max(plot.y + 9.0);
    let (top, bottom) = (middle - 8.0, middle + 8.0);
    let is_over = |area: &Area| left < area.right() && left + width > area.x && top < area.bottom() && bottom > area.y;
    let left = match taken.filter(is_over) {
        Some(area) if area.x - 4.0 - width < plot.x => return,
        Some(area) => area.x - 4.0 - width,
        None => left,
    };
    surface.fill(Area { x: left, y: top, width, height: 16.0 }, palette.background.at(0.85));
    surface.text(&text, (left + 4.0, middle), Align::Start, Font::Strong, palette.text.into());
}

fn flags(surface: &mut dyn Surface, plot_area: &PlotArea, ooms: &[Oom], palette: &Palette) {
    let (x, plot) = (plot_area.x(), plot_area.plot);
    // One label with a count for flags that are close together.
    let mut groups: Vec<(f64, usize, u64)> = Vec::new();
    let seen = ooms.iter().filter(|oom| is_across(x.pixel(oom.x), plot)).count();
    // Many lines would hide what is behind them.
    let height = if seen > MANY_FLAGS { plot.y } else { plot.bottom() } - 4.0;
    for oom in ooms {
        let at = x.pixel(oom.x);
        if !is_across(at, plot) {
            continue;
        }
        // Two pixels wide, so that a flag under the cursor remains visible.
        surface.fill(Area { x: at - 1.0, y: 4.0, width: 2.0, height }, palette.oom.at(0.85));
        let tip = if flies_left(at, plot) { at - 9.0 } else { at + 9.0 };
        surface.polygon(&[(at, 3.0), (tip, 6.5), (at, 10.0)], palette.oom.into());
        match groups.last_mut() {
            Some((first, count, bytes)) if at - *first < LABEL_ROOM => {
                *count += 1;
                *bytes = (*bytes).max(oom.bytes);
            }
            _ => groups.push((at, 1, oom.bytes)),
        }
    }
    // Where the last label ends.
    let mut taken = plot.x;
    for (i, (at, count, bytes)) in groups.iter().enumerate() {
        let size = Bytes(*bytes).to_string();
        let text = match count {
            1 => format!("out of memory, {size}"),
            n => format!("{n} × out of memory, {size}"),
        };
        let width = surface.text_width(&text, Font::Strong);
        let room_right = groups.get(i + 1).map_or(plot.right(), |next| next.0) - (at + 12.0);
        let is_left = flies_left(*at, plot);
        let end = at - if is_left { 13.0 } else { 5.0 };
        if width <= room_right && !is_left {
            surface.text(&text, (at + 12.0, 7.0), Align::Start, Font::Strong, palette.oom.into());
            taken = at + 18.0 + width;
        } else if end - width >= taken {
            surface.text(&text, (end, 7.0), Align::End, Font::Strong, palette.oom.into());
            taken = at + 6.0;
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

/// Returns the index of the span at a point of their strip.
pub fn span_at(spans: &[(Window, String)], number: u32, x: Scale, plot: Area, point: (f64, f64)) -> Option<usize> {
    let bottom = plot.y - STRIP * f64::from(number);
    if point.1 < bottom - STRIP || point.1 >= bottom || point.0 < plot.x || point.0 > plot.right() {
        return None;
    }
    let at = x.value(point.0);
    // A span thinner than a pixel can't be hit exactly.
    let slack = x.unit().abs();
    spans.iter().rposition(|(span, _)| span.start - slack <= at && at <= span.end.max(span.start + slack))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::surface::log::SurfaceLog;

    fn plot_area() -> PlotArea {
        let window = Window { start: 0.0, end: 1000.0 };
        let bytes = Window { start: 0.0, end: 4.0 * 1_073_741_824.0 };
        PlotArea::at_rest(plot(Size { width: 580.0, height: 244.0, ratio: 1.0 }, 0), window, bytes)
    }

    fn drawn(marks: &Marks) -> Vec<String> {
        let mut log = SurfaceLog::default();
        let palette = Palette::dark();
        below(&mut log, &plot_area(), Axis::Event, marks, None, &palette);
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
                "\"4 GiB\" at 60,20 End",
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
            let mut log = SurfaceLog::default();
            peak(&mut log, &plot_area(), Some((500.0, 3 << 30)), taken, &Palette::light());
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

    #[test]
    fn flags_stand_over_the_peak_and_the_cursor_over_all() {
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
            "peak 3.00 GiB",
            &format!("fill 217,4 2x216 {red}"),
            "2 × out of memory",
            "fill 118,218 50x2",
            "vertical 268 from 12 to 224",
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
        flags(&mut log, &plot_area(), &[oom(x * 0.6), oom(x)], &palette);
        assert_eq!(log.0.iter().filter(|line| line.contains("out of memory")).count(), 1, "{:#?}", log.0);
        let mut log = SurfaceLog::default();
        let many: Vec<_> = (0..20).map(|i| oom(x * f64::from(i) / 20.0)).collect();
        flags(&mut log, &plot_area(), &many, &palette);
        let lines: Vec<_> = log.0.iter().filter(|line| line.starts_with("fill")).collect();
        let height = format!("x{} ", plot.y - 4.0);
        assert!(lines.len() == 20 && lines.iter().all(|line| line.contains(&height)), "{lines:#?}");
    }

    #[test]
    fn annotations_are_named_where_there_is_room() {
        let span = |start, end, name: &str| (Window { start, end }, name.to_owned());
        let spans =
            vec![span(0.0, 300.0, "iteration 1"), span(300.0, 310.0, "iteration 2"), span(900.0, 2000.0, "late")];
        let log = drawn(&Marks { annotations: spans.into(), ..Marks::default() });
        assert!(log.iter().any(|line| line.contains("\"iteration 1\"")));
        assert!(!log.iter().any(|line| line.contains("iteration 2")));
        assert!(log.iter().any(|line| line.contains("\"late\"")));
    }

    #[test]
    fn a_step_with_little_room_is_its_number() {
        let names = ["step 12", "forward", "epoch_3", "step 1234567"];
        for (width, want) in [(240.0, &names[..]), (80.0, &["12", "3"])] {
            let spans = names.iter().zip(0..).map(|(name, i)| {
                let start = f64::from(i) * 250.0;
                (Window { start, end: start + width }, (*name).to_owned())
            });
            let (mut log, palette) = (SurfaceLog::default(), Palette::dark());
            strip(&mut log, &plot_area(), &spans.collect::<Vec<_>>(), 0, &palette);
            let texts = log.0.iter().filter_map(|line| line.strip_prefix("text ")?.split('"').nth(1));
            assert_eq!(texts.filter(|text| !text.is_empty()).collect::<Vec<_>>(), want, "{width}");
        }
    }

    #[test]
    fn annotations_can_be_pointed_at() {
        let span = |start, end| (Window { start, end }, String::new());
        let spans = [span(0.0, 300.0), span(310.0, 310.0)];
        let (plot_area, plot) = (plot_area(), plot(Size { width: 580.0, height: 244.0, ratio: 1.0 }, 1));
        let at = |x, y| span_at(&spans, 0, plot_area.x(), plot, (x, y));
        assert_eq!(at(plot.x + 50.0, plot.y - 5.0), Some(0));
        assert_eq!(at(plot.x + 155.0, plot.y - 5.0), Some(1));
        assert_eq!(at(plot.x + 200.0, plot.y - 5.0), None);
        assert_eq!(at(plot.x + 50.0, plot.y + 5.0), None);
    }

    #[test]
    fn steps_have_a_strip_above_the_annotations() {
        let span = |start, end, name: &str| (Window { start, end }, name.to_owned());
        let spans: Rc<[_]> = [span(0.0, 400.0, "step 1"), span(400.0, 800.0, "step 2")].into();
        let steps =
            |strip| Steps { spans: spans.clone(), positions: [(0, 400), (400, 800)].into(), hint: "".into(), strip };
        let area = plot(Size { width: 580.0, height: 244.0, ratio: 1.0 }, 2);
        let at = |strip, y| steps(strip).at(plot_area().x(), area, (area.x + 250.0, y));
        assert_eq!((at(Some(1), area.y - 20.0), at(Some(1), area.y - 5.0)), (Some(1), None));
        // Annotations that are steps are drawn once, and are hit in their own strip.
        assert_eq!((at(None, area.y - 20.0), at(None, area.y - 5.0)), (None, Some(1)));
        let texts = |strip| {
            let log = drawn(&Marks { steps: steps(strip), ..Marks::default() });
            log.iter().filter(|line| line.contains("step ")).count()
        };
        assert_eq!((texts(Some(1)), texts(None)), (2, 0));
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
