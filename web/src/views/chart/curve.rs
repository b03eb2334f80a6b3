//! A curve over time.

use query::Window;
use trace::order::Within;

use crate::render::color::Rgb;
use crate::render::scale::Scale;
use crate::render::surface::{Area, Surface};

/// Draws a curve: in each of the columns of a window from its least to its most bytes, as far as that is in the plot, and
/// nothing in a column without. Returns where it ends.
pub fn draw(
    surface: &mut dyn Surface,
    (x, y): (Scale, Scale),
    plot: Area,
    (window, columns): (Window, u32),
    value: impl Fn(usize) -> Option<(u64, u64)>,
    (color, width): (Rgb, f64),
) -> Option<(f64, f64)> {
    let unit = window.length() / f64::from(columns.max(1));
    let pixel = |column: usize| x.pixel(window.start + column as f64 * unit).within(plot.x, plot.right());
    let height = |bytes: u64| y.pixel(bytes as f64);
    let mut end = None;
    let mut from = 0;
    let columns = columns as usize;
    while from < columns {
        let bytes = value(from);
        let mut to = from + 1;
        while to < columns && value(to) == bytes {
            to += 1;
        }
        let (left, right) = (pixel(from), pixel(to));
        from = to;
        let Some((least, most)) = bytes else { continue };
        let (top, bottom) = (height(most), height(least));
        if right > left && bottom >= plot.y && top <= plot.bottom() {
            let (top, bottom) = (top.max(plot.y), bottom.min(plot.bottom()));
            let area = Area { x: left, y: top - width / 2.0, width: right - left, height: bottom - top + width };
            surface.fill(area, color.into());
            end = Some((right, (top + bottom) / 2.0));
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::palette::Palette;
    use crate::render::surface::log::SurfaceLog;

    #[test]
    fn a_curve_is_drawn_once_for_columns_that_are_alike() {
        let plot = Area { x: 10.0, y: 0.0, width: 40.0, height: 100.0 };
        let window = Window { start: 0.0, end: 4.0 };
        let scales = (Scale::new(window, 10.0, 50.0), Scale::new(Window { start: 0.0, end: 100.0 }, 100.0, 0.0));
        let value =
            |column: usize| [Some((50, 50)), Some((50, 50)), Some((20, 80)), None].get(column).copied().flatten();
        let mut log = SurfaceLog::default();
        let ink = Palette::dark().text;
        let end = draw(&mut log, scales, plot, (window, 4), value, (ink, 2.0));
        assert_eq!(end, Some((40.0, 50.0)), "the run stopped in the third column");
        let css = ink.css();
        assert_eq!(log.0, [format!("fill 10,49 20x2 {css}"), format!("fill 30,19 10x62 {css}")]);
        // What lies above or below the plot is cut off.
        let low = (scales.0, Scale::new(Window { start: 30.0, end: 60.0 }, 100.0, 0.0));
        let mut log = SurfaceLog::default();
        draw(&mut log, low, plot, (window, 4), value, (ink, 2.0));
        assert_eq!(log.0.last(), Some(&format!("fill 30,-1 10x102 {css}")));
        let high = (scales.0, Scale::new(Window { start: 90.0, end: 120.0 }, 100.0, 0.0));
        let mut log = SurfaceLog::default();
        assert_eq!(draw(&mut log, high, plot, (window, 4), value, (ink, 2.0)), None);
        assert!(log.0.is_empty());
    }
}
