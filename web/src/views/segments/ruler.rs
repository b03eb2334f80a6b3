//! The ruler above the map. It measures bytes from the start of a row, at the scale of all segments or of the segment
//! that is hovered or selected.

use query::{SegmentRow, Segments, Window};

use super::picture::{MARGIN, RULER};
use crate::render::canvas::Size;
use crate::render::palette::Palette;
use crate::render::surface::{Align, Area, Font, Surface};
use crate::render::ticks;

/// Room for a label and the space around it, in pixels.
const LABEL: f64 = 84.0;
/// The least room between two labels in pixels.
const SPACE: f64 = 8.0;

/// Returns the ticks: the distance in pixels from the start of the rows, and the label. `row` is the hovered or
/// selected segment.
fn marks(map: &Segments, row: Option<&SegmentRow>, width: f64) -> Vec<(f64, String)> {
    let zoom = f64::from(map.query.zoom.max(1.0));
    // In the packed layout, each segment has its own scale.
    let per_byte = map.per_byte.or_else(|| row.map(|row| width * zoom / row.size.max(1) as f64));
    let Some(per_byte) = per_byte.filter(|per_byte| *per_byte > 0.0 && width > 0.0) else {
        // Without a segment, the ruler shows shares of the row.
        return (0..=4)
            .map(|i| f64::from(i) / 4.0)
            .map(|share| (share * width, format!("{} %", (share * 100.0 / zoom).round() as i64)))
            .collect();
    };
    let ticks = ticks::bytes(Window { start: 0.0, end: width / per_byte }, width / LABEL);
    ticks.into_iter().map(|tick| (tick.at * per_byte, tick.label)).collect()
}

/// Draws the ruler. `row` is the hovered or selected segment.
pub fn draw(surface: &mut dyn Surface, map: &Segments, row: Option<&SegmentRow>, size: Size, palette: &Palette) {
    surface.fill(Area { x: 0.0, y: 0.0, width: size.width, height: RULER }, palette.raised.into());
    surface.horizontal(RULER, 0.0, size.width, false, palette.line.into());
    let left = MARGIN + f64::from(map.left);
    let width = size.width - MARGIN - left;
    if map.left > 0.0 {
        let title = if map.per_byte.is_some() { "row begins at" } else { "address, size" };
        surface.text(title, (MARGIN, RULER / 2.0), Align::Start, Font::Label, palette.text_dim.into());
    }
    let mut free_from = left - SPACE;
    for (at, label) in marks(map, row, width) {
        let x = left + at;
        surface.vertical(x, RULER - 5.0, RULER, palette.text_dim.into());
        let length = surface.text_width(&label, Font::Label);
        // The last label ends at the edge.
        let start = (x + 3.0).min(size.width - length - 2.0);
        if start >= free_from + SPACE {
            surface.text(&label, (start, RULER / 2.0), Align::Start, Font::Label, palette.text_dim.into());
            free_from = start + length;
        }
    }
}

#[cfg(test)]
mod tests {
    use trace::units::{Address, PoolId, Stream};

    use super::*;
    use crate::render::surface::log::SurfaceLog;
    use crate::views::segments::picture::tests::map;

    fn row(size: u64) -> SegmentRow {
        SegmentRow {
            address: Address(0),
            size,
            active: 0,
            stream: Stream(0),
            pool: PoolId::default(),
            is_small: false,
            is_expandable: false,
        }
    }

    #[test]
    fn bytes_lie_where_the_scale_puts_them() {
        let mut map = map();
        let labels = |map: &Segments, row: Option<&SegmentRow>| marks(map, row, 400.0);
        assert_eq!(labels(&map, None)[2], (200.0, "50 %".to_owned()));
        map.query.zoom = 2.0;
        assert_eq!(labels(&map, None)[4], (400.0, "50 %".to_owned()));
        map.query.zoom = 1.0;
        assert_eq!(labels(&map, Some(&row(4 << 20)))[1], (100.0, "1 MiB".to_owned()));
        map.per_byte = Some(100.0 / 1024.0);
        assert_eq!(labels(&map, None).last(), Some(&(400.0, "4 KiB".to_owned())));
    }

    #[test]
    fn labels_never_touch() {
        let mut map = map();
        for width in [160.0, 300.0, 700.0, 1400.0] {
            for per_byte in [None, Some(1e-9), Some(0.001), Some(3.0)] {
                map.per_byte = per_byte;
                let mut log = SurfaceLog::default();
                draw(&mut log, &map, None, Size { width, height: 100.0, ratio: 1.0 }, &Palette::light());
                let span = |line: &String| {
                    let (text, at) = line.strip_prefix("text \"")?.split_once("\" at ")?;
                    let x: f64 = at.split(',').next()?.parse().ok()?;
                    Some((x, x + 6.0 * text.chars().count() as f64))
                };
                let mut spans: Vec<(f64, f64)> = log.0.iter().filter_map(span).collect();
                spans.sort_by(|a, b| a.0.total_cmp(&b.0));
                assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{width} {per_byte:?}: {spans:?}");
            }
        }
    }
}
