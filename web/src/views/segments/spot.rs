//! A place for a label in the map that hides nothing: over free memory, or where there is nothing.

use query::{Paint, Segments};
use trace::order::{SortFew, Within};

use super::picture::MARGIN;
use crate::render::shape::iter;
use crate::render::surface::Area;

/// Rows further away than this, in pixels, have nothing to do with what is labelled.
const NEAR: f64 = 90.0;
/// Room around blocks, which may be outlined, in pixels.
const AROUND: f64 = 3.0;

/// Returns the nearest place for a label of a size: in a row of the map where no block is, or below the map. `areas` are
/// those of what is labelled, in pixels of the map, and `block` the first of them on the screen. `top` is where the map
/// begins, `bounds` the area that it has.
pub fn near(
    map: &Segments,
    areas: &[Area],
    block: Area,
    (width, height): (f64, f64),
    (top, bounds): (f64, Area),
) -> Option<Area> {
    let mut rows: Vec<(f64, f64)> =
        iter(&map.outlines).map(|quad| (f64::from(quad.y.0), f64::from(quad.y.1))).collect();
    rows.retain(|row| (row.0 + top - block.y).abs() < NEAR);
    rows.sort_few_by(|a, b| a.0.total_cmp(&b.0));
    rows.dedup_by(|a, b| a.0 == b.0);
    let mut best: Option<(f64, Area)> = None;
    let mut offer = |area: Area| {
        let distance = (area.y - block.y).abs() + (area.x - block.x).abs() / 4.0;
        if area.is_within(bounds) && best.is_none_or(|best| distance < best.0) {
            best = Some((distance, area));
        }
    };
    for (from, to) in rows {
        let is_in = |y: (f32, f32)| f64::from(y.0) < to && f64::from(y.1) > from;
        let blocks = iter(&map.blocks).filter(|quad| is_in(quad.y) && quad.paint.base() != Paint::CACHED);
        let edges = iter(&map.outlines).filter(|quad| is_in(quad.y)).flat_map(|quad| {
            let edge = |x: f32| (f64::from(x), f64::from(x));
            // A row's end is no edge: nothing is beside it.
            [edge(quad.x.0), edge(quad.x.1)]
        });
        let ends = areas.iter().filter(|area| area.y < to && area.bottom() > from).flat_map(|area| {
            // With its break.
            [(area.x, area.x), (area.right() - 12.0, area.right())]
        });
        let mut taken: Vec<(f64, f64)> =
            blocks.map(|quad| (f64::from(quad.x.0), f64::from(quad.x.1))).chain(edges).chain(ends).collect();
        taken.push((bounds.right() - MARGIN + AROUND, f64::INFINITY));
        taken.sort_few_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = f64::from(map.left) - AROUND;
        for (start, end) in taken {
            let (left, right) = (free + AROUND, start - AROUND);
            if right - left >= width {
                let x = (block.x - MARGIN + AROUND).within(left, right - width);
                offer(Area { x: x + MARGIN, y: top + (from + to - height) / 2.0, width, height });
            }
            free = free.max(end);
        }
    }
    let x = block.x.within(bounds.x, (bounds.right() - width).max(bounds.x));
    offer(Area { x, y: top + f64::from(map.height) + AROUND, width, height });
    best.map(|best| best.1)
}

#[cfg(test)]
mod tests {
    use query::Quads;

    use super::*;
    use crate::views::segments::picture::tests::map;

    const BOUNDS: Area = Area { x: MARGIN, y: 0.0, width: 1000.0, height: 500.0 };

    /// Two rows: one of a block and a gap of 300 pixels, one full of blocks.
    fn rows() -> Segments {
        let mut map = map();
        (map.left, map.height) = (100.0, 48.0);
        (map.blocks, map.outlines) = (Quads::default(), Quads::default());
        map.outlines.push((100.0, 1000.0), (0.0, 20.0), Paint::OTHER, 0);
        map.outlines.push((100.0, 1000.0), (28.0, 48.0), Paint::OTHER, 1);
        map.blocks.push((100.0, 500.0), (0.0, 20.0), Paint::slot(1), 1);
        map.blocks.push((500.0, 800.0), (0.0, 20.0), Paint::CACHED, Quads::NONE);
        map.blocks.push((800.0, 1000.0), (0.0, 20.0), Paint::slot(1), 2);
        map.blocks.push((100.0, 1000.0), (28.0, 48.0), Paint::slot(2), 3);
        map
    }

    #[test]
    fn a_label_lies_over_free_memory_or_below_the_map() {
        let map = rows();
        let area = Area { x: 500.0, y: 0.0, width: 500.0, height: 20.0 };
        let block = Area { x: area.x + MARGIN, ..area };
        let at = |width: f64| near(&map, &[area], block, (width, 16.0), (0.0, BOUNDS)).map(|area| (area.x, area.y));
        assert_eq!(at(200.0), Some((503.0 + MARGIN, 2.0)), "in the gap");
        assert_eq!(at(400.0), Some((500.0 + MARGIN, 51.0)), "below the map");
        assert_eq!(at(2000.0), None);
        let low = near(&map, &[area], block, (400.0, 16.0), (460.0, BOUNDS));
        assert_eq!(low, None, "the view ends before the map does");
    }

    #[test]
    fn a_label_never_lies_over_a_block_or_an_edge() {
        let map = rows();
        for left in [100.0, 450.0, 520.0, 700.0, 990.0] {
            for width in [20.0, 90.0, 250.0, 290.0] {
                let area = Area { x: left, y: 28.0, width: 30.0, height: 20.0 };
                let block = Area { x: left + MARGIN, ..area };
                let found = near(&map, &[area], block, (width, 16.0), (0.0, BOUNDS)).unwrap();
                for quad in iter(&map.blocks).filter(|quad| quad.paint != Paint::CACHED) {
                    let (x, y) = (f64::from(quad.x.0) + MARGIN, f64::from(quad.y.0));
                    let drawn = Area { x, y, width: f64::from(quad.x.1 - quad.x.0), height: 20.0 };
                    assert!(!found.overlaps(drawn), "{left} {width}: {found:?} {drawn:?}");
                }
            }
        }
    }
}
