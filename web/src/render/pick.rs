//! Finds the shape under a pixel.
//!
//! An answer has no more rectangles than its picture can show, so one pass over them (a few tenths of a millisecond,
//! once per pointer movement) needs no index and no readback from the GPU.

use query::Quads;
use raster::Transform;

use super::shape::{self, Quad};

/// Returns the rectangle at a pixel and its index: the last one drawn there. If there is none, the nearest whose edge
/// is within `slack` pixels, so that thin ones can be hit.
pub fn pick(quads: &Quads, transform: Transform, pixel: (f64, f64), slack: f64) -> Option<(usize, Quad)> {
    let unit = |(scale, offset): (f32, f32), at: f64| {
        let scale = f64::from(scale);
        if scale == 0.0 { None } else { Some(((at - f64::from(offset)) / scale, (slack / scale).abs())) }
    };
    let ((x, slack_x), (y, slack_y)) = (unit(transform.x, pixel.0)?, unit(transform.y, pixel.1)?);
    let (left, right) = ((x - slack_x) as f32, (x + slack_x) as f32);
    let (low, high) = ((y - slack_y) as f32, (y + slack_y) as f32);
    let mut best: Option<(f64, usize, Quad)> = None;
    for (i, quad) in shape::iter(quads).enumerate() {
        if quad.x.0 > right || quad.x.1 < left || quad.y.0 > high || quad.y.1 < low {
            continue;
        }
        let away = |edges: (f32, f32), at: f64, scale: f32| {
            let (from, to) = (f64::from(edges.0), f64::from(edges.1));
            // Half open, like pixels: a shared edge belongs to one of the two.
            let outside = if at < from {
                from - at
            } else if at >= to {
                (at - to).max(f64::MIN_POSITIVE)
            } else {
                0.0
            };
            outside * f64::from(scale.abs())
        };
        let distance = away(quad.x, x, transform.x.0).max(away(quad.y, y, transform.y.0));
        if best.is_none_or(|(nearest, ..)| distance <= nearest) {
            best = Some((distance, i, quad));
        }
    }
    best.filter(|(distance, ..)| *distance == 0.0 || *distance <= slack).map(|(_, i, quad)| (i, quad))
}

#[cfg(test)]
mod tests {
    use query::Paint;

    use super::*;

    #[test]
    fn picking_returns_the_topmost_the_nearest_or_none() {
        let mut quads = Quads::default();
        for (id, x, y) in [(1, (0.0, 10.0), (0.0, 4.0)), (2, (10.0, 20.0), (0.0, 4.0)), (3, (2.0, 2.1), (0.0, 4.0))] {
            quads.push(x, y, Paint::ALLOCATED, id);
        }
        quads.push((4.0, 8.0), (1.0, 2.0), Paint::ALLOCATED, 4);
        // Two pixels per unit, upwards from pixel 100.
        let transform = Transform { x: (2.0, 0.0), y: (-2.0, 100.0) };
        let check = |pixel, slack, want: Option<u32>| {
            assert_eq!(pick(&quads, transform, pixel, slack).map(|(_, quad)| quad.id), want, "{pixel:?}");
        };
        check((1.0, 99.0), 0.0, Some(1));
        check((20.0, 99.0), 0.0, Some(2));
        check((12.0, 97.0), 0.0, Some(4));
        check((4.05, 99.0), 0.0, Some(3));
        check((41.0, 99.0), 2.0, Some(2));
        check((41.0, 99.0), 0.5, None);
        check((1.0, 80.0), 2.0, None);
        assert_eq!(pick(&quads, Transform { x: (0.0, 0.0), y: (1.0, 0.0) }, (1.0, 1.0), 1.0), None);
    }
}
