//! The lanes above the shapes: annotated spans, which are drawn below the spans that contain them, and the job's steps.

use std::borrow::Cow;
use std::rc::Rc;

use trace::order::SortFew;

use query::Window;

use super::gesture::PlotArea;
use crate::render::palette::Palette;
use crate::render::scale::Scale;
use crate::render::surface::{Align, Area, Font, Surface, fit};

/// A span of the axis with its name.
pub type Span = (Window, String);

/// The name of the lane of annotated spans.
pub const ANNOTATED: &str = "annotated";
/// The height of a row in pixels.
pub const ROW: f64 = 16.0;
/// Spans that are nested deeper share the lowest row.
const MOST_ROWS: u8 = 4;
/// Spans narrower than this many pixels have no name.
const NAME_ROOM: f64 = 28.0;
/// The least distance in pixels between named spans if all are too narrow for their names.
const NUMBER_ROOM: f64 = 72.0;

/// The rows of spans.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// The row of each span, counted from the top.
    of: Rc<[u8]>,
    /// The number of rows.
    pub count: u32,
}

impl Rows {
    /// Returns a number of rows for spans that are not known yet.
    pub fn unknown(count: u32) -> Self {
        Self { of: Rc::default(), count }
    }

    /// Puts each span into the highest row in which it overlaps no earlier span. Spans must be sorted by their starts,
    /// with the longer of two first, so that nested spans are below those that contain them.
    pub fn of(spans: &[Span]) -> Self {
        let mut ends: Vec<f64> = Vec::new();
        let mut of = Vec::with_capacity(spans.len());
        for (span, _) in spans {
            let free = ends.iter().position(|end| *end <= span.start);
            let row = free.unwrap_or(ends.len()).min(usize::from(MOST_ROWS) - 1);
            match ends.get_mut(row) {
                Some(end) => *end = end.max(span.end),
                None => ends.push(span.end),
            }
            of.push(row as u8);
        }
        Self { of: of.into(), count: ends.len() as u32 }
    }

    fn row(&self, i: usize) -> u32 {
        self.of.get(i).copied().unwrap_or(0).into()
    }
}

/// A lane: named spans in one or more rows.
pub struct Lane<'a> {
    /// The name of what it shows, drawn beside it.
    pub name: &'static str,
    /// Its spans, in the order of their starts.
    pub spans: &'a [Span],
    /// Their rows; `None` if there is one.
    pub rows: Option<&'a Rows>,
    /// The number of rows between the lane and the shapes.
    pub below: u32,
}

impl Lane<'_> {
    fn row_count(&self) -> u32 {
        self.rows.map_or(1, |rows| rows.count)
    }

    /// Returns the top of a row.
    fn top(&self, plot: Area, row: u32) -> f64 {
        plot.y - ROW * f64::from(self.below + self.row_count() - row)
    }

    fn row(&self, i: usize) -> u32 {
        self.rows.map_or(0, |rows| rows.row(i))
    }

    /// Returns the index of the innermost span at a point.
    pub fn at(&self, x: Scale, plot: Area, point: (f64, f64)) -> Option<usize> {
        let is_outside = point.0 < plot.x || point.0 > plot.right();
        let from_top = ((point.1 - self.top(plot, 0)) / ROW).floor();
        if is_outside || from_top < 0.0 || from_top >= f64::from(self.row_count()) {
            return None;
        }
        let at = x.value(point.0);
        // A span thinner than a pixel can't be hit exactly.
        let slack = x.unit().abs();
        let is_hit = |(i, (span, _)): &(usize, &Span)| {
            self.row(*i) == from_top as u32 && span.start - slack <= at && at <= span.end.max(span.start + slack)
        };
        self.spans.iter().enumerate().rev().find(is_hit).map(|(i, _)| i)
    }

    /// Draws the lane with its name, and the names of the spans that have room.
    pub fn draw(&self, surface: &mut dyn Surface, plot_area: &PlotArea, palette: &Palette) {
        let (x, plot) = (plot_area.x(), plot_area.plot);
        if self.spans.is_empty() {
            return;
        }
        let ink = palette.text_dim.into();
        let is_seen =
            self.spans.iter().any(|(span, _)| x.pixel(span.end) >= plot.x && x.pixel(span.start) < plot.right());
        if let Some(name) = fit(surface, self.name, Font::Label, plot.x - 10.0).filter(|_| is_seen) {
            surface.text(&name, (plot.x - 8.0, self.top(plot, 0) + ROW / 2.0 - 1.0), Align::End, Font::Label, ink);
        }
        let rows = self.row_count() as usize;
        // The end of what is drawn in each row: one span per pixel is enough.
        let mut drawn = vec![f64::NEG_INFINITY; rows];
        let mut parity = vec![false; rows];
        let (mut narrow, mut named) = (Vec::<Narrow<'_>>::new(), Vec::new());
        // The last one in each row that is too narrow for its name.
        let mut last = vec![usize::MAX; rows];
        for (i, (span, name)) in self.spans.iter().enumerate() {
            let (from, to) = (x.pixel(span.start).max(plot.x), x.pixel(span.end).min(plot.right()));
            let row = self.row(i) as usize;
            let (Some(drawn), Some(parity), Some(last)) = (drawn.get_mut(row), parity.get_mut(row), last.get_mut(row))
            else {
                continue;
            };
            *parity = !*parity;
            let end = to.max(from + 1.0);
            if to < plot.x || from >= plot.right() {
                continue;
            }
            // A mark without a length has a name even where another one has drawn its line.
            let is_mark = span.length() <= 0.0;
            let is_drawn = end >= *drawn + 1.0;
            if let Some(one) = narrow.get_mut(*last).filter(|_| is_mark || is_drawn) {
                one.until = one.until.min(from);
            }
            if is_mark {
                let area = Area { x: from, y: self.top(plot, row as u32), width: 0.0, height: ROW - 2.0 };
                *last = narrow.len();
                narrow.push(Narrow::new(area, name, row, true, plot.right()));
            }
            if !is_drawn {
                continue;
            }
            let from = from.max(*drawn);
            *drawn = end;
            let area = Area { x: from, y: self.top(plot, row as u32), width: to - from, height: ROW - 2.0 };
            surface.vertical(
                from,
                area.y,
                area.bottom(),
                palette.text_dim.at(if area.width < 2.0 { 0.3 } else { 0.5 }),
            );
            if area.width >= 2.0 {
                surface.fill(area, palette.text.at(if *parity { 0.10 } else { 0.16 }));
            }
            let text = if area.width < NAME_ROOM { None } else { shortened(surface, name, area.width - 8.0) };
            match text {
                Some(text) => {
                    surface.text(&text, (from + 4.0, area.y + area.height / 2.0), Align::Start, Font::Label, ink);
                    named.push((row, from, from + 8.0 + surface.text_width(&text, Font::Label)));
                }
                None if row == 0 && !is_mark => {
                    *last = narrow.len();
                    narrow.push(Narrow::new(area, name, row, false, plot.right()));
                }
                None => {}
            }
        }
        // Where some spans have names, others that are too narrow for theirs need none.
        narrow.retain(|one| one.is_mark || named.is_empty());
        let all_named = |name: &str, row: usize| {
            let is_seen = |span: &Window| x.pixel(span.end) >= plot.x && x.pixel(span.start) < plot.right();
            let is_one =
                |(i, (span, own)): &(usize, &Span)| own == name && self.row(*i) as usize == row && is_seen(span);
            self.spans.iter().enumerate().filter(is_one).count()
        };
        narrow_names(surface, narrow, (named, all_named), plot, palette);
    }
}

/// Returns as much of a name as fits: of a name with a number at its end, all of it or only the number. Steps differ by
/// their numbers.
fn shortened(surface: &mut dyn Surface, name: &str, room: f64) -> Option<String> {
    let number = number(name);
    match fit(surface, name, Font::Label, room) {
        Some(text) if number.is_empty() || text == name => Some(text),
        _ => fit(surface, number, Font::Label, room).filter(|text| text == number),
    }
    .filter(|text| !text.is_empty())
}

fn number(name: &str) -> &str {
    name.get(name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..).unwrap_or_default()
}

/// A span that is too narrow for its name.
struct Narrow<'a> {
    area: Area,
    name: &'a str,
    /// The name without its number.
    series: &'a str,
    number: Option<u64>,
    row: usize,
    is_mark: bool,
    /// Where the next span of its row begins.
    until: f64,
}

impl<'a> Narrow<'a> {
    fn new(area: Area, name: &'a str, row: usize, is_mark: bool, until: f64) -> Self {
        let digits = number(name);
        let series = name.strip_suffix(digits).unwrap_or(name);
        Self { area, name, series, number: digits.parse().ok(), row, is_mark, until }
    }
}

/// Names spans that are too narrow for their names, as far as there is room: first the rarest, since a mark of a person's own
/// says more than one of many steps; of a long series every second, tenth, twentieth, …. Of spans with one name, each has
/// it if most have room before the next one; otherwise they have it together, with their number. Numbered and own marks stand over
/// what is beside them, other names behind a span, where no other one is. `taken` has the rows and ends of names, and
/// `all_named` counts the spans in view of a name and row.
fn narrow_names(
    surface: &mut dyn Surface,
    mut spans: Vec<Narrow<'_>>,
    (mut taken, all_named): (Vec<(usize, f64, f64)>, impl Fn(&str, usize) -> usize),
    plot: Area,
    palette: &Palette,
) {
    // A stable order keeps each series from left to right.
    spans.sort_few_by(|a, b| a.series.cmp(b.series));
    let mut series: Vec<&[Narrow<'_>]> = spans.chunk_by(|a, b| a.series == b.series).collect();
    series.sort_few_by_key(|series| series.len());
    for series in series {
        let every = interval(series);
        let room =
            |i: usize, one: &Narrow<'_>| series.get(i + 1).map_or(f64::INFINITY, |next| next.area.x - one.area.x);
        let has_room: Vec<bool> = series
            .iter()
            .enumerate()
            .map(|(i, one)| room(i, one) >= surface.text_width(one.name, Font::Label) + 8.0)
            .collect();
        let are_together = every == 1 && has_room.iter().filter(|has| **has).count() * 2 < series.len();
        // The name of all of them together in a row, with its width: counted and measured once.
        let mut counted: Option<(usize, String, f64)> = None;
        for (i, Narrow { area, name, number, row, is_mark, until, .. }) in series.iter().enumerate() {
            let is_due = match number {
                Some(number) => number % every == 0,
                None if are_together => true,
                None => has_room.get(i) == Some(&true),
            };
            if !is_due {
                continue;
            }
            let is_together = are_together && number.is_none();
            if is_together && counted.as_ref().is_none_or(|(of, ..)| of != row) {
                let text = format!("{name} × {}", all_named(name, *row));
                let width = surface.text_width(&text, Font::Label);
                counted = Some((*row, text, width));
            }
            let together = counted.as_ref().filter(|_| is_together);
            let is_over = number.is_some() || *is_mark && !is_together;
            let (left, end) = if is_over { (area.x, plot.right()) } else { (area.right(), *until) };
            let room = end - left - 8.0;
            let (name, width) = match together {
                Some((_, text, width)) => (Cow::Borrowed(&**text), *width),
                None => {
                    let name = match is_over || room < NUMBER_ROOM {
                        true => Cow::Borrowed(*name),
                        false => Cow::Owned(fit(surface, name, Font::Label, room).unwrap_or_default()),
                    };
                    let width = surface.text_width(&name, Font::Label);
                    (name, width)
                }
            };
            let right = left + width + 8.0;
            let is_taken = |(other, from, to): &(usize, f64, f64)| other == row && left < *to && *from < right;
            if right > end || taken.iter().any(is_taken) {
                continue;
            }
            taken.push((*row, left, right + 4.0));
            if is_over {
                let width = right - left;
                surface.fill(Area { width, ..*area }, palette.background.into());
                surface.fill(Area { width, ..*area }, palette.text.at(0.10));
                surface.vertical(left, area.y, area.bottom(), palette.text_dim.at(0.8));
            }
            let at = (left + 4.0, area.y + area.height / 2.0);
            surface.text(&name, at, Align::Start, Font::Label, palette.text_dim.into());
            if is_together {
                break;
            }
        }
    }
}

/// Returns which numbers of a series are named: each, every second, every tenth, ….
fn interval(series: &[Narrow<'_>]) -> u64 {
    let ends = series.first().zip(series.last());
    let Some(((from, first), (to, last))) =
        ends.and_then(|(first, last)| Some(((first.area.x, first.number?), (last.area.x, last.number?))))
    else {
        return 1;
    };
    let pixels_each = (to - from) / last.saturating_sub(first).max(1) as f64;
    let mut every = 1_u64;
    while series.len() > 1 && pixels_each * (every as f64) < NUMBER_ROOM && every < 1 << 40 {
        every *= if every.to_string().starts_with('2') { 5 } else { 2 };
        // 1, 2, 10, 20, 100, …
    }
    every
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::surface::log::SurfaceLog;

    fn span(start: f64, end: f64, name: &str) -> Span {
        (Window { start, end }, name.to_owned())
    }

    fn plot_area(rows: f64) -> PlotArea {
        let plot = Area { x: 68.0, y: 20.0 + ROW * rows, width: 500.0, height: 200.0 };
        let window = Window { start: 0.0, end: 1000.0 };
        PlotArea::at_rest(plot, window, Window { start: 0.0, end: 1.0 })
    }

    fn texts(lane: &Lane<'_>) -> Vec<String> {
        let mut log = SurfaceLog::default();
        lane.draw(&mut log, &plot_area(2.0), &Palette::dark());
        log.0.iter().filter_map(|line| Some(line.strip_prefix("text ")?.split('"').nth(1)?.to_owned())).collect()
    }

    #[test]
    fn nested_spans_lie_below_those_that_contain_them() {
        let spans = [
            span(0.0, 900.0, "epoch"),
            span(0.0, 300.0, "forward"),
            span(100.0, 200.0, "attention"),
            span(300.0, 900.0, "backward"),
            span(950.0, 990.0, "save"),
        ];
        let rows = Rows::of(&spans);
        assert_eq!((rows.of.to_vec(), rows.count), (vec![0, 1, 2, 1, 0], 3));
        let deep: Vec<Span> = (0..9).map(|i| span(f64::from(i), 100.0 - f64::from(i), "")).collect();
        assert_eq!(Rows::of(&deep).count, u32::from(MOST_ROWS));
        assert_eq!(Rows::of(&[]).count, 0);
    }

    #[test]
    fn a_point_is_in_the_row_of_its_span() {
        let spans = [span(0.0, 900.0, "epoch"), span(100.0, 300.0, "forward"), span(310.0, 310.0, "mark")];
        let rows = Rows::of(&spans);
        let lane = Lane { name: "annotated", spans: &spans, rows: Some(&rows), below: 0 };
        let (area, plot) = (plot_area(2.0), plot_area(2.0).plot);
        let at = |x: f64, y: f64| lane.at(area.x(), plot, (plot.x + x, plot.y + y));
        assert_eq!((at(100.0, -20.0), at(100.0, -5.0)), (Some(0), Some(1)));
        assert_eq!((at(155.0, -5.0), at(200.0, -5.0)), (Some(2), None));
        assert_eq!((at(100.0, -40.0), at(100.0, 5.0), at(-5.0, -5.0)), (None, None, None));
        let steps = Lane { name: "steps", spans: &spans[..1], rows: None, below: 2 };
        let at = |y: f64| steps.at(area.x(), plot, (plot.x + 100.0, plot.y + y));
        assert_eq!((at(-40.0), at(-20.0)), (Some(0), None));
    }

    #[test]
    fn spans_are_named_where_there_is_room_and_the_lane_always() {
        let spans = [span(0.0, 300.0, "iteration 1"), span(300.0, 310.0, "iteration 2"), span(900.0, 2000.0, "late")];
        let lane = Lane { name: "steps", spans: &spans, rows: None, below: 0 };
        assert_eq!(texts(&lane), ["steps", "iteration 1", "late"]);
        assert!(texts(&Lane { spans: &[], ..lane }).is_empty(), "an empty lane has no name");
    }

    #[test]
    fn a_step_with_little_room_is_its_number() {
        let names = ["step 12", "forward", "epoch_3", "step 1234567"];
        for (width, want) in [(240.0, &names[..]), (80.0, &["12", "3"])] {
            let spans: Vec<Span> = names
                .iter()
                .zip(0..)
                .map(|(name, i)| span(f64::from(i) * 250.0, f64::from(i) * 250.0 + width, name))
                .collect();
            let lane = Lane { name: "steps", spans: &spans, rows: None, below: 0 };
            assert_eq!(texts(&lane)[1..], *want, "{width}");
        }
    }

    #[test]
    fn of_many_steps_some_are_named() {
        let spans: Vec<Span> =
            (0..200).map(|i| span(f64::from(i) * 5.0, f64::from(i + 1) * 5.0, &format!("step {i}"))).collect();
        let lane = Lane { name: "steps", spans: &spans, rows: None, below: 0 };
        assert_eq!(texts(&lane)[1..], ["step 0", "step 100"]);
    }

    #[test]
    fn spans_of_one_name_have_it_each_or_together() {
        let names = |every: f64| {
            let spans: Vec<Span> =
                (0..25).map(|i| span(f64::from(i) * every, f64::from(i) * every + 6.0, "Optimizer.step")).collect();
            let rows = Rows::of(&spans);
            let lane = Lane { name: "annotated", spans: &spans, rows: Some(&rows), below: 0 };
            texts(&lane)[1..].to_vec()
        };
        assert_eq!(names(20.0), ["Optimizer.step × 25"]);
        // The first five are in view, and the last of these has no room.
        assert_eq!(names(230.0), ["Optimizer.step"; 4]);
    }

    #[test]
    fn no_name_lies_over_a_span_of_another_name() {
        let pairs = |every: f64| {
            let spans: Vec<Span> = (0..4)
                .flat_map(|i| {
                    let at = f64::from(i) * every;
                    [span(at, at + 40.0, "Optimizer.step"), span(at + 40.0, at + 70.0, "zero_grad")]
                })
                .collect();
            let rows = Rows::of(&spans);
            let lane = Lane { name: "annotated", spans: &spans, rows: Some(&rows), below: 0 };
            texts(&lane)[1..].to_vec()
        };
        assert_eq!(pairs(250.0), ["zero_grad"; 4]);
        assert_eq!(pairs(71.0), ["zero_grad × 4"], "behind the last one");
    }

    #[test]
    fn a_mark_of_ones_own_is_named_before_the_steps_around_it() {
        let mut spans: Vec<Span> = Vec::new();
        for i in 0..200 {
            let at = f64::from(i) * 5.0;
            if i == 100 {
                // In the same pixel as the step.
                spans.push(span(at - 0.1, at - 0.1, "epoch 2"));
            }
            spans.push(span(at, at, &format!("step {i}")));
        }
        let rows = Rows::of(&spans);
        let lane = Lane { name: "annotated", spans: &spans, rows: Some(&rows), below: 0 };
        let named = texts(&lane);
        assert!(named.contains(&"epoch 2".to_owned()) && named.contains(&"step 0".to_owned()), "{named:?}");
        assert!(!named.contains(&"step 100".to_owned()), "there is room for one: {named:?}");
        // Its line may have been drawn by the step before it.
        let after: Vec<Span> = vec![span(500.0, 500.0, "step 1"), span(500.1, 500.1, "warm")];
        let rows = Rows::of(&after);
        let named = texts(&Lane { spans: &after, rows: Some(&rows), ..lane });
        assert_eq!(named.len(), 2, "one of the two has its name: {named:?}");
    }

    #[test]
    fn a_mark_within_a_named_span_has_its_name_below() {
        let spans = [span(0.0, 900.0, "epoch"), span(300.0, 300.0, "saved"), span(310.0, 310.0, "saved")];
        let rows = Rows::of(&spans);
        let lane = Lane { name: "annotated", spans: &spans, rows: Some(&rows), below: 0 };
        assert_eq!(texts(&lane), ["annotated", "epoch", "saved"]);
    }
}
