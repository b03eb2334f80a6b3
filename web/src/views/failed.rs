//! A request that failed, in words and as an outlined mark: the same on the timeline and the heatmap.

use query::diagnosis::FailedRequest;
use trace::order::Within;
use trace::units::Bytes;

use crate::render::labels::Labels;
use crate::render::palette::Palette;
use crate::render::surface::{Align, Area, Font, Surface};

/// Width of the mark in pixels.
const WIDTH: f64 = 14.0;
/// Room around its label in pixels.
const SPACE: f64 = 6.0;
/// Least height of the mark in pixels.
const LEAST: f64 = 3.0;
/// Height of a line of text.
const LINE: f64 = 14.0;
/// How many steps above and below the middle of the mark the label may be.
const STEPS: i32 = 12;

/// Names the request.
pub fn request(failure: &FailedRequest) -> String {
    format!("Request: {}", Bytes(failure.requested))
}

/// Names the largest gap that the request could have used.
pub fn largest_gap(failure: &FailedRequest) -> String {
    format!("Largest gap for it: {}", Bytes(failure.largest_servable))
}

/// Says that the driver had too little for the request.
pub fn driver_free(failure: &FailedRequest) -> String {
    format!("Driver free: {}", Bytes(failure.driver_free))
}

/// Returns the mark of a request that failed at pixel `x`, between two heights in pixels, as far as it is in the plot;
/// `None` if it isn't. It stands after the failure where there is room, otherwise before it. Its width says nothing: a
/// request has no duration.
pub fn mark(plot: Area, x: f64, (top, bottom): (f64, f64)) -> Option<Area> {
    let is_across = x >= plot.x - 0.5 && x <= plot.right() + 0.5;
    let top = top.min(bottom - LEAST);
    if !is_across || bottom < plot.y || top > plot.bottom() {
        return None;
    }
    let x = if x + WIDTH <= plot.right() { x } else { (x - WIDTH).max(plot.x) };
    let (top, bottom) = (top.max(plot.y), bottom.min(plot.bottom()));
    Some(Area { x, y: top, width: WIDTH, height: (bottom - top).max(LEAST) })
}

/// Draws the mark, without its label.
pub fn ground(surface: &mut dyn Surface, mark: Area, palette: &Palette) {
    surface.fill(mark, palette.background.at(0.6));
    surface.fill(mark, palette.oom.at(0.3));
    surface.outline(mark, 1.5, palette.oom.into());
}

/// Writes the label in a box beside the mark, where it is free, and returns the box. Of the places that are, the first one
/// that hides nothing is taken, if there is one.
pub fn label(
    surface: &mut dyn Surface,
    plot: Area,
    mark: Area,
    texts: &[String],
    (labels, hides_nothing): (&mut Labels, impl Fn(Area) -> bool),
    palette: &Palette,
) -> Option<Area> {
    let widest = texts.iter().map(|text| surface.text_width(text, Font::Strong)).fold(0.0, f64::max);
    let (width, height) = (widest + 2.0 * SPACE, texts.len() as f64 * LINE + 6.0);
    let within = |y: f64| y.within(plot.y, (plot.bottom() - height).max(plot.y));
    let middle = mark.y + (mark.height - height) / 2.0;
    let heights = [mark.y, middle, mark.bottom() - height, mark.y - height, mark.bottom()];
    let others = (-STEPS..=STEPS).map(|step| middle + f64::from(step) * SPACE);
    let heights: Vec<f64> = heights.into_iter().chain(others).map(within).collect();
    let sides = [mark.right() + SPACE, mark.x - SPACE - width];
    let places: Vec<Area> = (0..STEPS)
        .flat_map(|step| heights.iter().flat_map(move |y| sides.map(|x| (x - f64::from(step) * 2.0 * SPACE, *y))))
        .filter(|(x, _)| *x >= mark.right() || x + width <= mark.x)
        .map(|(x, y)| Area { x, y, width, height })
        .chain([mark.y - height - SPACE, mark.bottom() + SPACE].map(|y| {
            let x = mark.x.within(plot.x, (plot.right() - width).max(plot.x));
            Area { x, y, width, height }
        }))
        .collect();
    let best = places.iter().filter(|area| hides_nothing(**area));
    let area = labels.place(plot, best.chain(&places).copied())?;
    surface.fill(area, palette.background.at(0.9));
    surface.outline(area, 1.0, palette.oom.at(0.6));
    let mut line = area.y + 3.0 + LINE / 2.0;
    for (i, text) in texts.iter().enumerate() {
        let font = if i == 0 { Font::Strong } else { Font::Label };
        surface.text(text, (area.x + SPACE, line), Align::Start, font, palette.text.into());
        line += LINE;
    }
    Some(area)
}
