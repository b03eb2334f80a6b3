//! A software rasterizer. Where WebGL is emulated it is by far the fastest painter, and it defines the picture: the
//! WebGL painter draws the same pixels.
//!
//! A pixel belongs to the shape that contains its centre. Shapes that share an edge therefore neither overlap nor leave
//! a gap, at any scale.

use crate::shape::{Shape, Style};

/// A transform from the units of a picture to pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transform {
    /// Pixels per unit, and the pixel of 0.
    pub x: (f32, f32),
    /// Pixels per unit and the pixel of 0 along y; negative if y grows upwards.
    pub y: (f32, f32),
}

/// A rectangle of whole pixels: `[x0, x1)` by `[y0, y1)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pixels {
    /// Left.
    pub x0: i32,
    /// Top.
    pub y0: i32,
    /// Right.
    pub x1: i32,
    /// Bottom.
    pub y1: i32,
}

impl Pixels {
    /// Returns the intersection.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self {
            x0: self.x0.max(other.x0),
            y0: self.y0.max(other.y0),
            x1: self.x1.min(other.x1),
            y1: self.y1.min(other.y1),
        }
    }

    /// Returns whether it covers no pixel.
    pub fn is_empty(self) -> bool {
        self.x0 >= self.x1 || self.y0 >= self.y1
    }
}

/// Shapes of at most this height in pixels get no edges, and of at most this width no side edges: there would be no
/// fill left.
pub const EDGE_ROOM: i32 = 3;
/// Pixels from one line of a hatch to the next.
pub const HATCH_PITCH: i32 = 6;
/// Pixels from one stripe to the next.
pub const STRIPE_PITCH: i32 = 8;
/// Length of the pattern that rows of a hatch or of stripes are copied from: a multiple of both pitches.
const PATTERN: usize = 48;
const FAR_PIXELS: f32 = 1_048_576.0;

impl Transform {
    /// Returns the pixels that a shape covers.
    #[inline]
    pub fn cover(self, shape: &Shape) -> Pixels {
        // The bound keeps pixel arithmetic from overflowing; far outside the picture the place does not matter.
        let at = |(scale, offset): (f32, f32), value: f32| {
            (value * scale + offset + 0.5).floor().clamp(-FAR_PIXELS, FAR_PIXELS) as i32
        };
        let (x0, mut x1) = (at(self.x, shape.x[0]), at(self.x, shape.x[1]));
        let (a, b) = (at(self.y, shape.y[0]), at(self.y, shape.y[1]));
        let (y0, mut y1) = (a.min(b), a.max(b));
        if shape.style.has(Style::VISIBLE) {
            x1 = x1.max(x0 + 1);
            y1 = y1.max(y0 + 1);
        }
        Pixels { x0, y0, x1, y1 }
    }
}

/// An opaque image in memory: rows from the top, four bytes per pixel, red first.
#[derive(Clone, Debug, Default)]
pub struct Raster {
    width: i32,
    height: i32,
    pixels: Vec<u32>,
}

impl Raster {
    /// Sets the size in pixels. A change of size discards the contents.
    pub fn resize(&mut self, width: u32, height: u32) {
        self.width = width.min(1 << 14) as i32;
        self.height = height.min(1 << 14) as i32;
        self.pixels.resize(self.width as usize * self.height as usize, 0);
    }

    /// Returns width and height.
    pub fn size(&self) -> (u32, u32) {
        (self.width as u32, self.height as u32)
    }

    /// Returns the bytes in the layout of a canvas.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.pixels)
    }

    /// Fills everything with one colour.
    pub fn clear(&mut self, color: u32) {
        self.pixels.fill(color);
    }

    /// Draws shapes in order, inside `clip` only.
    pub fn draw(&mut self, shapes: &[Shape], transform: Transform, clip: Pixels) {
        let clip = clip.intersection(Pixels { x0: 0, y0: 0, x1: self.width, y1: self.height });
        if clip.is_empty() {
            return;
        }
        for shape in shapes {
            let whole = transform.cover(shape);
            let part = whole.intersection(clip);
            if !part.is_empty() {
                self.draw_one(shape, whole, part);
            }
        }
    }

    #[inline]
    fn draw_one(&mut self, shape: &Shape, whole: Pixels, part: Pixels) {
        let style = shape.style;
        let is_hollow = style.has(Style::HOLLOW);
        if style.has(Style::HATCH) {
            self.lines(part, shape.second, shape.color, 1, HATCH_PITCH);
        } else if !is_hollow {
            self.fill(part, shape.color);
            if style.has(Style::STRIPES) {
                self.lines(part, shape.color, shape.second, -1, STRIPE_PITCH);
            }
        }
        if style.0 & Style::EDGES.0 == 0 {
            return;
        }
        // Pieces of a staircase may be one pixel wide: horizontal edges need height only.
        let is_tall = is_hollow || whole.y1 - whole.y0 > EDGE_ROOM;
        let is_wide = is_hollow || is_tall && whole.x1 - whole.x0 > EDGE_ROOM;
        let mut edge = |side: Style, line: Pixels| {
            let has_room = if Style::EDGE_LEFT.with(Style::EDGE_RIGHT).has(side) { is_wide } else { is_tall };
            if has_room && style.has(side) {
                self.fill(line.intersection(part), shape.second);
            }
        };
        edge(Style::EDGE_TOP, Pixels { y1: whole.y0 + 1, ..whole });
        edge(Style::EDGE_BOTTOM, Pixels { y0: whole.y1 - 1, ..whole });
        edge(Style::EDGE_LEFT, Pixels { x1: whole.x0 + 1, ..whole });
        edge(Style::EDGE_RIGHT, Pixels { x0: whole.x1 - 1, ..whole });
    }

    #[inline]
    fn fill(&mut self, part: Pixels, color: u32) {
        if part.is_empty() {
            return;
        }
        let width = self.width as usize;
        let length = (part.x1 - part.x0) as usize;
        let first = part.y0 as usize * width + part.x0 as usize;
        let rows = (part.y1 - part.y0) as usize;
        if let Some(span) = self.pixels.get_mut(first..) {
            if length == 1 {
                // Columns of one pixel are the common case on a timeline.
                span.iter_mut().step_by(width).take(rows).for_each(|pixel| *pixel = color);
            } else {
                span.chunks_mut(width).take(rows).for_each(|row| row.iter_mut().take(length).for_each(|p| *p = color));
            }
        }
    }

    /// Draws diagonal lines, anchored to the screen so that they don't shimmer when shapes move by fractions of a
    /// pixel. The `slope` is the step of the pattern from one row to the next.
    fn lines(&mut self, part: Pixels, ground: u32, line: u32, slope: i32, pitch: i32) {
        let (width, pitch) = (self.width as usize, pitch as usize);
        let (columns, rows) = ((part.x1 - part.x0) as usize, (part.y1 - part.y0) as usize);
        let step = slope.rem_euclid(pitch as i32) as usize;
        // Not a remainder: a division for each row would take longer than the pixels of a narrow column.
        let next = |phase: usize| if phase + step < pitch { phase + step } else { phase + step - pitch };
        let mut phase = (part.x0 + slope * part.y0).rem_euclid(pitch as i32) as usize;
        let span = self.pixels.get_mut(part.y0 as usize * width + part.x0 as usize..).unwrap_or_default();
        if columns == 1 {
            // Columns of one pixel are the common case on a timeline.
            for pixel in span.iter_mut().step_by(width).take(rows) {
                *pixel = if phase == 0 { line } else { ground };
                phase = next(phase);
            }
            return;
        }
        // Every row is a part of one repeated pattern.
        let mut pattern = [ground; PATTERN + STRIPE_PITCH as usize];
        pattern.iter_mut().step_by(pitch).for_each(|pixel| *pixel = line);
        for row in span.chunks_mut(width).take(rows) {
            for piece in row.get_mut(..columns).unwrap_or_default().chunks_mut(PATTERN) {
                for (pixel, color) in piece.iter_mut().zip(pattern.iter().skip(phase)) {
                    *pixel = *color;
                }
            }
            phase = next(phase);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAME: Transform = Transform { x: (1.0, 0.0), y: (1.0, 0.0) };

    fn shape(x: (f32, f32), y: (f32, f32), name: char, style: Style) -> Shape {
        Shape { x: [x.0, x.1], y: [y.0, y.1], color: name as u32, second: u32::from(name.to_ascii_uppercase()), style }
    }

    /// Draws on a background of dots. Each shape's colour is its letter, its second colour the capital letter.
    fn check(size: (u32, u32), shapes: &[Shape], transform: Transform, clip: Pixels, want: &[&str]) {
        let mut raster = Raster::default();
        raster.resize(size.0, size.1);
        raster.clear('.' as u32);
        raster.draw(shapes, transform, clip);
        let got: Vec<String> = raster
            .pixels
            .chunks(size.0 as usize)
            .map(|row| row.iter().filter_map(|p| char::from_u32(*p)).collect())
            .collect();
        assert_eq!(got, want);
    }

    const ALL: Pixels = Pixels { x0: 0, y0: 0, x1: 99, y1: 99 };

    #[test]
    fn neighbours_neither_overlap_nor_gap() {
        let shapes = [
            shape((0.0, 1.4), (0.0, 2.0), 'a', Style::PLAIN),
            shape((1.4, 1.45), (0.0, 2.0), 'b', Style::PLAIN),
            shape((1.45, 4.5), (0.0, 0.5), 'c', Style::PLAIN),
            shape((1.45, 4.5), (0.5, 2.0), 'd', Style::PLAIN),
        ];
        // Half a pixel belongs to the shape that begins there.
        check((6, 2), &shapes, SAME, ALL, &["acccc.", "adddd."]);
    }

    #[test]
    fn thin_shapes_vanish_unless_they_must_be_seen() {
        let thin = |style| [shape((1.1, 1.2), (0.0, 3.0), 'a', style), shape((2.0, 4.0), (1.1, 1.2), 'b', style)];
        check((5, 3), &thin(Style::PLAIN), SAME, ALL, &[".....", ".....", "....."]);
        check((5, 3), &thin(Style::VISIBLE), SAME, ALL, &[".a...", ".abb.", ".a..."]);
    }

    #[test]
    fn y_may_grow_upwards_and_be_scaled() {
        let up = Transform { x: (2.0, -2.0), y: (-0.5, 4.0) };
        let shapes =
            [shape((1.0, 2.0), (0.0, 4.0), 'a', Style::PLAIN), shape((2.0, 3.0), (0.0, 8.0), 'b', Style::PLAIN)];
        check((4, 4), &shapes, up, ALL, &["..bb", "..bb", "aabb", "aabb"]);
    }

    #[test]
    fn edges_only_where_there_is_room() {
        let style = Style::EDGE_TOP.with(Style::EDGE_LEFT);
        let shapes = [shape((0.0, 4.0), (0.0, 4.0), 'a', style), shape((5.0, 8.0), (0.0, 4.0), 'b', style)];
        check((8, 4), &shapes, SAME, ALL, &["AAAA.BBB", "Aaaa.bbb", "Aaaa.bbb", "Aaaa.bbb"]);
        check((5, 3), &[shape((0.0, 5.0), (0.0, 3.0), 'a', style)], SAME, ALL, &["aaaaa", "aaaaa", "aaaaa"]);
        let hollow = [shape((1.0, 4.0), (0.0, 3.0), 'c', Style::HOLLOW.with(Style::EDGES))];
        check((5, 3), &hollow, SAME, ALL, &[".CCC.", ".C.C.", ".CCC."]);
    }

    #[test]
    fn hatch_and_stripes() {
        check((8, 2), &[shape((0.0, 8.0), (0.0, 2.0), 'c', Style::HATCH)], SAME, ALL, &["cCCCCCcC", "CCCCCcCC"]);
        let private = [shape((0.0, 9.0), (0.0, 2.0), 'p', Style::STRIPES)];
        check((9, 2), &private, SAME, ALL, &["PpppppppP", "pPppppppp"]);
    }

    #[test]
    fn clipping_and_odd_numbers() {
        let clip = Pixels { x0: 1, y0: 1, x1: 3, y1: 2 };
        let huge = [shape((-1e30, 1e30), (f32::NEG_INFINITY, f32::INFINITY), 'a', Style::EDGES)];
        check((4, 3), &huge, SAME, clip, &["....", ".aa.", "...."]);
        let odd = [
            shape((f32::NAN, 2.0), (0.0, f32::NAN), 'a', Style::VISIBLE),
            shape((3.0, 1.0), (0.0, 2.0), 'b', Style::PLAIN),
        ];
        let mut raster = Raster::default();
        raster.resize(3, 2);
        raster.draw(&odd, SAME, ALL);
        raster.resize(0, 0);
        raster.draw(&odd, SAME, ALL);
        assert_eq!(raster.bytes().len(), 0);
    }
}
