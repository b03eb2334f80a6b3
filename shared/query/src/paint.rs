//! Colours of shapes, and what they represent.

use serde::{Deserialize, Serialize};

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
    /// Things too small to draw alone, or call sites beyond the largest ones.
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

    /// Returns the code for a hash: its colour is one of [`Self::SLOTS`], and further bits of the hash are kept, so that two things of
    /// one colour still have different codes.
    pub const fn hashed(hash: u16) -> Self {
        Self((hash % Self::SLOTS) | ((hash >> 5) << 10))
    }

    /// Returns step `i` of the ramp, from small to large.
    pub const fn ramp(i: u16) -> Self {
        Self(32 + if i < Self::RAMP { i } else { Self::RAMP - 1 })
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
