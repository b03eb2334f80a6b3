//! The brush over the overview: maps drags to windows and ranges.

use query::Window;
use trace::order::Within;

use crate::render::scale::{Scale, pan, zoom};
use crate::views::chart::gesture::DragKind;
use crate::views::chart::gesture::Wheel;

/// Distance in pixels within which a press grabs an edge.
const GRIP_PIXELS: f64 = 6.0;
/// Shorter drags are clicks.
const CLICK_PIXELS: f64 = 4.0;

/// What a press grabbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grip {
    /// The window's start.
    Start,
    /// Its end.
    End,
    /// The window itself.
    Body,
    /// Nothing: a click moves the window here.
    Outside,
}

/// Where a drag has got to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dragged {
    /// The window.
    Window(Window),
    /// The range that is being selected.
    Range(Window),
}

/// A drag in progress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drag {
    grip: Grip,
    kind: DragKind,
    from: f64,
    window: Window,
    has_moved: bool,
}

/// Returns what is under a pixel. A window over the whole axis has no body, since it can't be moved.
pub fn grip(x: Scale, window: Window, pixel: f64) -> Grip {
    let (start, end) = (x.pixel(window.start), x.pixel(window.end));
    let (to_start, to_end) = ((pixel - start).abs(), (pixel - end).abs());
    let is_whole = window.length() >= x.window.length() * 0.999;
    if to_start.min(to_end) <= GRIP_PIXELS {
        if to_start < to_end { Grip::Start } else { Grip::End }
    } else if !is_whole && pixel > start && pixel < end {
        Grip::Body
    } else {
        Grip::Outside
    }
}

impl Drag {
    /// Starts a drag of a kind with a press. Edges of the window move, whatever the kind.
    pub fn new(x: Scale, window: Window, pixel: f64, kind: DragKind) -> Self {
        Self { grip: grip(x, window, pixel), kind, from: pixel, window, has_moved: false }
    }

    /// Returns what the press grabbed.
    pub fn grip(&self) -> Grip {
        self.grip
    }

    /// Returns whether it moves the window as a whole.
    pub fn is_panning(&self) -> bool {
        self.kind == DragKind::Pan && matches!(self.grip, Grip::Body | Grip::Outside)
    }

    /// Returns the window or the range while the pointer is at a pixel; `None` until the pointer has moved far enough to
    /// count as a drag.
    pub fn to(&mut self, x: Scale, pixel: f64) -> Option<Dragged> {
        self.has_moved |= (pixel - self.from).abs() >= CLICK_PIXELS;
        if !self.has_moved {
            return None;
        }
        let extent = x.window;
        let at = x.value(pixel).within(extent.start, extent.end);
        let between = |a: f64, b: f64| Window { start: a.min(b), end: a.max(b) };
        let from = x.value(self.from).within(extent.start, extent.end);
        Some(match (self.grip, self.kind) {
            (Grip::Start, _) => Dragged::Window(between(at, self.window.end)),
            (Grip::End, _) => Dragged::Window(between(self.window.start, at)),
            (_, DragKind::Range) => Dragged::Range(between(from, at)),
            (_, DragKind::Pan) => Dragged::Window(pan(self.window, at - x.value(self.from), extent)),
            (_, DragKind::Zoom) => Dragged::Window(between(from, at)),
        })
    }

    /// Returns the coordinate of a press without a drag.
    pub fn clicked(&self, x: Scale) -> Option<f64> {
        (!self.has_moved).then(|| x.value(self.from).within(x.window.start, x.window.end))
    }

    /// Returns the window after a press without a drag: it is centred there. `None` on the window itself.
    pub fn click(&self, x: Scale) -> Option<Window> {
        let is_whole = self.window.length() >= x.window.length() * 0.999;
        if self.has_moved || is_whole || self.grip != Grip::Outside {
            return None;
        }
        let middle = (self.window.start + self.window.end) / 2.0;
        Some(pan(self.window, x.value(self.from) - middle, x.window))
    }
}

/// Returns the window after a turn of the wheel, which does the same as on the timeline: it zooms around the pointer,
/// or around the nearer end of the window if the pointer is outside of it. With Shift, or sideways, it moves the
/// window. A followed session zooms around its newest event. `x` is the scale of the whole axis.
pub fn wheel(x: Scale, window: Window, wheel: &Wheel, is_following: bool) -> Window {
    if let Some(pixels) = wheel.pans() {
        return pan(window, pixels * x.unit(), x.window);
    }
    let at = if is_following { x.window.end } else { x.value(wheel.at.0).within(window.start, window.end) };
    zoom(window, wheel.factor(), at, x.window, 0.0)
}

/// The fingers on the overview. Two of them hold the ends of the window.
#[derive(Debug, Default)]
pub struct Fingers(Vec<(i32, f64)>);

impl Fingers {
    /// Handles a pressed pointer at a coordinate. Returns the window between two fingers.
    pub fn down(&mut self, id: i32, x: f64, is_touch: bool) -> Option<Window> {
        self.up(id);
        if is_touch && self.0.len() < 2 {
            self.0.push((id, x));
        }
        self.between()
    }

    /// Handles a moved pointer. Returns the window between two fingers.
    pub fn moved(&mut self, id: i32, x: f64) -> Option<Window> {
        self.0.iter_mut().find(|finger| finger.0 == id)?.1 = x;
        self.between()
    }

    /// Handles a released pointer.
    pub fn up(&mut self, id: i32) {
        self.0.retain(|finger| finger.0 != id);
    }

    fn between(&self) -> Option<Window> {
        let [(_, a), (_, b)] = self.0[..] else { return None };
        Some(Window { start: a.min(b), end: a.max(b) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn w(start: f64, end: f64) -> Window {
        Window { start, end }
    }

    /// One pixel per unit, from pixel 10 on.
    fn x() -> Scale {
        Scale::new(w(0.0, 1000.0), 10.0, 1010.0)
    }

    #[test]
    fn edges_come_before_the_body() {
        let check = |pixel, want| assert_eq!(grip(x(), w(200.0, 400.0), pixel), want, "{pixel}");
        check(207.0, Grip::Start);
        check(214.0, Grip::Start);
        check(300.0, Grip::Body);
        check(412.0, Grip::End);
        check(500.0, Grip::Outside);
        assert_eq!(grip(x(), w(0.0, 1000.0), 300.0), Grip::Outside);
    }

    #[test]
    fn drags() {
        let drag = |kind, from: f64, to: f64| Drag::new(x(), w(200.0, 400.0), from, kind).to(x(), to);
        let window = |start, end| Some(Dragged::Window(w(start, end)));
        for kind in [DragKind::Range, DragKind::Pan, DragKind::Zoom] {
            assert_eq!(drag(kind, 210.0, 110.0), window(100.0, 400.0));
            assert_eq!(drag(kind, 210.0, 510.0), window(400.0, 500.0), "past the other edge");
            assert_eq!(drag(kind, 410.0, 2000.0), window(200.0, 1000.0));
            assert_eq!(drag(kind, 600.0, 602.0), None);
        }
        assert_eq!(drag(DragKind::Range, 300.0, 350.0), Some(Dragged::Range(w(290.0, 340.0))));
        assert_eq!(drag(DragKind::Range, 650.0, 600.0), Some(Dragged::Range(w(590.0, 640.0))));
        assert_eq!(drag(DragKind::Pan, 300.0, 350.0), window(250.0, 450.0));
        assert_eq!(drag(DragKind::Pan, 700.0, 650.0), window(150.0, 350.0));
        assert_eq!(drag(DragKind::Zoom, 600.0, 660.0), window(590.0, 650.0));
    }

    #[test]
    fn a_wheel_means_what_it_means_on_the_timeline() {
        let turn = |at, dx, dy, is_shift| {
            wheel(x(), w(200.0, 400.0), &Wheel { at: (at, 0.0), dx, dy, is_shift, ..Wheel::default() }, false)
        };
        assert_eq!(turn(310.0, 0.0, -240.0, false), w(250.0, 350.0));
        assert_eq!(turn(910.0, 0.0, -240.0, false), w(300.0, 400.0), "the window stays where it is");
        assert_eq!(turn(310.0, 0.0, 50.0, true), w(250.0, 450.0));
        assert_eq!(turn(310.0, -50.0, 3.0, false), w(150.0, 350.0));
        let end = Wheel { at: (310.0, 0.0), dy: -240.0, ..Wheel::default() };
        assert_eq!(wheel(x(), w(600.0, 1000.0), &end, true), w(800.0, 1000.0), "the newest event stays");
    }

    #[test]
    fn two_fingers_hold_the_ends_of_the_window() {
        let mut fingers = Fingers::default();
        assert_eq!(fingers.down(0, 5.0, false), None, "a mouse is no finger");
        assert_eq!(fingers.down(1, 300.0, true), None);
        assert_eq!(fingers.down(2, 200.0, true), Some(w(200.0, 300.0)));
        assert_eq!(fingers.moved(1, 500.0), Some(w(200.0, 500.0)));
        assert_eq!(fingers.moved(7, 1.0), None);
        fingers.up(2);
        assert_eq!(fingers.moved(1, 600.0), None);
    }

    #[test]
    fn a_click_elsewhere_brings_the_window_along() {
        let press = |window, at| Drag::new(x(), window, at, DragKind::Range);
        let click = |window, at| press(window, at).click(x());
        assert_eq!(click(w(200.0, 400.0), 610.0), Some(w(500.0, 700.0)));
        assert_eq!(click(w(200.0, 400.0), 1000.0), Some(w(800.0, 1000.0)));
        assert_eq!(click(w(200.0, 400.0), 300.0), None);
        assert_eq!(click(w(0.0, 1000.0), 300.0), None);
        let mut drag = press(w(200.0, 400.0), 310.0);
        assert_eq!(drag.clicked(x()), Some(300.0));
        drag.to(x(), 350.0);
        assert_eq!(drag.clicked(x()), None);
        assert_eq!(press(w(0.0, 1000.0), 0.0).clicked(x()), Some(0.0));
    }
}
