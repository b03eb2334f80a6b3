//! A request that failed, in words and as an outlined block: the same on the timeline, the heatmap and in the text twin.

use shared::diagnosis::{Cause, FailedRequest};
use shared::units::Bytes;

use crate::render::palette::Palette;
use crate::render::surface::{Align, Area, Font, Surface};

/// Least width of the block in pixels.
const WIDTH: f64 = 132.0;
/// Room on either side of its label in pixels.
const SPACE: f64 = 6.0;
/// Least height of the block in pixels.
const LEAST: f64 = 3.0;
/// Height of a line of text.
const LINE: f64 = 14.0;
/// Height with room for two lines of text.
pub const ROOM: f64 = 2.0 * LINE + 6.0;

/// Names the request.
pub fn request(failure: &FailedRequest) -> String {
    format!("Request: {}", Bytes(failure.requested))
}

/// Says why the request did not fit.
pub fn reason(failure: &FailedRequest) -> String {
    match failure.cause {
        Cause::Fragmented | Cause::OutOfReach => {
            format!("Largest it could use: {}", Bytes(failure.largest_servable))
        }
        _ if failure.missing > 0 => format!("{} missing", Bytes(failure.missing)),
        _ => format!("Driver free: {}", Bytes(failure.driver_free)),
    }
}

/// Returns the block of a request that failed at pixel `x`, between two heights in pixels, as far as it is in the plot;
/// `None` if it isn't. It stands after the failure where there is room, otherwise before it.
pub fn block(
    surface: &mut dyn Surface,
    plot: Area,
    x: f64,
    (top, bottom): (f64, f64),
    texts: &[String],
) -> Option<Area> {
    let is_across = x >= plot.x - 0.5 && x <= plot.right() + 0.5;
    let top = top.min(bottom - LEAST);
    if !is_across || bottom < plot.y || top > plot.bottom() {
        return None;
    }
    let widest = texts.iter().map(|text| surface.text_width(text, Font::Strong)).fold(0.0, f64::max);
    let width = WIDTH.max(widest + 2.0 * SPACE).min(plot.width);
    let left = if x + width <= plot.right() { x } else { (x - width).max(plot.x) };
    let (top, bottom) = (top.max(plot.y), bottom.min(plot.bottom()));
    Some(Area { x: left, y: top, width, height: (bottom - top).max(LEAST) })
}

/// Draws the block, without its label.
pub fn ground(surface: &mut dyn Surface, block: Area, palette: &Palette) {
    surface.fill(block, palette.background.at(0.9));
    surface.fill(block, palette.oom.at(0.14));
    surface.outline(block, 1.5, palette.oom.into());
}

/// Writes the label of a block: inside where there is room, otherwise over it, or below it where the view ends.
pub fn label(surface: &mut dyn Surface, plot: Area, block: Area, texts: &[String], palette: &Palette) {
    let lines = texts.len() as f64;
    let fits_inside = block.height >= lines * LINE + 6.0;
    let first = match fits_inside {
        true => block.y + block.height / 2.0 - (lines - 1.0) * LINE / 2.0,
        false if block.y - lines * LINE - 4.0 > plot.y => block.y - lines * LINE + 3.0,
        false => block.bottom() + LINE / 2.0 + 4.0,
    };
    if !fits_inside {
        let height = lines * LINE + 2.0;
        surface.fill(Area { y: first - LINE / 2.0 - 1.0, height, ..block }, palette.background.at(0.85));
    }
    let mut line = first;
    for (text, font) in texts.iter().zip([Font::Strong, Font::Label]) {
        surface.text(text, (block.x + SPACE, line), Align::Start, font, palette.text.into());
        line += LINE;
    }
}
