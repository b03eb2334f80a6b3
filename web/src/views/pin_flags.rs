//! Draws pins as flags over a picture with an x axis.

use crate::hooks::PinFlag;
use crate::render::palette::Palette;
use crate::render::scale::Scale;
use crate::render::surface::{Align, Area, Font, Surface, fit};

/// The height of a flag in pixels.
const HEIGHT: f64 = 14.0;
/// The width in pixels of a flag that has only its number.
const NUMBER: f64 = 14.0;
/// The widest name in pixels.
const MOST_NAME: f64 = 140.0;
/// A name with less room than this many pixels is left out.
const LEAST_NAME: f64 = 24.0;

/// Draws each pin as a line with a flag at its foot: the number, and the name as far as there is room.
pub fn draw(surface: &mut dyn Surface, x: Scale, plot: Area, pins: &[PinFlag], has_names: bool, palette: &Palette) {
    for (i, pin) in pins.iter().enumerate() {
        let Some(flag) = area(x, plot, pin.x) else { continue };
        let at = x.pixel(pin.x);
        surface.vertical(at, plot.y, plot.bottom(), palette.text.at(0.7));
        let next = pins.iter().skip(i + 1).find(|next| next.x > pin.x).map_or(plot.right(), |next| x.pixel(next.x));
        let room = (next.min(plot.right()) - flag.right() - 6.0).min(MOST_NAME);
        let name = if has_names && room >= LEAST_NAME && flag.x >= at {
            fit(surface, &pin.name, Font::Label, room)
        } else {
            None
        };
        let width = name.as_ref().map_or(0.0, |name| surface.text_width(name, Font::Label) + 6.0);
        surface.fill(Area { width: flag.width + width, ..flag }, palette.text.into());
        let middle = flag.y + HEIGHT / 2.0;
        let number = pin.number.to_string();
        surface.text(&number, (flag.x + NUMBER / 2.0, middle), Align::Middle, Font::Strong, palette.background.into());
        if let Some(name) = name {
            surface.text(&name, (flag.right() + 1.0, middle), Align::Start, Font::Label, palette.background.into());
        }
    }
}

/// Returns the area of a flag without its name; `None` outside of the plot.
fn area(x: Scale, plot: Area, at: f64) -> Option<Area> {
    let at = x.pixel(at);
    if !(plot.x - 0.5..=plot.right() + 0.5).contains(&at) {
        return None;
    }
    // The flag is to the left of its line if there is no room to the right.
    let left = if at + NUMBER > plot.right() { at - NUMBER } else { at };
    Some(Area { x: left, y: plot.bottom() - HEIGHT, width: NUMBER, height: HEIGHT })
}

/// Returns the index of the pin whose flag is at a point.
pub fn at(x: Scale, plot: Area, pins: &[PinFlag], point: (f64, f64)) -> Option<usize> {
    pins.iter().rposition(|pin| area(x, plot, pin.x).is_some_and(|area| area.contains(point)))
}

#[cfg(test)]
mod tests {
    use query::Window;

    use super::*;
    use crate::render::surface::log::SurfaceLog;

    fn pins() -> Vec<PinFlag> {
        let pin = |number, x, name: &str| PinFlag { number, x, name: name.to_owned() };
        vec![pin(1, 100.0, "before"), pin(2, 110.0, "after"), pin(3, 998.0, "end"), pin(4, 5000.0, "elsewhere")]
    }

    fn plot() -> (Scale, Area) {
        let plot = Area { x: 10.0, y: 0.0, width: 1000.0, height: 100.0 };
        (Scale::new(Window { start: 0.0, end: 1000.0 }, plot.x, plot.right()), plot)
    }

    #[test]
    fn flags_have_numbers_and_names_where_there_is_room() {
        let ((x, plot), mut log) = (plot(), SurfaceLog::default());
        draw(&mut log, x, plot, &pins(), true, &Palette::dark());
        let texts = |what: &str| log.0.iter().filter(|line| line.starts_with(&format!("text \"{what}\""))).count();
        assert_eq!([texts("1"), texts("2"), texts("3"), texts("4")], [1, 1, 1, 0], "{:?}", log.0);
        assert_eq!([texts("before"), texts("after"), texts("end")], [0, 1, 0], "{:?}", log.0);
        assert_eq!(log.0.iter().filter(|line| line.starts_with("vertical")).count(), 3);
    }

    #[test]
    fn a_flag_is_hit_where_it_is_drawn() {
        let (x, plot) = plot();
        let check = |point, want| assert_eq!(at(x, plot, &pins(), point), want, "{point:?}");
        check((112.0, 95.0), Some(0));
        check((121.0, 95.0), Some(1));
        check((112.0, 50.0), None);
        check((1005.0, 95.0), Some(2));
        check((500.0, 95.0), None);
    }
}
