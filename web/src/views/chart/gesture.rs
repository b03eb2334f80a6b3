//! Pointer and wheel gestures on the timeline. Pure: from points and windows to windows.

use query::Window;
use trace::order::Within;

use crate::render::math::exp2;
use crate::render::scale::{Scale, pan, zoom};
use crate::render::surface::Area;

/// A pointer that moved less than this counts as a click.
const CLICK_PIXELS: f64 = 4.0;

/// The plot area with its visible windows, at the time of an event.
#[derive(Clone, Copy, Debug)]
pub struct PlotArea {
    /// The area of the shapes.
    pub plot: Area,
    /// The visible part of the axis.
    pub window: Window,
    /// The whole axis.
    pub extent: Window,
    /// The visible part of the height, in bytes.
    pub bytes: Window,
    /// The height that fits the data: the limit for panning.
    pub fit: Window,
    /// Whether the height is zoomed: only then does a drag move it.
    pub is_height_free: bool,
    /// Whether bytes grow downwards: addresses do.
    pub grows_down: bool,
    /// Whether the window ends at the newest event, and must do so after zooming.
    pub is_following: bool,
}

impl PlotArea {
    /// Returns a plot at rest, as tests need it: what is visible is everything.
    #[cfg(test)]
    pub fn at_rest(plot: Area, window: Window, bytes: Window) -> Self {
        Self {
            plot,
            window,
            extent: window,
            bytes,
            fit: bytes,
            is_height_free: false,
            grows_down: false,
            is_following: false,
        }
    }

    /// Returns the scale of the x axis.
    pub fn x(&self) -> Scale {
        Scale::new(self.window, self.plot.x, self.plot.right())
    }

    /// Returns what is at a pixel of the x axis, or at the nearest one that is in view.
    pub fn column(&self, pixel: f64) -> f64 {
        self.x().value(pixel.within(self.plot.x, self.plot.right() - 1.0))
    }

    /// Returns the scale of bytes.
    pub fn y(&self) -> Scale {
        let (low, high) = (self.plot.bottom(), self.plot.y);
        if self.grows_down { Scale::new(self.bytes, high, low) } else { Scale::new(self.bytes, low, high) }
    }
}

/// What a drag does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DragKind {
    /// Selects a range.
    #[default]
    Range,
    /// Moves the window.
    Pan,
    /// Draws a rubber band, and zooms into it.
    Zoom,
}

/// The effect of a gesture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// Shows another part of the axis.
    Window(Window),
    /// Shows another part of the height; `None` fits it to the data.
    Bytes(Option<Window>),
    /// A click at a point.
    Click((f64, f64)),
    /// Moves the cursor along with the pointer.
    Scrub((f64, f64)),
    /// Draws or removes the rubber band.
    Band(Option<Area>),
    /// Draws the range that is being selected.
    Preview(Window),
    /// Selects a range; `None` if its drag was cancelled.
    Range(Option<Window>),
}

/// A wheel movement with its modifier keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wheel {
    /// Where the pointer is.
    pub at: (f64, f64),
    /// Movement in pixels.
    pub dx: f64,
    /// Movement in pixels.
    pub dy: f64,
    /// Shift: pans.
    pub is_shift: bool,
    /// Alt: zooms the height.
    pub is_height: bool,
    /// Ctrl, which a trackpad reports for a pinch too.
    pub is_pinch: bool,
}

/// Wheel movement in pixels that doubles or halves.
const WHEEL_OCTAVE: f64 = 240.0;
/// Movement of a pinch in pixels that doubles or halves. A trackpad reports roughly this many while the distance
/// between two fingers doubles.
const PINCH_OCTAVE: f64 = 70.0;
/// The largest movement of a pinch in one event, in pixels. A wheel with Ctrl held moves further.
const PINCH_MOST: f64 = 50.0;

impl Wheel {
    /// Returns the factor by which the movement scales a length.
    pub fn factor(&self) -> f64 {
        let is_pinch = self.is_pinch && self.dy.abs() < PINCH_MOST;
        exp2(self.dy.within(-600.0, 600.0) / if is_pinch { PINCH_OCTAVE } else { WHEEL_OCTAVE })
    }

    /// Returns the pixels by which the movement pans; `None` if it zooms.
    pub fn pans(&self) -> Option<f64> {
        let is_sideways = self.dx.abs() > self.dy.abs();
        (self.is_shift || is_sideways).then(|| if is_sideways { self.dx } else { self.dy }.round())
    }
}

/// Returns the effect of a wheel movement.
pub fn wheel(plot_area: &PlotArea, wheel: Wheel) -> Effect {
    if let Some(pixels) = wheel.pans() {
        return Effect::Window(pan(plot_area.window, pixels * plot_area.x().unit(), plot_area.extent));
    }
    let factor = wheel.factor();
    if wheel.is_height {
        let bytes = zoom(plot_area.bytes, factor, plot_area.y().value(wheel.at.1), plot_area.fit, 512.0);
        return Effect::Bytes((bytes.length() < plot_area.fit.length()).then_some(bytes));
    }
    let pivot = if plot_area.is_following { plot_area.extent.end } else { plot_area.x().value(wheel.at.0) };
    Effect::Window(zoom(plot_area.window, factor, pivot, plot_area.extent, 0.0))
}

/// The gesture of the pressed pointers.
#[derive(Clone, Copy, Debug)]
enum Mode {
    Nothing,
    /// Pressed, and not moved yet.
    Press,
    Range,
    Pan,
    Band,
    Scrub,
    Pinch,
}

/// The state of the pointers on the picture.
#[derive(Debug)]
pub struct Gesture {
    mode: Mode,
    pointers: Vec<(i32, (f64, f64))>,
    /// The start point, and the plot area at that time.
    origin: Option<((f64, f64), PlotArea)>,
    /// For two pointers: the axis coordinates under them, which stay under them.
    held: (f64, f64),
    kind: DragKind,
}

impl Default for Gesture {
    fn default() -> Self {
        Self { mode: Mode::Nothing, pointers: Vec::new(), origin: None, held: (0.0, 0.0), kind: DragKind::Range }
    }
}

impl Gesture {
    /// Returns whether the window is being moved.
    pub fn is_panning(&self) -> bool {
        matches!(self.mode, Mode::Pan)
    }

    /// Returns whether something is being dragged.
    pub fn is_busy(&self) -> bool {
        !matches!(self.mode, Mode::Nothing | Mode::Press)
    }

    /// Handles a pressed pointer. A drag of one pointer will be of this kind; two pointers pinch.
    pub fn down(&mut self, id: i32, at: (f64, f64), kind: DragKind, plot_area: PlotArea) -> Option<Effect> {
        self.pointers.retain(|pointer| pointer.0 != id);
        self.pointers.push((id, at));
        self.kind = kind;
        if let [a, b] = self.points()[..] {
            let was_range = matches!(self.mode, Mode::Range);
            self.mode = Mode::Pinch;
            self.held = (plot_area.x().value(a.0), plot_area.x().value(b.0));
            self.origin = Some((at, plot_area));
            return Some(if was_range { Effect::Range(None) } else { Effect::Band(None) });
        }
        self.origin = Some((at, plot_area));
        // Above and below the shapes a drag moves the cursor.
        let is_in_cursor_strip = at.1 < plot_area.plot.y || at.1 >= plot_area.plot.bottom();
        self.mode = if is_in_cursor_strip { Mode::Scrub } else { Mode::Press };
        is_in_cursor_strip.then_some(Effect::Scrub(at))
    }

    /// Handles a moved pointer. Panning uses the window at the start of the drag, so that no error adds up.
    pub fn moved(&mut self, id: i32, at: (f64, f64)) -> Vec<Effect> {
        let Some(point) = self.pointers.iter_mut().find(|pointer| pointer.0 == id) else { return Vec::new() };
        point.1 = at;
        let Some((from, plot_area)) = self.origin else { return Vec::new() };
        let (dx, dy) = (at.0 - from.0, at.1 - from.1);
        if matches!(self.mode, Mode::Press) && dx * dx + dy * dy >= CLICK_PIXELS * CLICK_PIXELS {
            self.mode = match self.kind {
                DragKind::Range => Mode::Range,
                DragKind::Pan => Mode::Pan,
                DragKind::Zoom => Mode::Band,
            };
        }
        match self.mode {
            Mode::Pan => {
                let mut effects =
                    vec![Effect::Window(pan(plot_area.window, -dx * plot_area.x().unit(), plot_area.extent))];
                if plot_area.is_height_free {
                    let by = if plot_area.grows_down { -dy } else { dy };
                    effects.push(Effect::Bytes(Some(pan(plot_area.bytes, by * plot_area.y().unit(), plot_area.fit))));
                }
                effects
            }
            Mode::Range => vec![Effect::Preview(range(from, at, &plot_area))],
            Mode::Band => vec![Effect::Band(Some(band(from, at, plot_area.plot)))],
            Mode::Scrub => vec![Effect::Scrub(at)],
            Mode::Pinch => self.pinch(plot_area),
            Mode::Nothing | Mode::Press => Vec::new(),
        }
    }

    /// Handles a released or cancelled pointer.
    pub fn up(&mut self, id: i32, is_cancelled: bool) -> Vec<Effect> {
        let place = self.pointers.iter().position(|pointer| pointer.0 == id);
        let at = place.map(|place| self.pointers.remove(place).1);
        if !self.pointers.is_empty() {
            // One finger of two is left: it has no effect until it is lifted too.
            self.mode = Mode::Nothing;
            self.origin = None;
            return Vec::new();
        }
        let mode = std::mem::replace(&mut self.mode, Mode::Nothing);
        let (Some(at), Some((from, plot_area))) = (at, self.origin.take()) else { return Vec::new() };
        match mode {
            Mode::Press if !is_cancelled => vec![Effect::Click(at)],
            Mode::Range => vec![Effect::Range((!is_cancelled).then(|| range(from, at, &plot_area)))],
            Mode::Band if is_cancelled => vec![Effect::Band(None)],
            Mode::Band => {
                let area = band(from, at, plot_area.plot);
                let (x, y) = (plot_area.x(), plot_area.y());
                let mut effects = vec![Effect::Band(None)];
                if area.width >= CLICK_PIXELS {
                    effects.push(Effect::Window(Window { start: x.value(area.x), end: x.value(area.right()) }));
                }
                // A band over nearly the whole height selects on the x axis only.
                if area.height >= CLICK_PIXELS * 2.0 && area.height < plot_area.plot.height * 0.9 {
                    let (a, b) = (y.value(area.bottom()), y.value(area.y));
                    let bytes = Window { start: a.min(b).max(0.0), end: a.max(b) };
                    effects.push(Effect::Bytes(Some(bytes)));
                }
                effects
            }
            _ => Vec::new(),
        }
    }

    fn points(&self) -> Vec<(f64, f64)> {
        self.pointers.iter().map(|pointer| pointer.1).collect()
    }

    fn pinch(&self, plot_area: PlotArea) -> Vec<Effect> {
        let [a, b] = self.points()[..] else { return Vec::new() };
        let (apart, held) = (b.0 - a.0, self.held.1 - self.held.0);
        // Fingers that cross or are above each other define no scale.
        if apart.abs() < 8.0 || held == 0.0 || (apart > 0.0) != (held > 0.0) {
            return Vec::new();
        }
        let unit = held / apart;
        let start = self.held.0 - (a.0 - plot_area.plot.x) * unit;
        vec![Effect::Window(Window { start, end: start + plot_area.plot.width * unit })]
    }
}

/// Returns the part of the axis between two points, clipped to the plot.
fn range(a: (f64, f64), b: (f64, f64), plot_area: &PlotArea) -> Window {
    let (area, x) = (band(a, b, plot_area.plot), plot_area.x());
    let within = |at: f64| at.within(plot_area.extent.start, plot_area.extent.end);
    Window { start: within(x.value(area.x)), end: within(x.value(area.right())) }
}

/// Returns the rectangle between two points, clipped to the plot.
fn band(a: (f64, f64), b: (f64, f64), plot: Area) -> Area {
    let x0 = a.0.min(b.0).within(plot.x, plot.right());
    let x1 = a.0.max(b.0).within(plot.x, plot.right());
    let y0 = a.1.min(b.1).within(plot.y, plot.bottom());
    let y1 = a.1.max(b.1).within(plot.y, plot.bottom());
    Area { x: x0, y: y0, width: x1 - x0, height: y1 - y0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn w(start: f64, end: f64) -> Window {
        Window { start, end }
    }

    fn plot_area() -> PlotArea {
        PlotArea {
            plot: Area { x: 100.0, y: 20.0, width: 1000.0, height: 400.0 },
            window: w(2000.0, 3000.0),
            extent: w(0.0, 10_000.0),
            bytes: w(0.0, 4000.0),
            fit: w(0.0, 4000.0),
            is_height_free: false,
            grows_down: false,
            is_following: false,
        }
    }

    #[test]
    fn bytes_that_grow_downwards_move_with_the_pointer() {
        let bytes = w(1000.0, 3000.0);
        let down = PlotArea { grows_down: true, is_height_free: true, bytes, ..plot_area() };
        let taller = Wheel { at: (600.0, 20.0), dy: -240.0, is_height: true, ..Wheel::default() };
        assert_eq!(wheel(&down, taller), Effect::Bytes(Some(w(1000.0, 2000.0))));
        let mut gesture = Gesture::default();
        gesture.down(1, (300.0, 200.0), DragKind::Pan, down);
        assert_eq!(gesture.moved(1, (300.0, 240.0))[1], Effect::Bytes(Some(w(800.0, 2800.0))));
        gesture.up(1, false);
        gesture.down(1, (300.0, 120.0), DragKind::Zoom, down);
        gesture.moved(1, (200.0, 220.0));
        assert_eq!(gesture.up(1, false)[2], Effect::Bytes(Some(w(1500.0, 2000.0))));
    }

    #[test]
    fn a_wheel_zooms_where_it_points_and_pans_with_shift() {
        let zoomed = wheel(&plot_area(), Wheel { at: (600.0, 100.0), dy: -240.0, ..Wheel::default() });
        assert_eq!(zoomed, Effect::Window(w(2250.0, 2750.0)));
        let panned = wheel(&plot_area(), Wheel { dy: 100.0, is_shift: true, ..Wheel::default() });
        assert_eq!(panned, Effect::Window(w(2100.0, 3100.0)));
        let sideways = wheel(&plot_area(), Wheel { dx: -100.0, dy: 3.0, ..Wheel::default() });
        assert_eq!(sideways, Effect::Window(w(1900.0, 2900.0)));
        let taller = Wheel { at: (600.0, 420.0), dy: -240.0, is_height: true, ..Wheel::default() };
        assert_eq!(wheel(&plot_area(), taller), Effect::Bytes(Some(w(0.0, 2000.0))));
        let spread = Wheel { at: (600.0, 100.0), dy: -35.0, is_pinch: true, ..Wheel::default() };
        let Effect::Window(pinched) = wheel(&plot_area(), spread) else { panic!("a pinch zooms the axis") };
        assert!((pinched.length() - 1000.0 * 0.5_f64.sqrt()).abs() < 1e-6, "{pinched:?}");
        let turned = Wheel { dy: -240.0, ..spread };
        assert_eq!(
            wheel(&plot_area(), turned),
            Effect::Window(w(2250.0, 2750.0)),
            "a wheel with Ctrl zooms as without"
        );
        let out = Wheel { at: (600.0, 420.0), dy: 240.0, is_height: true, ..Wheel::default() };
        assert_eq!(wheel(&plot_area(), out), Effect::Bytes(None));
    }

    #[test]
    fn a_drag_selects_a_range() {
        let mut gesture = Gesture::default();
        assert_eq!(gesture.down(1, (300.0, 200.0), DragKind::Range, plot_area()), None);
        assert_eq!(gesture.moved(1, (302.0, 200.0)), []);
        assert_eq!(gesture.moved(1, (200.0, 250.0)), [Effect::Preview(w(2100.0, 2200.0))]);
        assert!(gesture.is_busy() && !gesture.is_panning());
        assert_eq!(gesture.moved(1, (50.0, 250.0)), [Effect::Preview(w(2000.0, 2200.0))], "clipped to the plot");
        assert_eq!(gesture.up(1, false), [Effect::Range(Some(w(2000.0, 2200.0)))]);
        gesture.down(1, (300.0, 200.0), DragKind::Range, plot_area());
        gesture.moved(1, (400.0, 200.0));
        assert_eq!(gesture.up(1, true), [Effect::Range(None)]);
        gesture.down(1, (300.0, 200.0), DragKind::Range, plot_area());
        gesture.moved(1, (400.0, 200.0));
        let pinched = gesture.down(2, (500.0, 200.0), DragKind::Range, plot_area());
        assert_eq!(pinched, Some(Effect::Range(None)), "a second finger ends the range");
    }

    #[test]
    fn a_pan_moves_the_window_and_a_press_clicks() {
        let mut gesture = Gesture::default();
        assert_eq!(gesture.down(1, (300.0, 200.0), DragKind::Pan, plot_area()), None);
        assert_eq!(gesture.moved(1, (302.0, 200.0)), []);
        assert_eq!(gesture.up(1, false), [Effect::Click((302.0, 200.0))]);

        gesture.down(1, (300.0, 200.0), DragKind::Pan, plot_area());
        assert_eq!(gesture.moved(1, (400.0, 250.0)), [Effect::Window(w(1900.0, 2900.0))]);
        assert!(gesture.is_busy() && gesture.is_panning());
        assert_eq!(gesture.up(1, false), []);

        let mut free = plot_area();
        free.is_height_free = true;
        free.bytes = w(1000.0, 2000.0);
        gesture.down(1, (300.0, 200.0), DragKind::Pan, free);
        let effects = gesture.moved(1, (300.0, 240.0));
        assert_eq!(effects, [Effect::Window(w(2000.0, 3000.0)), Effect::Bytes(Some(w(1100.0, 2100.0)))]);
        assert_eq!(gesture.up(1, true), []);
    }

    #[test]
    fn control_draws_a_band_that_is_zoomed_into() {
        let mut gesture = Gesture::default();
        gesture.down(1, (300.0, 120.0), DragKind::Zoom, plot_area());
        let area = Area { x: 200.0, y: 120.0, width: 100.0, height: 100.0 };
        assert_eq!(gesture.moved(1, (200.0, 220.0)), [Effect::Band(Some(area))]);
        assert_eq!(
            gesture.up(1, false),
            [Effect::Band(None), Effect::Window(w(2100.0, 2200.0)), Effect::Bytes(Some(w(2000.0, 3000.0)))]
        );
    }

    #[test]
    fn two_fingers_keep_what_is_under_them() {
        let mut gesture = Gesture::default();
        gesture.down(1, (300.0, 200.0), DragKind::Pan, plot_area());
        gesture.down(2, (500.0, 200.0), DragKind::Pan, plot_area());
        // Twice as far apart: half as long, and 2200 stays under the first finger.
        assert_eq!(gesture.moved(2, (700.0, 200.0)), [Effect::Window(w(2100.0, 2600.0))]);
        assert_eq!(gesture.up(1, false), []);
        assert_eq!(gesture.moved(2, (900.0, 200.0)), []);
        assert_eq!(gesture.up(2, false), []);
    }

    #[test]
    fn the_lanes_above_and_below_move_the_cursor() {
        let mut gesture = Gesture::default();
        assert_eq!(gesture.down(1, (300.0, 5.0), DragKind::Range, plot_area()), Some(Effect::Scrub((300.0, 5.0))));
        assert_eq!(gesture.moved(1, (350.0, 90.0)), [Effect::Scrub((350.0, 90.0))]);
        assert_eq!(gesture.up(1, false), []);
        assert_eq!(gesture.moved(1, (1.0, 1.0)), []);
    }
}
