//! A sparkline of a session's memory: reserved as a line, active and allocated as areas below it.

use trace::decimal::Decimal;
use yew::prelude::*;

/// The size of the drawing in its own units.
const WIDTH: f64 = 160.0;
const HEIGHT: f64 = 28.0;

/// A sparkline as SVG paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sparkline {
    reserved: String,
    active: String,
    allocated: String,
    /// The largest reserved total, in bytes.
    pub peak: f64,
    /// Whether the peak is exact, rather than the largest sample.
    pub is_exact: bool,
}

impl Sparkline {
    /// Creates a sparkline from points of time, allocated, active and reserved bytes. Returns `None` for fewer than two
    /// moments.
    pub fn of(points: &[Vec<f64>], is_exact: bool) -> Option<Self> {
        let points: Vec<[f64; 4]> = points.iter().filter_map(|p| p.as_slice().try_into().ok()).collect();
        let (first, last) = (points.first()?[0], points.last()?[0]);
        let peak = points.iter().map(|p| p[3].max(p[2])).fold(0.0, f64::max);
        if last <= first || peak <= 0.0 {
            return None;
        }
        let x = |p: &[f64; 4]| (p[0] - first) / (last - first) * WIDTH;
        let y = |value: f64| HEIGHT - value / peak * (HEIGHT - 1.0);
        let steps = |value: fn(&[f64; 4]) -> f64| {
            let mut path = String::new();
            let mut before = None;
            for p in &points {
                let (at, height) = (x(p), y(value(p)));
                match before.replace(height) {
                    None => path += &format!("M{} {}", tenths(at), tenths(height)),
                    Some(_) => path += &format!("H{}V{}", tenths(at), tenths(height)),
                }
            }
            path
        };
        let area = |value: fn(&[f64; 4]) -> f64| format!("{}V{}H0Z", steps(value), tenths(HEIGHT));
        Some(Self { reserved: steps(|p| p[3]), active: area(|p| p[2]), allocated: area(|p| p[1]), peak, is_exact })
    }

    /// Describes the sparkline in words; `peak` is the text for [`Self::peak`].
    pub fn title(&self, peak: &str) -> String {
        let kind = if self.is_exact { "peak" } else { "highest seen" };
        format!("Reserved (line), active and allocated (areas); {kind} {peak}")
    }

    /// Renders the sparkline; the text beside it describes it.
    pub fn html(&self) -> Html {
        html! {
            <svg class="sparkline" viewBox={format!("0 0 {} {}", tenths(WIDTH), tenths(HEIGHT))} preserveAspectRatio="none" aria-hidden="true" focusable="false">
                <path class="spark-active" d={self.active.clone()} />
                <path class="spark-allocated" d={self.allocated.clone()} />
                <path class="spark-reserved" d={self.reserved.clone()} />
            </svg>
        }
    }
}

/// Formats a coordinate of the drawing.
fn tenths(at: f64) -> Decimal {
    Decimal::of(at, 1).shortest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_has_steps_up_to_its_peak() {
        let spark = Sparkline::of(&[vec![0.0, 1.0, 2.0, 4.0], vec![10.0, 2.0, 2.0, 4.0]], true).unwrap();
        assert_eq!(spark.reserved, "M0 1H160V1");
        assert_eq!(spark.allocated, "M0 21.2H160V14.5V28H0Z");
        assert_eq!(spark.peak, 4.0);
        assert!(spark.title("4 B").ends_with("peak 4 B"));
        assert!(Sparkline { is_exact: false, ..spark }.title("4 B").ends_with("highest seen 4 B"));
    }

    #[test]
    fn too_few_points_draw_nothing() {
        for points in [
            vec![],
            vec![vec![0.0, 1.0, 1.0, 1.0]],
            vec![vec![0.0; 4], vec![9.0; 3]],
            vec![vec![0.0; 4], vec![9.0, 0.0, 0.0, 0.0]],
        ] {
            assert_eq!(Sparkline::of(&points, true), None, "{points:?}");
        }
    }
}
