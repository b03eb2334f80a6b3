//! The mark of the peak, and its label.

use query::Class;
use trace::units::Bytes;

use super::gesture::PlotArea;
use super::marks::is_across;
use super::outline::{distance, nearest};
use crate::render::labels::Labels;
use crate::render::palette::Palette;
use crate::render::surface::{Align, Area, Font, Surface, fit_site};

/// The peak of requested memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Its coordinate.
    pub x: f64,
    /// The requested bytes.
    pub bytes: u64,
    /// Whether the file was cut off, so that a later peak may be missing.
    pub is_partial: bool,
}

/// The label in pixels: margin, height of a line, maximum width of a name, size of a colour's square.
const PEAK: (f64, f64, f64, f64) = (5.0, 15.0, 190.0, 8.0);

/// The least width of a plot whose peak is labelled with classes: on a narrower one they would hide half of it.
const CLASSES_ROOM: f64 = 480.0;
/// From this distance in pixels on, a line leads from the label of the peak to its mark.
const FAR: f64 = 40.0;
/// The longest such line in pixels: over a longer one, the bytes alone beside the mark tell more.
const LONGEST: f64 = 240.0;

/// Draws the peak's mark and its label: the bytes, and below them the largest classes at the peak if there is a place where
/// they hide nothing. `places` returns such places for a label of a width and a height, the best first.
#[inline(never)]
pub fn draw(
    surface: &mut dyn Surface,
    plot_area: &PlotArea,
    peak: Option<Peak>,
    largest: &[&Class],
    (labels, places): (&mut Labels, impl Fn((f64, f64), (f64, f64)) -> Vec<Area>),
    palette: &Palette,
) {
    let plot = plot_area.plot;
    let Some(Peak { x: at, bytes, is_partial }) = peak else { return };
    let (x, y) = (plot_area.x().pixel(at), plot_area.y().pixel(bytes as f64));
    if !is_across(x, plot) || y < plot.y - 0.5 || y > plot.bottom() {
        return;
    }
    surface.polygon(&[(x - 3.5, y - 6.0), (x + 4.5, y - 6.0), (x + 0.5, y - 1.0)], palette.text.into());
    let title = format!("{} {}", if is_partial { "peak of what was read" } else { "peak" }, Bytes(bytes));
    let title_width = surface.text_width(&title, Font::Strong);
    let (margin, line, name_width, square) = PEAK;
    let rows: Vec<(&Class, String, String, f64)> = largest
        .iter()
        .filter_map(|class| {
            let name = fit_site(surface, &class.label, Font::Label, name_width)?;
            let (size, width) = (Bytes(class.peak_bytes).to_string(), surface.text_width(&name, Font::Label));
            let width = square + 6.0 + width + 12.0 + surface.text_width(&size, Font::Label);
            Some((*class, name, size, width))
        })
        .collect();
    let mut place = |rows: &[(&Class, String, String, f64)]| {
        let width = rows.iter().map(|row| row.3).fold(title_width, f64::max) + 2.0 * margin;
        let height = (rows.len() + 1) as f64 * line + if rows.is_empty() { 1.0 } else { 4.0 };
        let mut all = places((x, y), (width, height));
        all.retain(|area| distance(*area, (x, y)) <= LONGEST);
        if rows.is_empty() {
            // Beside the mark, so that the cursor's line (initially at the peak) doesn't run through it.
            let (right, left) = (x + 8.0, x - 7.0 - width);
            let at = |left: f64, top: f64| Area { x: left, y: top.max(plot.y + 1.0), width, height };
            let top = y - 14.0;
            all.extend([at(right, top), at(left, top), at(right, y - height), at(left, y - height)]);
        }
        labels.place(plot, all)
    };
    let all = Some(&rows[..]).filter(|rows| plot.width >= CLASSES_ROOM && !rows.is_empty());
    let found = all.and_then(|rows| Some((place(rows)?, rows))).or_else(|| Some((place(&[])?, &rows[..0])));
    let Some((area, rows)) = found else { return };
    if distance(area, (x, y)) > FAR {
        // It names the mark all the same.
        surface.contour(&[nearest(area, (x, y)), (x + 0.5, y - 6.0)], 1.0, palette.text_dim.at(0.6));
    }
    surface.fill(area, palette.background.at(0.88));
    if !rows.is_empty() {
        surface.outline(area, 1.0, palette.line.into());
    }
    let mut middle = area.y + line / 2.0 + if rows.is_empty() { 0.5 } else { 2.0 };
    surface.text(&title, (area.x + margin, middle), Align::Start, Font::Strong, palette.text.into());
    for (class, name, size, _) in rows {
        middle += line;
        let chip = Area { x: area.x + margin, y: middle - square / 2.0, width: square, height: square };
        surface.fill(chip, palette.fill(class.paint.unmarked()).into());
        let left = chip.right() + 6.0;
        surface.text(name, (left, middle), Align::Start, Font::Label, palette.text.into());
        surface.text(size, (area.right() - margin, middle), Align::End, Font::Label, palette.text_dim.into());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use query::{Paint, Window};

    use super::*;
    use crate::render::canvas::Size;
    use crate::render::surface::log::SurfaceLog;
    use crate::views::chart::marks::tests::plot_area;
    use crate::views::chart::marks::{GUTTER, RIGHT, plot};

    /// Everything is covered.
    pub fn nowhere(_: (f64, f64), _: (f64, f64)) -> Vec<Area> {
        Vec::new()
    }

    /// Nothing is covered above and below the mark.
    pub fn anywhere((x, y): (f64, f64), (width, height): (f64, f64)) -> Vec<Area> {
        [y - height, y].map(|top| Area { x: x + 8.0, y: top, width, height }).to_vec()
    }

    #[test]
    fn the_peaks_label_stays_out_of_what_is_taken() {
        let label = |taken: Option<Area>| {
            let (mut log, mut labels) = (SurfaceLog::default(), Labels::default());
            taken.into_iter().for_each(|area| labels.keep_out(area));
            draw(&mut log, &plot_area(), Some(at(500.0)), &[], (&mut labels, nowhere), &Palette::light());
            log.0.into_iter().find(|line| line.contains("peak 3.00 GiB"))
        };
        let (free, plot) = (label(None), plot_area().plot);
        assert!(free.is_some());
        let elsewhere = Area { x: plot.x, y: plot.bottom() + 50.0, width: 10.0, height: 10.0 };
        assert_eq!(label(Some(elsewhere)), free);
        let middle = plot.x + plot.width / 2.0;
        let moved = label(Some(Area { x: middle, width: plot.width / 2.0, ..plot }));
        assert!(moved.is_some() && moved != free, "{moved:?}");
        assert_eq!(label(Some(plot)), None);
    }

    /// A peak of 3 GiB.
    fn at(x: f64) -> Peak {
        Peak { x, bytes: 3 << 30, is_partial: false }
    }

    type Places = fn((f64, f64), (f64, f64)) -> Vec<Area>;

    #[test]
    fn the_peaks_label_names_classes_only_where_they_hide_nothing() {
        let class =
            |label: &str| Class { label: label.to_owned(), paint: Paint::slot(1), stack: None, peak_bytes: 1 << 29 };
        let classes = ["forward", "backward"].map(class);
        let largest: Vec<&Class> = classes.iter().collect();
        let area = |width: f64| {
            let window = Window { start: 0.0, end: 1000.0 };
            let size = Size { width: width + GUTTER + RIGHT, height: 244.0, ratio: 1.0 };
            PlotArea::at_rest(plot(size, 0), window, Window { start: 0.0, end: (4_u64 << 30) as f64 })
        };
        let texts = |area: &PlotArea, places: Places| {
            let (mut log, mut labels) = (SurfaceLog::default(), Labels::default());
            draw(&mut log, area, Some(at(100.0)), &largest, (&mut labels, places), &Palette::light());
            log.words().into_iter().map(|(_, text)| text).collect::<Vec<_>>()
        };
        assert_eq!(texts(&area(600.0), anywhere).len(), 5);
        assert_eq!(texts(&area(600.0), nowhere), ["peak 3.00 GiB"]);
        assert_eq!(texts(&area(300.0), anywhere), ["peak 3.00 GiB"], "a phone has no room for more");
        let far: Places =
            |(x, y), (width, height)| vec![Area { x: x + LONGEST + 9.0, y: y - height / 2.0, width, height }];
        assert_eq!(texts(&area(900.0), far), ["peak 3.00 GiB"], "the line to it would be too long");
    }

    #[test]
    fn the_peak_of_a_file_that_was_cut_off_is_that_of_what_was_read() {
        let mut log = SurfaceLog::default();
        let peak = Peak { is_partial: true, ..at(500.0) };
        draw(&mut log, &plot_area(), Some(peak), &[], (&mut Labels::default(), nowhere), &Palette::light());
        assert_eq!(log.words().last().unwrap().1, "peak of what was read 3.00 GiB");
    }
}
