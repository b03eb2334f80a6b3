//! Draws where a file ends that was cut off: a torn edge with a label. What came later is not known.

use super::gesture::PlotArea;
use crate::render::labels::Labels;
use crate::render::palette::Palette;
use crate::render::surface::{Align, Area, Font, Surface};

/// Pixels between the teeth of the edge, and their width.
const TOOTH: (f64, f64) = (6.0, 4.0);
const LABEL: &str = "file cut off here";

/// Returns the pixel of the edge, if it is in view.
fn edge(plot_area: &PlotArea, end: Option<f64>) -> Option<f64> {
    let (at, plot) = (plot_area.x().pixel(end?), plot_area.plot);
    (at > plot.x && at <= plot.right() + 0.5).then_some(at)
}

/// Draws the edge at the coordinate `end`.
pub fn draw(surface: &mut dyn Surface, plot_area: &PlotArea, end: Option<f64>, palette: &Palette) {
    if let Some(at) = edge(plot_area, end) {
        tear(surface, at, plot_area.plot, palette);
    }
}

/// Draws a torn edge at a pixel, as high as the plot.
pub fn tear(surface: &mut dyn Surface, at: f64, plot: Area, palette: &Palette) {
    let (every, width) = TOOTH;
    let teeth = (plot.height / every).max(0.0) as u32;
    let tooth = |i: u32| (if i.is_multiple_of(2) { at } else { at - width }, plot.y + f64::from(i) * every);
    let points: Vec<(f64, f64)> = (0..=teeth).map(tooth).chain([(at, plot.bottom())]).collect();
    surface.contour(&points, 3.0, palette.background.into());
    surface.contour(&points, 1.5, palette.text.into());
}

/// Draws the label to the left of the edge, where there is room for it.
pub fn label(
    surface: &mut dyn Surface,
    plot_area: &PlotArea,
    end: Option<f64>,
    labels: &mut Labels,
    palette: &Palette,
) {
    let (Some(at), plot) = (edge(plot_area, end), plot_area.plot) else { return };
    let width = surface.text_width(LABEL, Font::Label) + 8.0;
    let place = |i: u32| Area { x: at - 6.0 - width, y: plot.y + 4.0 + f64::from(i) * 18.0, width, height: 16.0 };
    let Some(area) = labels.place(plot, (0..4).map(place)) else { return };
    surface.fill(area, palette.background.at(0.88));
    surface.text(LABEL, (area.x + 4.0, area.y + 8.0), Align::Start, Font::Label, palette.text.into());
}

#[cfg(test)]
mod tests {
    use query::Window;

    use super::*;
    use crate::render::canvas::Size;
    use crate::render::surface::log::SurfaceLog;
    use crate::views::chart::marks::plot;

    #[test]
    fn the_end_of_a_file_that_was_cut_off_has_an_edge_and_a_label() {
        let drawn = |window: (f64, f64), end| {
            let plot = plot(Size { width: 680.0, height: 144.0, ratio: 1.0 }, 0);
            let window = Window { start: window.0, end: window.1 };
            let area = PlotArea::at_rest(plot, window, Window { start: 0.0, end: 100.0 });
            let (mut log, mut labels, palette) = (SurfaceLog::default(), Labels::default(), Palette::dark());
            draw(&mut log, &area, end, &palette);
            label(&mut log, &area, end, &mut labels, &palette);
            log.0.iter().filter(|line| line.starts_with("text") || line.starts_with("contour")).count()
        };
        assert_eq!(drawn((0.0, 100.0), Some(100.0)), 3);
        assert_eq!(drawn((0.0, 50.0), Some(100.0)), 0, "it is not in view");
        assert_eq!(drawn((0.0, 100.0), None), 0, "the file is whole");
    }
}
