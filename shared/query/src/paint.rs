//! Colours of shapes, and what they represent.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::category::Category;
use crate::names::{LOST_STACK, NO_STACK};

/// What an allocation's colour represents. Allocations of one class are together in the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColorBy {
    /// Its call site: the largest ones have a class each, the rest share one.
    #[default]
    Site,
    /// Its requested size, in powers of four.
    Size,
    /// Its stream.
    Stream,
    /// Its pool: small, large, or a private one.
    Pool,
    /// Its lifetime, in powers of ten; allocations that are still live at the end are one class.
    Lifetime,
    /// Its category: what it is used for.
    Category,
}

impl ColorBy {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Site, Self::Size, Self::Stream, Self::Pool, Self::Lifetime, Self::Category];
}

/// A code that each theme maps to a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
#[serde(transparent)]
pub struct Paint(pub u16);

impl Paint {
    /// The number of distinct colours for call sites, streams and pools.
    pub const SLOTS: u16 = 32;
    /// The number of steps of the ramp for ordered quantities.
    pub const RAMP: u16 = 16;
    /// The number of colours for categories, which are those of nothing else.
    pub const CATEGORIES: u16 = 8;
    /// Things too small to draw alone, call sites beyond the largest ones, or memory of an unknown category.
    pub const OTHER: Self = Self(64);
    /// Allocated memory, not distinguished further.
    pub const ALLOCATED: Self = Self(65);
    /// Freed and waiting for a stream.
    pub const PENDING: Self = Self(66);
    /// Reserved, in no active block.
    pub const CACHED: Self = Self(67);
    /// Bytes lost to rounding.
    pub const ROUNDING: Self = Self(68);
    /// Unmapped address space.
    pub const UNMAPPED: Self = Self(69);
    /// Not matched by the search: drawn faint.
    pub const DIM: u16 = 1 << 8;
    /// In a private pool: drawn with a mark.
    pub const PRIVATE: u16 = 1 << 9;

    /// Returns one of [`Self::SLOTS`] distinct colours.
    pub const fn slot(i: u16) -> Self {
        Self(i % Self::SLOTS)
    }

    /// Returns the code of a line of code, by its label; [`OTHER`](Self::OTHER) where there is no line. Its colour is one of [`Self::SLOTS`]. Further bits of the label's hash are
    /// kept, so that two lines of one colour still have different codes; they are never 0, as those of a [`slot`](Self::slot) are.
    ///
    /// The code depends on the label alone, since a number depends on the file's order, and is the same on every machine: a
    /// [`std::hash::Hasher`] may have another width in WebAssembly.
    pub fn line(label: &str) -> Self {
        if [NO_STACK, LOST_STACK].contains(&label) {
            return Self::OTHER;
        }
        // FNV-1a, from a basis with which the largest lines of the sample and of the workloads have colours of their own.
        let hash = label.bytes().fold(19_432_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        // Lines with neighbouring numbers differ in few bits.
        let mixed = ((hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as u16;
        Self((mixed % Self::SLOTS) | ((1 + (mixed >> 5) % 63) << 10))
    }

    /// Returns step `i` of the ramp, from small to large.
    pub const fn ramp(i: u16) -> Self {
        Self(32 + if i < Self::RAMP { i } else { Self::RAMP - 1 })
    }

    /// Returns the code of a category: grey if it is unknown, and otherwise one of [`Self::CATEGORIES`] colours.
    pub const fn category(category: Category) -> Self {
        match category {
            Category::Unknown => Self::OTHER,
            known => Self(Self::SLOTS + Self::RAMP + known as u16),
        }
    }

    /// Returns the code without the flags [`Self::DIM`] and [`Self::PRIVATE`].
    pub const fn unmarked(self) -> Self {
        Self(self.0 & !(Self::DIM | Self::PRIVATE))
    }

    /// Returns the colour alone.
    pub const fn base(self) -> Self {
        Self(self.0 & 0xff)
    }

    /// Returns whether a flag is set.
    pub const fn has(self, flag: u16) -> bool {
        self.0 & flag != 0
    }

    /// Returns the code with a flag.
    #[must_use]
    pub const fn with(self, flag: u16) -> Self {
        Self(self.0 | flag)
    }
}

/// Lines, by their codes, each with the one whose colour it has. In the order of the codes.
pub type LineColors = Rc<[(Paint, Paint)]>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_same_color_in_the_browser() {
        // Where pointers have 32 bits a hash may come out different: these are those of 64 bits.
        assert_eq!(["forward  models/gpt.py:54", "no"].map(Paint::line), [Paint(21523), Paint(15364)]);
    }

    #[test]
    fn each_category_has_a_code_that_nothing_else_has() {
        let codes = Category::ALL.map(Paint::category);
        assert_eq!(codes.map(|paint| paint.0), [48, 49, 50, 51, 52, 53, 54, 55, Paint::OTHER.0]);
        assert!(!codes.contains(&Paint::ramp(Paint::RAMP)) && !codes.contains(&Paint::slot(Paint::SLOTS - 1)));
    }

    #[test]
    fn no_line_has_the_code_of_a_stream_or_pool() {
        let lines = (0..10_000).map(|i| Paint::line(&format!("forward  m.py:{i}")));
        assert!(lines.map(Paint::unmarked).all(|paint| paint != paint.base()));
    }
}
