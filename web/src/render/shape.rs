//! The shapes of an answer: its rectangles, in the colours and with the marks of a palette.

use query::{Paint, Quads};
use raster::{Shape, Style};

use super::color::Rgb;
use super::palette::{PENDING_SHARE, Palette};

/// The share of its own colour of cached memory.
const CACHED_SHARE: f32 = 0.3;

/// The colours and marks of a paint.
#[derive(Clone, Copy)]
struct Look {
    color: u32,
    second: u32,
    marks: Style,
    /// Whether only the marks are drawn.
    is_hollow: bool,
}

impl Look {
    fn shape(self, x: (f32, f32), y: (f32, f32), style: Style) -> Shape {
        let style = if self.is_hollow { self.marks } else { style.with(self.marks) };
        Shape { x: [x.0, x.1], y: [y.0, y.1], color: self.color, second: self.second, style }
    }
}

/// A cache of looks: an answer has up to a hundred thousand rectangles but only some tens of paints.
struct Looks<'a> {
    palette: &'a Palette,
    known: Vec<Option<Look>>,
}

impl<'a> Looks<'a> {
    fn new(palette: &'a Palette) -> Self {
        Self { palette, known: vec![None; 1 << 10] }
    }

    fn of(&mut self, paint: Paint) -> Look {
        let Some(slot) = self.known.get_mut(usize::from(paint.0)) else { return self.palette.look(paint) };
        *slot.get_or_insert_with(|| self.palette.look(paint))
    }
}

impl Palette {
    /// Creates the rectangle of a paint, with its marks.
    pub fn shape(&self, x: (f32, f32), y: (f32, f32), paint: Paint, style: Style) -> Shape {
        self.look(paint).shape(x, y, style)
    }

    /// Returns the look that all rectangles of a paint share.
    fn look(&self, paint: Paint) -> Look {
        let fill = self.fill(paint);
        let (color, second, marks, is_hollow) = match paint.base() {
            // Subdued, as there may be much of it, and nothing is in it.
            Paint::CACHED => (self.background.blend(fill, CACHED_SHARE), self.edge(fill), Style::PLAIN, false),
            Paint::PENDING => (fill, self.background.blend(fill, PENDING_SHARE), Style::HATCH, false),
            Paint::UNMAPPED => (fill, fill, Style::HOLLOW.with(Style::EDGES), true),
            _ if paint.has(Paint::PRIVATE) => (fill, self.edge(fill), Style::STRIPES, false),
            _ => (fill, self.edge(fill), Style::PLAIN, false),
        };
        Look { color: color.pixel(), second: second.pixel(), marks, is_hollow }
    }

    /// Returns the darker edge colour of a fill.
    pub fn edge(&self, fill: Rgb) -> Rgb {
        fill.blend(Rgb(0, 0, 0), if self.is_dark { 0.34 } else { 0.24 })
    }

    /// Appends the rectangles of an answer, with edges where an allocation begins or ends. An allocation drawn as a
    /// staircase of rectangles has no seams, and a sum of many allocations no edges.
    pub fn outlined(&self, quads: &Quads, into: &mut Vec<Shape>) {
        into.reserve(quads.len());
        let seams = Seams::of(quads);
        let mut looks = Looks::new(self);
        for (i, quad) in iter(quads).enumerate() {
            let is_one = quad.id != Quads::NONE;
            let mut style = if is_one { Style::EDGE_TOP } else { Style::PLAIN };
            if is_one && !seams.joins_left(i) {
                style = style.with(Style::EDGE_LEFT);
            }
            if is_one && !seams.joins_right(i) {
                style = style.with(Style::EDGE_RIGHT);
            }
            into.push(looks.of(quad.paint).shape(quad.x, quad.y, style));
        }
    }

    /// Appends the rectangles of an answer, without edges.
    pub fn filled(&self, quads: &Quads, style: Style, into: &mut Vec<Shape>) {
        into.reserve(quads.len());
        let mut looks = Looks::new(self);
        into.extend(iter(quads).map(|quad| looks.of(quad.paint).shape(quad.x, quad.y, style)));
    }
}

/// One rectangle of [`Quads`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quad {
    /// Left and right edge.
    pub x: (f32, f32),
    /// Smaller and larger y.
    pub y: (f32, f32),
    /// Its paint.
    pub paint: Paint,
    /// What it stands for.
    pub id: u32,
}

/// Iterates over the rectangles of an answer; ends with the shortest column.
pub fn iter(quads: &Quads) -> impl Iterator<Item = Quad> + '_ {
    let x = quads.x0.iter().zip(quads.x1.iter());
    let y = quads.y0.iter().zip(quads.y1.iter());
    let what = quads.paint.iter().zip(quads.id.iter());
    x.zip(y).zip(what).map(|((x, y), (paint, id))| Quad {
        x: (*x.0, *x.1),
        y: (*y.0, *y.1),
        paint: Paint(*paint),
        id: *id,
    })
}

/// Where rectangles of one allocation touch.
struct Seams {
    /// Per rectangle: bit 1 if joined on the left, bit 2 if joined on the right.
    joined: Vec<u8>,
}

impl Seams {
    /// Larger ranges of allocation numbers are drawn with seams: the table would be too large.
    const MOST_NUMBERS: usize = 1 << 22;

    /// An answer lists the pieces of an allocation from left to right, so the last one seen is the one to the left.
    fn of(quads: &Quads) -> Self {
        let mut joined = vec![0u8; quads.len()];
        let ids = || quads.id.iter().copied().filter(|id| *id != Quads::NONE);
        let (Some(low), Some(high)) = (ids().min(), ids().max()) else { return Self { joined } };
        let numbers = (high - low) as usize + 1;
        if numbers > Self::MOST_NUMBERS {
            return Self { joined };
        }
        let mut last_of = vec![u32::MAX; numbers];
        for (i, quad) in iter(quads).enumerate() {
            if quad.id == Quads::NONE {
                continue;
            }
            let Some(last) = last_of.get_mut((quad.id - low) as usize) else { continue };
            let left = std::mem::replace(last, i as u32) as usize;
            if quads.x1.get(left).is_some_and(|end| (quad.x.0 - end).abs() < 1e-3) {
                joined[left] |= 2;
                joined[i] |= 1;
            }
        }
        Self { joined }
    }

    fn joins_left(&self, i: usize) -> bool {
        self.joined.get(i).is_some_and(|bits| bits & 1 != 0)
    }

    fn joins_right(&self, i: usize) -> bool {
        self.joined.get(i).is_some_and(|bits| bits & 2 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staircase_has_no_seams() {
        let mut quads = Quads::default();
        quads.push((0.0, 4.0), (2.0, 3.0), Paint::slot(1), 7);
        quads.push((4.0, 9.0), (0.0, 1.0), Paint::slot(1), 7);
        quads.push((4.0, 6.0), (2.0, 3.0), Paint::slot(2), 8);
        quads.push((6.0, 9.0), (2.0, 3.0), Paint::slot(2), Quads::NONE);
        let mut shapes = Vec::new();
        Palette::dark().outlined(&quads, &mut shapes);
        let sides: Vec<u32> = shapes.iter().map(|shape| shape.style.0 & (2 | 4)).collect();
        assert_eq!(sides, [2, 4, 2 | 4, 0]);
    }

    #[test]
    fn kinds_differ_without_colour() {
        let palette = Palette::light();
        let style = |paint| palette.shape((0.0, 1.0), (0.0, 1.0), paint, Style::PLAIN).style;
        assert!(style(Paint::PENDING).has(Style::HATCH));
        assert!(style(Paint::slot(3).with(Paint::PRIVATE)).has(Style::STRIPES));
        assert!(style(Paint::UNMAPPED).has(Style::HOLLOW));
        assert_eq!(style(Paint::slot(3)), Style::PLAIN);
    }
}
