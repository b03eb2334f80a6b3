//! The selected range over a picture with the x axis.

use query::{Axis, Window};
use trace::units::{Micros, counted};

use crate::render::labels::Labels;
use crate::render::palette::Palette;
use crate::render::scale::Scale;
use crate::render::surface::{Align, Area, Font, Surface};

/// Draws the range: a tint between two edges. A range without an extent is one line.
pub fn draw(surface: &mut dyn Surface, x: Scale, plot: Area, range: Window, palette: &Palette) {
    let (from, to) = (x.pixel(range.start), x.pixel(range.end));
    if to < plot.x || from > plot.right() {
        return;
    }
    let (left, right) = (from.max(plot.x), to.min(plot.right()));
    surface.fill(Area { x: left, y: plot.y, width: right - left, height: plot.height }, palette.accent.at(0.16));
    for edge in [from, to] {
        if (plot.x..=plot.right()).contains(&edge) {
            surface.vertical(edge, plot.y, plot.bottom(), palette.accent.at(0.8));
        }
    }
}

/// Writes the length of a range in its middle, if there is room.
pub fn label(
    surface: &mut dyn Surface,
    (x, plot): (Scale, Area),
    axis: Axis,
    range: Window,
    labels: &mut Labels,
    palette: &Palette,
) {
    let (left, right) = (x.pixel(range.start).max(plot.x), x.pixel(range.end).min(plot.right()));
    let text = length(axis, range);
    let width = surface.text_width(&text, Font::Strong) + 12.0;
    if right - left < width + 4.0 {
        return;
    }
    let middle = (left + right) / 2.0;
    let at = |row: u32| Area { x: middle - width / 2.0, y: plot.y + 3.0 + 20.0 * f64::from(row), width, height: 18.0 };
    let Some(area) = labels.place(plot, (0..4).map(at)) else { return };
    surface.fill(area, palette.background.at(0.85));
    surface.text(&text, (middle, area.y + 9.0), Align::Middle, Font::Strong, palette.text.into());
}

/// Formats the length of a part of the axis.
fn length(axis: Axis, range: Window) -> String {
    match axis {
        Axis::Time => Micros(range.length().round() as i64).to_string(),
        Axis::Event => counted((range.end.floor() - range.start.floor()).max(0.0) as u64, "event"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::surface::log::SurfaceLog;

    fn drawn(start: f64, end: f64) -> Vec<String> {
        let plot = Area { x: 10.0, y: 0.0, width: 1000.0, height: 50.0 };
        let x = Scale::new(Window { start: 0.0, end: 1000.0 }, plot.x, plot.right());
        let (mut log, range) = (SurfaceLog::default(), Window { start, end });
        draw(&mut log, x, plot, range, &Palette::dark());
        label(&mut log, (x, plot), Axis::Event, range, &mut Labels::default(), &Palette::dark());
        log.0
    }

    #[test]
    fn a_range_is_tinted_between_its_edges_and_clipped_to_the_plot() {
        let count = |log: &[String], what: &str| log.iter().filter(|line| line.starts_with(what)).count();
        let inside = drawn(100.0, 600.0);
        assert!(inside[0].starts_with("fill 110,0 500x50"), "{inside:?}");
        assert_eq!((count(&inside, "vertical"), count(&inside, "text \"500 events\"")), (2, 1), "{inside:?}");
        let cut = drawn(900.0, 5000.0);
        assert!(cut[0].starts_with("fill 910,0 100x50"), "{cut:?}");
        assert_eq!(count(&cut, "vertical"), 1);
        assert_eq!(count(&drawn(100.0, 103.0), "text"), 0, "no room for its length");
        assert_eq!(drawn(2000.0, 3000.0).iter().filter(|line| !line.starts_with("text")).count(), 0);
    }
}
