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

    /// Returns step `i` of the ramp, from small to large.
    pub const fn ramp(i: u16) -> Self {
        Self(32 + if i < Self::RAMP { i } else { Self::RAMP - 1 })
    }

    /// Returns whether the colours of two slots are hard to tell apart where they touch, for some people at least.
    pub fn is_near(self, other: Self) -> bool {
        let near = NEAR.get(usize::from(self.base().0)).copied().unwrap_or(0);
        self.base() == other.base() || other.base().0 < Self::SLOTS && near >> other.base().0 & 1 == 1
    }

    /// Returns the code without its flags.
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

/// For each slot, a bit for each other slot whose colour is near its own in one of the themes, or for colour-blind
/// people. A test of the palette compares the colours.
const NEAR: [u32; Paint::SLOTS as usize] = [
    0x6004_8208,
    0x9021_2400,
    0x2492_c300,
    0x4104_8201,
    0x934c_2080,
    0x0082_0000,
    0x0924_1200,
    0x9248_2010,
    0x2410_4804,
    0x4104_804d,
    0x1001_2002,
    0x2410_4100,
    0x0920_0040,
    0x9200_0492,
    0x2410_0904,
    0x6104_020d,
    0x1000_0402,
    0x2090_0024,
    0x4100_8259,
    0x8240_0090,
    0x2402_4904,
    0x9900_1042,
    0x8208_0090,
    0x0002_0024,
    0x8024_9258,
    0x8048_2090,
    0x2010_4904,
    0x0020_1040,
    0x8021_2492,
    0x0412_c905,
    0x0004_8209,
    0x1368_2092,
];
