//! One axis of a picture: the visible window and the pixels that it maps to.

use query::Window;
use trace::order::Within;

/// A linear mapping of a window to pixels. Pixels may run in the opposite direction: bytes grow upwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The visible window, in units of the axis.
    pub window: Window,
    /// The pixel of the window's start.
    pub from: f64,
    /// The pixel of its end.
    pub to: f64,
}

impl Scale {
    /// Creates a scale. An empty window counts as one unit long, so that nothing divides by zero.
    pub fn new(window: Window, from: f64, to: f64) -> Self {
        let end = if window.length() > 0.0 { window.end } else { window.start + 1.0 };
        Self { window: Window { start: window.start, end }, from, to }
    }

    /// Returns the pixels per unit; negative if pixels run in the opposite direction.
    pub fn factor(&self) -> f64 {
        (self.to - self.from) / self.window.length()
    }

    /// Returns the pixel of a value.
    pub fn pixel(&self, value: f64) -> f64 {
        self.from + (value - self.window.start) * self.factor()
    }

    /// Returns the value at a pixel.
    pub fn value(&self, pixel: f64) -> f64 {
        let factor = self.factor();
        if factor == 0.0 { self.window.start } else { self.window.start + (pixel - self.from) / factor }
    }

    /// Returns the units per pixel, as a positive number.
    pub fn unit(&self) -> f64 {
        let factor = self.factor().abs();
        if factor == 0.0 { self.window.length() } else { 1.0 / factor }
    }
}

/// Returns the window moved by `by` units within `extent`.
pub fn pan(window: Window, by: f64, extent: Window) -> Window {
    let length = window.length().min(extent.length());
    let start = (window.start + by).min(extent.end - length).max(extent.start);
    Window { start, end: start + length }
}

/// Returns the window scaled by `factor` around `pivot`, which stays in place; no longer than `extent` and no shorter
/// than `shortest`.
pub fn zoom(window: Window, factor: f64, pivot: f64, extent: Window, shortest: f64) -> Window {
    let old = window.length();
    let length = (old * factor).max(shortest).min(extent.length());
    let share = if old > 0.0 { ((pivot - window.start) / old).within(0.0, 1.0) } else { 0.5 };
    let start = (window.start + share * (old - length)).min(extent.end - length).max(extent.start);
    Window { start, end: start + length }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn w(start: f64, end: f64) -> Window {
        Window { start, end }
    }

    #[test]
    fn pixels_and_values_are_inverse() {
        let x = Scale::new(w(100.0, 300.0), 64.0, 464.0);
        assert_eq!(x.pixel(100.0), 64.0);
        assert_eq!(x.pixel(300.0), 464.0);
        assert_eq!(x.value(264.0), 200.0);
        assert_eq!(x.unit(), 0.5);
        let bytes = Scale::new(w(0.0, 1024.0), 500.0, 20.0);
        assert_eq!(bytes.pixel(0.0), 500.0);
        assert_eq!(bytes.pixel(1024.0), 20.0);
        assert_eq!(bytes.value(260.0), 512.0);
    }

    #[test]
    fn nothing_divides_by_zero() {
        let empty = Scale::new(w(5.0, 5.0), 10.0, 10.0);
        assert!(empty.pixel(7.0).is_finite() && empty.value(3.0).is_finite() && empty.unit().is_finite());
        assert!(zoom(w(5.0, 5.0), 0.5, 5.0, w(5.0, 5.0), 1.0).length() >= 0.0);
    }

    #[test]
    fn panning_stops_at_the_ends() {
        let extent = w(0.0, 100.0);
        assert_eq!(pan(w(10.0, 30.0), 5.0, extent), w(15.0, 35.0));
        assert_eq!(pan(w(10.0, 30.0), -50.0, extent), w(0.0, 20.0));
        assert_eq!(pan(w(10.0, 30.0), 500.0, extent), w(80.0, 100.0));
        assert_eq!(pan(w(-10.0, 300.0), 1.0, extent), w(0.0, 100.0));
    }

    #[test]
    fn zooming_keeps_the_pivot_in_place() {
        let extent = w(0.0, 1000.0);
        assert_eq!(zoom(w(100.0, 300.0), 0.5, 150.0, extent, 1.0), w(125.0, 225.0));
        assert_eq!(zoom(w(100.0, 300.0), 2.0, 200.0, extent, 1.0), w(0.0, 400.0));
        assert_eq!(zoom(w(100.0, 300.0), 100.0, 200.0, extent, 1.0), extent);
        assert_eq!(zoom(w(100.0, 104.0), 0.01, 102.0, extent, 2.0), w(101.0, 103.0));
    }
}
