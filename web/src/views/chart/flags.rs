//! The flags of out-of-memory events, in the strip above the shapes.

use trace::units::Bytes;

use super::gesture::PlotArea;
use super::marks::{CURSOR_STRIP, RIGHT, is_across};
use crate::render::labels::Labels;
use crate::render::palette::Palette;
use crate::render::scale::Scale;
use crate::render::surface::{Align, Area, Font, Surface};

/// From more flags than this in view, they have short lines.
const MANY_FLAGS: usize = 16;
/// Flags closer than this share a label.
const LABEL_ROOM: f64 = 24.0;

/// An out-of-memory event.
#[derive(Clone, Debug, PartialEq)]
pub struct Oom {
    /// Its coordinate.
    pub x: f64,
    /// The position just after it.
    pub position: u32,
    /// The bytes of the failed request.
    pub bytes: u64,
}

/// Draws the flags that are in view. `handle` is where the cursor's handle is.
pub fn draw(surface: &mut dyn Surface, plot_area: &PlotArea, ooms: &[Oom], handle: Option<Area>, palette: &Palette) {
    let (x, plot) = (plot_area.x(), plot_area.plot);
    // One label with a count for flags that are close together.
    let mut groups: Vec<(f64, f64, usize, u64)> = Vec::new();
    let seen = ooms.iter().filter(|oom| is_across(x.pixel(oom.x), plot)).count();
    // Many lines would hide what is behind them.
    let height = if seen > MANY_FLAGS { plot.y } else { plot.bottom() } - 4.0;
    let mut labels = Labels::default();
    for oom in ooms {
        let at = x.pixel(oom.x);
        if !is_across(at, plot) {
            continue;
        }
        // Two pixels wide, so that a flag under the cursor remains visible.
        surface.fill(Area { x: at - 1.0, y: 4.0, width: 2.0, height }, palette.oom.at(0.85));
        let tip = if flies_left(at, plot) { at - 9.0 } else { at + 9.0 };
        surface.polygon(&[(at, 3.0), (tip, 6.5), (at, 10.0)], palette.oom.into());
        labels.keep_out(Area { x: at.min(tip) - 1.0, y: 0.0, width: 11.0, height: 14.0 });
        match groups.last_mut() {
            Some((first, last, count, bytes)) if at - *first < LABEL_ROOM => {
                *last = at;
                *count += 1;
                *bytes = (*bytes).max(oom.bytes);
            }
            _ => groups.push((at, at, 1, oom.bytes)),
        }
    }
    // The handle of the cursor hides nothing, nor is it hidden.
    handle.into_iter().for_each(|area| labels.keep_out(area));
    let strip = Area { x: 0.0, y: 0.0, height: CURSOR_STRIP, width: plot.right() + RIGHT };
    for (first, last, count, bytes) in groups {
        let size = Bytes(bytes).to_string();
        let text = match count {
            1 => format!("out of memory, {size}"),
            n => format!("{n} × out of memory, {size}"),
        };
        let width = surface.text_width(&text, Font::Strong);
        let place = |left: f64| Area { x: left, y: 1.0, width, height: 12.0 };
        let (right, left) =
            (place(last + 12.0), place(first - if flies_left(first, plot) { 13.0 } else { 5.0 } - width));
        // Beside the handle, if that is where the label would be.
        let beside = handle.filter(|handle| handle.overlaps(right) || handle.overlaps(left));
        let beside = beside.map(|handle| [place(handle.right() + 3.0), place(handle.x - 3.0 - width)]);
        let places = [right, left].into_iter().chain(beside.into_iter().flatten());
        if let Some(area) = labels.place(strip, places) {
            surface.text(&text, (area.x, 7.0), Align::Start, Font::Strong, palette.oom.into());
        }
    }
}

/// Returns whether a flag points to the left, as there is no room to its right.
fn flies_left(at: f64, plot: Area) -> bool {
    at + 9.0 > plot.right()
}

/// Returns the out-of-memory flag at a point.
pub fn at(ooms: &[Oom], x: Scale, plot: Area, point: (f64, f64)) -> Option<&Oom> {
    if point.1 > plot.y {
        return None;
    }
    let hit = |oom: &&Oom| {
        let at = x.pixel(oom.x);
        let away = if flies_left(at, plot) { at - point.0 } else { point.0 - at };
        (-3.0..=12.0).contains(&away)
    };
    ooms.iter().rev().find(hit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::surface::log::SurfaceLog;
    use crate::views::chart::marks::handle;
    use crate::views::chart::marks::tests::plot_area;

    #[test]
    fn labels_of_flags_never_overlap_and_many_flags_are_short() {
        let palette = Palette::dark();
        let (mut log, plot) = (SurfaceLog::default(), plot_area().plot);
        let oom = |x: f64| Oom { x, position: x as u32, bytes: 2 << 30 };
        // The first label goes to the right; there is no room left for that of a flag at the edge.
        let x = plot_area().window.end;
        draw(&mut log, &plot_area(), &[oom(x * 0.6), oom(x)], None, &palette);
        assert_eq!(log.0.iter().filter(|line| line.contains("out of memory")).count(), 1, "{:#?}", log.0);
        let mut log = SurfaceLog::default();
        let many: Vec<_> = (0..20).map(|i| oom(x * f64::from(i) / 20.0)).collect();
        draw(&mut log, &plot_area(), &many, None, &palette);
        let lines: Vec<_> = log.0.iter().filter(|line| line.starts_with("fill")).collect();
        let height = format!("x{} ", plot.y - 4.0);
        assert!(lines.len() == 20 && lines.iter().all(|line| line.contains(&height)), "{lines:#?}");
    }

    #[test]
    fn a_flags_label_stands_beside_the_handle_of_the_cursor() {
        let area = plot_area();
        let label = |cursor: f64| {
            let mut log = SurfaceLog::default();
            let ooms = [Oom { x: 990.0, position: 990, bytes: 2 << 30 }];
            draw(&mut log, &area, &ooms, Some(handle(area.x().pixel(cursor))), &Palette::dark());
            log.words().into_iter().find(|(_, text)| text.starts_with("out of memory")).map(|(area, _)| area)
        };
        let free = label(100.0).unwrap();
        for cursor in 600..=1000 {
            let handle = handle(area.x().pixel(f64::from(cursor)));
            let found = label(f64::from(cursor)).unwrap_or_else(|| panic!("{cursor}"));
            assert!(!found.overlaps(handle), "{cursor}: {found:?} {handle:?}");
        }
        assert_eq!(label(990.0), Some(free), "at the failure");
    }

    #[test]
    fn flags_can_be_hit() {
        let ooms = [Oom { x: 100.0, position: 7, bytes: 1 }];
        let plot_area = plot_area();
        let hit = |x, y| at(&ooms, plot_area.x(), plot_area.plot, (x, y)).map(|oom| oom.position);
        assert_eq!(hit(120.0, 6.0), Some(7));
        assert_eq!(hit(120.0, 60.0), None);
        let last = [Oom { x: 1000.0, position: 9, bytes: 1 }];
        assert!(at(&last, plot_area.x(), plot_area.plot, (plot_area.plot.right() - 8.0, 6.0)).is_some());
        assert_eq!(hit(200.0, 6.0), None);
    }
}
