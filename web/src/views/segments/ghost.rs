//! The request that failed, drawn as an outlined block over the gap that came closest to it. It is as long as the request,
//! or has a break where there is no room.

use query::diagnosis::FailedRequest;
use query::{SegmentRow, Segments};
use trace::units::{Address, Bytes};

use super::picture::MARGIN;
use super::spot;
use crate::render::palette::Palette;
use crate::render::shape::{Quad, iter};
use crate::render::surface::{Align, Area, Font, Surface};

/// Room around the label in pixels.
const SPACE: f64 = 4.0;
/// Height of the label in pixels.
const LINE: f64 = 16.0;
/// Least length of the block in pixels.
const LEAST: f64 = 6.0;

/// A failed request on the segment map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ghost {
    gap: Address,
    gap_bytes: u64,
    requested: u64,
}

impl Ghost {
    /// Returns the block of a request that failed; `None` if no gap could have served any part of it.
    pub fn new(failure: &FailedRequest) -> Option<Self> {
        let (gap, gap_bytes) = failure.nearest_gap?;
        Some(Self { gap, gap_bytes, requested: failure.requested })
    }

    /// Returns where it is drawn, in pixels of the whole map: from the start of the gap, to the scale of the gap's segment. A
    /// long segment goes on in further rows of the map. Behind the segment's end, the block goes on to the end of the row;
    /// returns too whether it is longer than that.
    fn areas(&self, map: &Segments, width: f64) -> (Vec<Area>, bool) {
        let nothing = (Vec::new(), false);
        let holds = |row: &SegmentRow| self.gap >= row.address && self.gap.0 - row.address.0 < row.size.max(1);
        let Some(number) = map.segments.iter().position(holds) else { return nothing };
        let Some(row) = map.segments.get(number) else { return nothing };
        let parts: Vec<_> = iter(&map.outlines).filter(|part| part.id as usize == number).collect();
        let size = row.size.max(1) as f64;
        let seen: f64 = parts.iter().map(|part| f64::from(part.x.1 - part.x.0)).sum();
        let packed = (width - f64::from(map.left)) * f64::from(map.query.zoom.max(1.0));
        let per_byte = map.per_byte.unwrap_or(packed / size);
        let mut before = (self.gap.0 - row.address.0) as f64 * per_byte;
        let length = self.requested as f64 * per_byte;
        // Of a segment that is only partly in view, the answer has the rows in view.
        let hidden = size * per_byte - seen;
        if hidden > 1.0 && parts.first().is_some_and(|part| f64::from(part.x.0 - map.left) < 0.5 && is_first(map, part))
        {
            before -= hidden;
            if before < 0.0 {
                return nothing;
            }
        }
        let mut rest = length.max(LEAST);
        let mut areas: Vec<Area> = Vec::new();
        for part in parts {
            let (left, right) = (f64::from(part.x.0), f64::from(part.x.1));
            let (top, bottom) = (f64::from(part.y.0), f64::from(part.y.1));
            let skipped = before.min(right - left);
            before -= skipped;
            let wide = rest.min(right - left - skipped);
            if wide > 0.0 {
                rest -= wide;
                areas.push(Area { x: left + skipped, y: top, width: wide, height: bottom - top });
            }
        }
        if let Some(last) = areas.last_mut() {
            let more = rest.min(width - last.right()).max(0.0);
            last.width += more;
            rest -= more;
        }
        (areas, rest > 1.0)
    }

    /// Draws the block with its label. `top` is where the map begins, `bounds` the area that it has.
    pub fn draw(&self, surface: &mut dyn Surface, map: &Segments, (top, bounds): (f64, Area), palette: &Palette) {
        let (areas, is_cut) = self.areas(map, bounds.width);
        let blocks: Vec<Area> = areas
            .iter()
            .map(|area| Area { x: area.x + MARGIN, y: area.y + top - 2.0, height: area.height + 4.0, ..*area })
            .collect();
        for block in &blocks {
            surface.fill(*block, palette.oom.at(0.18));
            surface.outline(*block, 2.0, palette.oom.into());
        }
        let (Some(block), Some(last)) = (blocks.first(), blocks.last()) else { return };
        if is_cut {
            cut(surface, *last, palette);
        }
        let text = format!("needs {}, gap {}", Bytes(self.requested), Bytes(self.gap_bytes));
        let size = (surface.text_width(&text, Font::Strong) + 2.0 * SPACE, LINE);
        if let Some(area) = spot::near(map, &areas, *block, size, (top, bounds)) {
            surface.fill(area, palette.background.into());
            surface.outline(area, 1.0, palette.oom.into());
            let at = (area.x + SPACE, area.y + LINE / 2.0);
            surface.text(&text, at, Align::Start, Font::Strong, palette.oom.into());
        }
    }
}

/// Returns whether a part of a segment is in the first row of an answer that doesn't begin with the map.
fn is_first(map: &Segments, part: &Quad) -> bool {
    part.y.0 > 0.5 && iter(&map.outlines).all(|other| other.y.0 >= part.y.0)
}

/// Width of a break, and where it begins before the end of its block, in pixels.
const BREAK: (f64, f64) = (4.0, 12.0);

/// Draws a break through a block that is longer than it is drawn.
fn cut(surface: &mut dyn Surface, block: Area, palette: &Palette) {
    let (wide, from) = BREAK;
    let left = (block.right() - from).max(block.x);
    let edge = |x: f64, i: u32| {
        let y = block.y - 1.0 + (block.height + 2.0) * f64::from(i) / 4.0;
        (x + if i.is_multiple_of(2) { 0.0 } else { 4.0 }, y)
    };
    let there = (0..=4).map(|i| edge(left, i));
    let line: Vec<_> = there.chain((0..=4).rev().map(|i| edge(left + wide, i))).collect();
    surface.polygon(&line, palette.background.into());
    surface.contour(&line, 1.0, palette.oom.into());
}
