//! The most that the device let the process reserve: a dashed line across a picture of memory, with its number.

use trace::units::Bytes;

use super::gesture::PlotArea;
use crate::render::labels::Labels;
use crate::render::palette::Palette;
use crate::render::surface::{Align, Area, Font, Surface};

/// The height of the number, and its distance from the left end.
const NUMBER: (f64, f64) = (14.0, 6.0);

/// Returns the part of the line between two x coordinates that no label may cover; `None` if the line is above the plot.
fn part(bytes: u64, plot_area: &PlotArea, left: f64, right: f64) -> Option<Area> {
    let y = plot_area.y().pixel(bytes as f64);
    (y >= plot_area.plot.y).then_some(Area { x: left, y: y - 1.0, width: right - left, height: 3.0 })
}

/// Draws the line of a number of bytes up to an x coordinate, and keeps labels off its part from `left` on.
pub fn draw(
    surface: &mut dyn Surface,
    plot_area: &PlotArea,
    bytes: u64,
    (left, right): (f64, f64),
    labels: &mut Labels,
    palette: &Palette,
) {
    let Some(line) = part(bytes, plot_area, left, right) else { return };
    surface.horizontal(line.y + 1.0, plot_area.plot.x, right, true, palette.oom.into());
    labels.keep_out(line);
}

/// Writes the number at the left end of the line, above it or, if there is no room, below. Other lines don't go through it.
pub fn label(surface: &mut dyn Surface, plot_area: &PlotArea, bytes: u64, labels: &mut Labels, palette: &Palette) {
    let plot = plot_area.plot;
    let Some(line) = part(bytes, plot_area, plot.x, plot.right()) else { return };
    let text = format!("limit {}", Bytes(bytes));
    let width = surface.text_width(&text, Font::Label);
    let places = [line.y - NUMBER.0, line.bottom()].map(|y| Area { x: plot.x + NUMBER.1, y, width, height: NUMBER.0 });
    if let Some(area) = labels.place(plot, places) {
        surface.fill(area, palette.background.at(0.8));
        surface.text(&text, (area.x, area.y + NUMBER.0 / 2.0), Align::Start, Font::Label, palette.oom.into());
    }
}
