//! Where the parts of the plot are: numbers to scale, words at equal distances.

use query::Window;
use query::sweep::{Row, SweepPicture};

use crate::render::scale::Scale;
use crate::render::surface::Area;
use crate::render::ticks::{self, Tick};

/// Room for the labels of bytes.
const LEFT: f64 = 72.0;
/// Room for the proof.
const TOP: f64 = 28.0;
/// Room for the labels of values and the name of the parameter.
const BOTTOM: f64 = 44.0;
const RIGHT: f64 = 16.0;
/// Room between the outermost points and the edges of the plot.
const INSET: f64 = 14.0;
/// Pixels between two labels of bytes.
const TICK: f64 = 56.0;
/// The width of a character of a label, rounded up.
const CHARACTER: f64 = 7.5;
/// Pixels between two labels of values, at least.
const APART: f64 = 8.0;

/// The plot in pixels.
pub(super) struct Layout {
    /// The part in which points are.
    pub(super) plot: Area,
    /// The axis of bytes.
    pub(super) y: Scale,
    /// Where each run is.
    pub(super) xs: Vec<f64>,
}

impl Layout {
    /// Lays runs out in some width and height.
    pub(super) fn new(sweep: &SweepPicture, (width, height): (f64, f64)) -> Self {
        let (wide, high) = ((width - LEFT - RIGHT).max(1.0), (height - TOP - BOTTOM).max(1.0));
        let plot = Area { x: LEFT, y: TOP, width: wide, height: high };
        let rows = &sweep.rows;
        let most = rows.iter().map(|row| row.peak_reserved.max(row.peak_allocated)).max().unwrap_or(0);
        let bytes = Window { start: 0.0, end: most.max(sweep.capacity_bytes).max(1) as f64 * 1.05 };
        let y = Scale::new(bytes, plot.bottom(), plot.y);
        let end = |row: Option<&Row>| row.map_or(0.0, |row| row.at);
        let values = Window { start: end(rows.first()), end: end(rows.last()) };
        let x = Scale::new(values, plot.x + INSET, plot.right() - INSET);
        let middle = plot.x + plot.width / 2.0;
        let xs = rows.iter().map(|row| if values.start == values.end { middle } else { x.pixel(row.at) }).collect();
        Self { plot, y, xs }
    }

    /// Returns the labels of bytes.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        ticks::bytes(self.y.window, self.plot.height / TICK)
    }

    /// Returns the runs whose values have room below the axis: the most important first, then the outermost.
    pub(super) fn labelled(&self, rows: &[Row], important: Option<usize>) -> Vec<usize> {
        let half = |index: usize| rows.get(index).map_or(0.0, |row| row.value.chars().count() as f64) * CHARACTER / 2.0;
        let mut shown: Vec<(usize, f64)> = Vec::new();
        let order = important.into_iter().chain([0, rows.len().saturating_sub(1)]).chain(0..rows.len());
        for index in order {
            let Some(x) = self.xs.get(index).copied() else { continue };
            let is_free = |(other, at): &(usize, f64)| (at - x).abs() >= half(*other) + half(index) + APART;
            if shown.iter().all(is_free) {
                shown.push((index, x));
            }
        }
        shown.into_iter().map(|(index, _)| index).collect()
    }

    /// Returns the part of the plot that is nearer to a run than to another: its left edge and its width.
    pub(super) fn column(&self, index: usize) -> (f64, f64) {
        let x = self.xs.get(index).copied().unwrap_or_default();
        let half_way = |other: Option<&f64>| other.map(|other| (other + x) / 2.0);
        let left = half_way(index.checked_sub(1).and_then(|before| self.xs.get(before))).unwrap_or(self.plot.x);
        let right = half_way(self.xs.get(index + 1)).unwrap_or(self.plot.right());
        (left, (right - left).max(0.0))
    }
}

/// Returns stretches of runs that fit: a run that fails ended early, so that no line goes through it.
pub(super) fn stretches(rows: &[Row]) -> Vec<Vec<usize>> {
    let mut stretches: Vec<Vec<usize>> = vec![Vec::new()];
    for (index, row) in rows.iter().enumerate() {
        match (row.fits, stretches.last_mut()) {
            (true, Some(stretch)) => stretch.push(index),
            _ => stretches.push(Vec::new()),
        }
    }
    stretches.retain(|stretch| stretch.len() > 1);
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::golden_sweep;

    const SIZE: (f64, f64) = (LEFT + RIGHT + 2.0 * INSET + 400.0, TOP + BOTTOM + 200.0);

    fn row(at: f64, fits: bool) -> Row {
        let (value, peak_reserved, peak_allocated) = (at.to_string(), 10 << 30, 8 << 30);
        Row { value, at, fits, peak_reserved, peak_allocated, ..golden_sweep().rows.remove(0) }
    }

    fn sweep(places: impl IntoIterator<Item = u32>) -> SweepPicture {
        let rows = places.into_iter().map(|at| row(at.into(), true)).collect();
        SweepPicture { rows, capacity_bytes: 20 << 30, ..golden_sweep() }
    }

    fn xs(places: impl IntoIterator<Item = u32>) -> Vec<f64> {
        Layout::new(&sweep(places), SIZE).xs.iter().map(|x| (x - LEFT - INSET).round()).collect()
    }

    #[test]
    fn numbers_are_to_scale_and_words_at_equal_distances() {
        assert_eq!(xs([100, 150, 300, 500]), [0.0, 50.0, 200.0, 400.0]);
        assert_eq!(xs([0, 1, 2]), [0.0, 200.0, 400.0]);
        assert_eq!(xs([7]), [200.0]);
        assert!(xs([]).is_empty());
    }

    #[test]
    fn the_capacity_and_all_peaks_are_in_the_plot() {
        let mut sweep = sweep([1, 2]);
        for capacity in [0, 1 << 30, 20 << 30, u64::MAX] {
            sweep.capacity_bytes = capacity;
            let layout = Layout::new(&sweep, SIZE);
            for bytes in [0, capacity, 10 << 30] {
                let y = layout.y.pixel(bytes as f64);
                assert!(y >= TOP && y <= layout.plot.bottom(), "{bytes} of {capacity}: {y}");
            }
            assert!(layout.ticks().len() < 10);
        }
    }

    #[test]
    fn labels_have_room_the_important_one_first() {
        let sweep = sweep(100..356);
        let layout = Layout::new(&sweep, SIZE);
        let shown = layout.labelled(&sweep.rows, Some(77));
        assert_eq!(shown[..3], [77, 0, 255]);
        assert!(shown.len() > 6, "{shown:?}");
        let mut at: Vec<f64> = shown.iter().map(|index| layout.xs[*index]).collect();
        at.sort_by(f64::total_cmp);
        assert!(at.windows(2).all(|pair| pair[1] - pair[0] >= 3.0 * CHARACTER + APART));
    }

    #[test]
    fn columns_fill_the_plot() {
        let sweep = sweep([1, 2, 9]);
        let layout = Layout::new(&sweep, SIZE);
        let columns: Vec<(f64, f64)> = (0..3).map(|index| layout.column(index)).collect();
        assert_eq!(columns[0].0, layout.plot.x);
        assert!(columns.windows(2).all(|pair| (pair[0].0 + pair[0].1 - pair[1].0).abs() < 1e-9));
        assert_eq!(columns[2].0 + columns[2].1, layout.plot.right());
    }

    #[test]
    fn no_line_goes_through_a_run_that_fails() {
        let runs = [true, true, false, true, false, false, true, true, true].map(|fits| row(1.0, fits));
        assert_eq!(stretches(&runs), [vec![0, 1], vec![6, 7, 8]]);
        assert!(stretches(&[]).is_empty());
    }
}
