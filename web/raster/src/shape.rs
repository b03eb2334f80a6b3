//! A rectangle with colours, and marks that distinguish kinds of memory without colour.

/// The style of a rectangle: a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Style(pub u32);

impl Style {
    /// One colour.
    pub const PLAIN: Self = Self(0);
    /// An edge in the second colour along the top, if there is room.
    pub const EDGE_TOP: Self = Self(1);
    /// An edge along the left side.
    pub const EDGE_LEFT: Self = Self(2);
    /// An edge along the right side.
    pub const EDGE_RIGHT: Self = Self(4);
    /// An edge along the bottom.
    pub const EDGE_BOTTOM: Self = Self(8);
    /// Edges along all sides.
    pub const EDGES: Self = Self(15);
    /// Thin rising lines on a background of the second colour: reserved memory outside of active blocks.
    pub const HATCH: Self = Self(16);
    /// Falling lines of the second colour: memory of a private pool.
    pub const STRIPES: Self = Self(32);
    /// At least one pixel wide and high.
    pub const VISIBLE: Self = Self(64);
    /// Only edges, at any size.
    pub const HOLLOW: Self = Self(128);

    /// Returns the union.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether all bits of another style are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A rectangle in the units of its picture, laid out in memory as the WebGL painter uploads it.
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Shape {
    /// Left and right edge.
    pub x: [f32; 2],
    /// The two other edges. The transform decides which one is up.
    pub y: [f32; 2],
    /// The main colour: four bytes of a pixel as they lie in memory, red first.
    pub color: u32,
    /// The colour of edges, stripes, and the background of a hatch.
    pub second: u32,
    /// The style.
    pub style: Style,
}

impl Shape {
    /// Creates a rectangle of one colour.
    pub fn plain(x: (f32, f32), y: (f32, f32), color: u32) -> Self {
        Self { x: [x.0, x.1], y: [y.0, y.1], color, second: color, style: Style::PLAIN }
    }
}
