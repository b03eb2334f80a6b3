//! The request that failed, drawn as an outlined block over the gap that came closest to it.

use shared::diagnosis::FailedRequest;
use shared::query::{SegmentRow, Segments};
use shared::units::{Address, Bytes};

use super::picture::MARGIN;
use crate::render::palette::Palette;
use crate::render::shape::iter;
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

    /// Returns where it is drawn, in pixels of the whole map: from the start of the gap, as long as the request. A long
    /// segment goes on in further rows of the map; behind its end, the block goes on to the end of the row.
    fn areas(&self, map: &Segments, width: f64) -> Vec<Area> {
        let holds = |row: &SegmentRow| self.gap >= row.address && self.gap.0 - row.address.0 < row.size.max(1);
        let Some(number) = map.segments.iter().position(holds) else { return Vec::new() };
        let Some(row) = map.segments.get(number) else { return Vec::new() };
        let parts: Vec<_> = iter(&map.outlines).filter(|part| part.id as usize == number).collect();
        let length: f64 = parts.iter().map(|part| f64::from(part.x.1 - part.x.0)).sum();
        let per_byte = length / row.size.max(1) as f64;
        let mut before = (self.gap.0 - row.address.0) as f64 * per_byte;
        let mut rest = (self.requested as f64 * per_byte).max(LEAST);
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
            last.width += rest.min(width - last.right()).max(0.0);
        }
        areas
    }

    /// Draws the block with its label. `top` is where the map begins, `width` the width of the map.
    pub fn draw(&self, surface: &mut dyn Surface, map: &Segments, (top, width): (f64, f64), palette: &Palette) {
        let areas = self.areas(map, width).into_iter();
        let blocks: Vec<Area> = areas
            .map(|area| Area { x: area.x + MARGIN, y: area.y + top - 2.0, height: area.height + 4.0, ..area })
            .collect();
        for block in &blocks {
            surface.fill(*block, palette.oom.at(0.18));
            surface.outline(*block, 2.0, palette.oom.into());
        }
        let Some(block) = blocks.first() else { return };
        let text = format!("{} failed; this gap has {}", Bytes(self.requested), Bytes(self.gap_bytes));
        let length = surface.text_width(&text, Font::Strong) + 2.0 * SPACE;
        let x = block.x.min(width + MARGIN - length).max(MARGIN);
        // Below its row, which the next row leaves free for labels, or above the last one.
        let below = block.bottom() + LINE <= f64::from(map.height) + top + LINE;
        let y = if below { block.bottom() } else { block.y - LINE };
        surface.fill(Area { x, y, width: length, height: LINE }, palette.background.at(0.9));
        surface.text(&text, (x + SPACE, y + LINE / 2.0), Align::Start, Font::Strong, palette.oom.into());
    }
}
