//! What shapes are painted with, and what colours stand for.

use serde::{Deserialize, Serialize};

/// What an allocation's colour stands for; allocations of one class lie together in the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColorBy {
    /// The stack that asked for it: the largest call sites apart, the rest as one class.
    #[default]
    Site,
    /// Its requested size, in powers of four.
    Size,
    /// Its stream.
    Stream,
    /// Its pool: small, large, or a private one.
    Pool,
    /// How long it lived, in powers of ten, and those that outlived the trace.
    Lifetime,
}

/// What a shape is painted with: a code that each theme turns into a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
#[serde(transparent)]
pub struct Paint(pub u16);

impl Paint {
    /// Number of distinct colours for call sites, streams and pools.
    pub const SLOTS: u16 = 32;
    /// Number of steps of the ramp for ordered quantities.
    pub const RAMP: u16 = 16;
    /// Things too small to draw alone, or beyond the largest call sites.
    pub const OTHER: Self = Self(64);
    /// Allocated memory, not told apart further.
    pub const ALLOCATED: Self = Self(65);
    /// Freed and waiting for a stream.
    pub const PENDING: Self = Self(66);
    /// Reserved, in no active block.
    pub const CACHED: Self = Self(67);
    /// Lost to rounding.
    pub const ROUNDING: Self = Self(68);
    /// Address space without memory behind it.
    pub const UNMAPPED: Self = Self(69);
    /// Not matched by the search: drawn faint.
    pub const DIM: u16 = 1 << 8;
    /// In a private pool: drawn with a mark.
    pub const PRIVATE: u16 = 1 << 9;

    /// One of [`Self::SLOTS`] distinct colours.
    pub const fn slot(i: u16) -> Self {
        Self(i % Self::SLOTS)
    }

    /// Step `i` of the ramp, from small to large.
    pub const fn ramp(i: u16) -> Self {
        Self(32 + if i < Self::RAMP { i } else { Self::RAMP - 1 })
    }

    /// The code without its flags.
    pub const fn base(self) -> Self {
        Self(self.0 & 0xff)
    }

    /// Whether a flag is set.
    pub const fn has(self, flag: u16) -> bool {
        self.0 & flag != 0
    }

    /// The same paint with a flag.
    #[must_use]
    pub const fn with(self, flag: u16) -> Self {
        Self(self.0 | flag)
    }
}
