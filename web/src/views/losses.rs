//! Draws where events are missing. The allocator's state is unknown there, so the background covers the picture, with a
//! hatch over it. Totals from statistics are drawn under the hatch.

use query::{LossSpan, Paint, Window};
use trace::order::Within;

use super::events::lost_sentence;
use crate::render::color::Rgb;
use crate::render::labels::Labels;
use crate::render::palette::Palette;
use crate::render::scale::Scale;
use crate::render::surface::{Align, Area, Font, Surface};
use crate::widgets::format::counted;

/// Minimum width of a loss in pixels.
const LEAST_WIDTH: f64 = 5.0;
/// Number of rows for labels that don't fit side by side.
const ROWS: usize = 4;
/// Pixels between rows of labels.
const ROW: f64 = 19.0;
/// Pixels between lines of the hatch, along the x axis.
const HATCH: f64 = 7.0;
/// Width of a line of the hatch in pixels, along the x axis.
const LINE: f64 = 1.8;

/// Losses that are drawn as one because they touch on the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Band {
    from: f64,
    to: f64,
    losses: u64,
    events: u64,
}

/// Returns the pixels of a loss, widened so that it is visible.
fn pixels(span: Window, x: Scale) -> (f64, f64) {
    let (from, to) = (x.pixel(span.start), x.pixel(span.end));
    let spare = ((LEAST_WIDTH - (to - from)) / 2.0).max(0.0);
    (from - spare, to + spare)
}

fn bands(losses: &[LossSpan], x: Scale, plot: Area) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    for loss in losses {
        let (from, to) = pixels(loss.span, x);
        if to <= plot.x || from >= plot.right() {
            continue;
        }
        let (from, to) = (from.max(plot.x), to.min(plot.right()));
        match bands.last_mut() {
            Some(last) if from <= last.to + 1.0 => {
                last.to = last.to.max(to);
                last.losses += 1;
                last.events = last.events.saturating_add(loss.events);
            }
            _ => bands.push(Band { from, to, losses: 1, events: loss.events }),
        }
    }
    bands
}

/// Draws the losses over the shapes of `plot`; `y` is the scale of bytes.
pub fn draw(surface: &mut dyn Surface, losses: &[LossSpan], (x, y): (Scale, Scale), plot: Area, palette: &Palette) {
    for band in bands(losses, x, plot) {
        let area = Area { x: band.from, width: band.to - band.from, ..plot };
        surface.fill(area, palette.background.into());
        for loss in losses.iter().filter(|loss| !loss.samples.is_empty()) {
            statistics(surface, loss, (x, y), area, palette);
        }
        hatch(surface, area, palette);
        surface.vertical(area.x, area.y, area.bottom(), palette.text_dim.into());
        surface.vertical(area.right() - 1.0, area.y, area.bottom(), palette.text_dim.into());
    }
}

/// Draws the totals from statistics, each until the next.
fn statistics(surface: &mut dyn Surface, loss: &LossSpan, (x, y): (Scale, Scale), band: Area, palette: &Palette) {
    let height = |bytes: u64| y.pixel(bytes as f64).within(band.y, band.bottom());
    let ends = loss.samples.iter().skip(1).map(|sample| sample.x).chain([loss.span.end]);
    for (sample, end) in loss.samples.iter().zip(ends) {
        let (left, right) = (x.pixel(sample.x).max(band.x), x.pixel(end).min(band.right()));
        if right <= left {
            continue;
        }
        let mut area = |from: u64, to: u64, color: Rgb| {
            let (top, bottom) = (height(to), height(from));
            if bottom > top {
                surface.fill(Area { x: left, y: top, width: right - left, height: bottom - top }, color.at(0.6));
            }
        };
        area(0, sample.allocated, palette.fill(Paint::ALLOCATED));
        area(sample.allocated, sample.active, palette.fill(Paint::PENDING));
        surface.horizontal(height(sample.reserved), left, right, false, palette.reserved.into());
    }
}

/// Draws falling lines; those of cached memory rise.
fn hatch(surface: &mut dyn Surface, area: Area, palette: &Palette) {
    // Lines begin at the top or left edge and run down to the right at 45 degrees.
    let mut start = area.x - area.height;
    // Independent of the area, so that the lines stay in place in a pan.
    start = (start / HATCH).floor() * HATCH;
    while start < area.right() {
        let (left, right) = (start.max(area.x), (start + area.height).min(area.right()));
        if left < right {
            let (top, bottom) = (area.y + (left - start), area.y + (right - start));
            // A line that reaches the right edge is cut along it.
            let cut = (right + LINE - area.right()).clamp(0.0, LINE);
            surface.polygon(
                &[
                    (left, top),
                    ((left + LINE).min(area.right()), top),
                    (right + LINE - cut, bottom - cut),
                    (right, bottom),
                ],
                palette.text_dim.at(0.55),
            );
        }
        start += HATCH;
    }
}

/// Labels each loss with the number of missing events, if there is room.
pub fn label(
    surface: &mut dyn Surface,
    losses: &[LossSpan],
    (x, plot): (Scale, Area),
    labels: &mut Labels,
    palette: &Palette,
) {
    for band in bands(losses, x, plot) {
        let lost = if band.events == 0 {
            "from statistics".to_owned()
        } else {
            format!("{} lost", counted(band.events, "event"))
        };
        let text = if band.losses == 1 { lost } else { format!("{lost} in {}", counted(band.losses, "place")) };
        let width = surface.text_width(&text, Font::Strong) + 8.0;
        let inside = band.from + (band.to - band.from - width) / 2.0;
        let is_inside = width + 4.0 <= band.to - band.from;
        let beside = [band.to + 4.0, band.from - 4.0 - width];
        // The places of each row, from the lowest row up.
        let places = (0..ROWS).flat_map(|row| {
            let y = plot.bottom() - 22.0 - row as f64 * ROW;
            let lefts = if is_inside { [inside; 2] } else { beside };
            lefts.map(|left| Area { x: left, y, width, height: 16.0 })
        });
        let Some(area) = labels.place(plot, places) else { continue };
        surface.fill(area, palette.background.at(0.9));
        surface.text(&text, (area.x + 4.0, area.y + 8.0), Align::Start, Font::Strong, palette.text.into());
    }
}

/// Returns the index of the loss at a pixel of the x axis.
pub fn at(losses: &[LossSpan], x: Scale, pixel: f64) -> Option<usize> {
    losses.iter().rposition(|loss| {
        let (from, to) = pixels(loss.span, x);
        from <= pixel && pixel < to
    })
}

/// Returns the tooltip of a loss.
pub fn sentence(loss: &LossSpan) -> String {
    if loss.events == 0 {
        return "No events were recorded here. The totals come from statistics.".to_owned();
    }
    lost_sentence(loss.events, &loss.kinds)
}

#[cfg(test)]
mod tests {
    use query::SampleAt;

    use super::*;
    use crate::render::surface::log::SurfaceLog;

    fn loss(start: f64, end: f64, events: u64) -> LossSpan {
        LossSpan {
            span: Window { start, end },
            position: start as u32,
            events,
            kinds: String::new(),
            samples: Vec::new(),
        }
    }

    const PLOT: Area = Area { x: 100.0, y: 10.0, width: 1000.0, height: 50.0 };

    fn scale() -> Scale {
        Scale::new(Window { start: 0.0, end: 1000.0 }, PLOT.x, PLOT.right())
    }

    #[test]
    fn a_loss_hides_the_picture_and_has_a_minimum_width() {
        let (mut log, palette) = (SurfaceLog::default(), Palette::dark());
        draw(
            &mut log,
            &[loss(200.0, 300.0, 9), loss(500.0, 500.0, 1), loss(-50.0, -20.0, 1)],
            (scale(), bytes()),
            PLOT,
            &palette,
        );
        let ground: Vec<&String> = log.0.iter().filter(|line| line.starts_with("fill")).collect();
        let color = palette.background.css();
        assert_eq!(ground, [&format!("fill 300,10 100x50 {color}"), &format!("fill 598,10 5x50 {color}")]);
        assert!(log.0.iter().filter(|line| line.starts_with("polygon")).count() > 14, "{:#?}", log.0);
    }

    /// One pixel per byte.
    fn bytes() -> Scale {
        Scale::new(Window { start: 0.0, end: 50.0 }, PLOT.bottom(), PLOT.y)
    }

    #[test]
    fn totals_from_statistics_are_drawn_in_a_loss() {
        let (mut log, palette) = (SurfaceLog::default(), Palette::dark());
        let at = |x, allocated, active, reserved| SampleAt { x, allocated, active, reserved };
        let samples = vec![at(220.0, 10, 15, 40), at(260.0, 20, 20, 90)];
        let gap = LossSpan { samples, ..loss(200.0, 300.0, 9) };
        draw(&mut log, &[gap], (scale(), bytes()), PLOT, &palette);
        let found: Vec<&str> = log.0.iter().map(String::as_str).filter(|line| !line.starts_with("polygon")).collect();
        let (allocated, pending) = (palette.fill(Paint::ALLOCATED), palette.fill(Paint::PENDING));
        let want = [
            format!("fill 320,50 40x10 {}", allocated.css()),
            format!("fill 320,45 40x5 {}", pending.css()),
            format!("horizontal 20 from 320 to 360 {}", palette.reserved.css()),
            format!("fill 360,40 40x20 {}", allocated.css()),
            format!("horizontal 10 from 360 to 400 {}", palette.reserved.css()),
        ];
        assert_eq!(found.get(1..6), Some(&want.each_ref().map(String::as_str)[..]), "{found:#?}");
    }

    #[test]
    fn touching_losses_are_merged() {
        let mut log = SurfaceLog::default();
        let losses = [loss(200.0, 201.0, 9), loss(203.0, 204.0, 1), loss(900.0, 901.0, 1_000)];
        label(&mut log, &losses, (scale(), PLOT), &mut Labels::default(), &Palette::light());
        let texts: Vec<&str> = log.0.iter().filter_map(|line| line.strip_prefix("text ")).collect();
        assert_eq!(texts, ["\"10 events lost in 2 places\" at 314,46 Start", "\"1,000 events lost\" at 888,46 Start"]);
    }

    #[test]
    fn a_loss_can_be_picked() {
        let losses = [loss(200.0, 300.0, 9), loss(500.0, 500.0, 1)];
        for (pixel, want) in [(299.0, None), (350.0, Some(0)), (401.0, None), (598.0, Some(1)), (602.0, Some(1))] {
            assert_eq!(at(&losses, scale(), pixel), want, "{pixel}");
        }
    }
}
