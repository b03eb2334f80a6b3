//! Merges the pieces of pixel columns to rectangles: a piece at one height over several columns becomes one rectangle.

use query::{Paint, Quads};

/// A piece of one column's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Bytes below it.
    pub(super) bottom: u64,
    /// Bytes below its upper edge.
    pub(super) top: u64,
    /// What it represents.
    pub(super) part: Part,
}

/// The content of a [`Piece`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The allocation at a place of the stack.
    Place(usize),
    /// Several small allocations of one class.
    Class(u8),
    /// Several small allocations of several classes.
    Mixed,
}

/// A piece in the coordinates in which it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Strip {
    bottom: f32,
    top: f32,
    paint: Paint,
    id: u32,
}

/// Collects columns from left to right.
pub(super) struct Strips {
    quads: Quads,
    base: f64,
    /// The last column's pieces from the bottom up, each with its rectangle.
    last: Vec<(Strip, usize)>,
    now: Vec<(Strip, usize)>,
    /// The index in `last` from which the next piece is searched.
    cursor: usize,
    column: u32,
}

impl Strips {
    /// Creates an empty drawing whose heights count from `base` bytes.
    pub(super) fn new(base: f64) -> Self {
        Self { quads: Quads::default(), base, last: Vec::new(), now: Vec::new(), cursor: 0, column: 0 }
    }

    /// Draws a piece of the current column. Pieces must be drawn from the bottom up.
    #[inline(never)]
    fn push(&mut self, bottom: u64, top: u64, paint: Paint, id: u32) {
        let y = |bytes: u64| (bytes as f64 - self.base) as f32;
        let strip = Strip { bottom: y(bottom), top: y(top), paint, id };
        while self.last.get(self.cursor).is_some_and(|(s, _)| s.bottom < strip.bottom) {
            self.cursor += 1;
        }
        let right = (self.column + 1) as f32;
        let quad = match self.last.get(self.cursor).filter(|(s, _)| *s == strip) {
            Some(&(_, quad)) => {
                self.quads.x1[quad] = right;
                quad
            }
            None => {
                self.quads.push((self.column as f32, right), (strip.bottom, strip.top), paint, id);
                self.quads.len() - 1
            }
        };
        self.now.push((strip, quad));
    }

    /// Draws the part of a piece between two heights.
    pub(super) fn push_within(&mut self, bottom: u64, top: u64, from: u64, to: u64, paint: Paint, id: u32) {
        let (bottom, top) = (bottom.max(from), top.min(to));
        if top > bottom {
            self.push(bottom, top, paint, id);
        }
    }

    /// Begins the next column.
    pub(super) fn next_column(&mut self) {
        std::mem::swap(&mut self.last, &mut self.now);
        self.now.clear();
        self.cursor = 0;
        self.column += 1;
    }

    pub(super) fn finish(self) -> Quads {
        self.quads
    }
}
