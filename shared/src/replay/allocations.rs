//! Every allocation of a trace as an interval, in columns.

use crate::frames::StackId;
use crate::trace::{Column, TagId};
use crate::units::Address;

/// One allocation, from `alloc` to `free_completed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Where its block starts.
    pub address: Address,
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes of its block.
    pub size: u64,
    /// The position right after it was made; 0 when it was there at the start.
    pub begin: u32,
    /// The position right after `free` was called; [`Allocation::NEVER`] when it was not.
    pub freed: u32,
    /// The position right after its block went back; [`Allocation::NEVER`] when it did not.
    pub end: u32,
    /// Stream, pool and contexts.
    pub tag: TagId,
    /// Who asked for it.
    pub stack: StackId,
    /// The pool that its block belongs to: an index into [`Replay::pools`](super::Replay::pools).
    pub pool: u8,
    /// See the `FLAG_…` constants.
    pub flags: u8,
}

impl Allocation {
    /// A position that never comes.
    pub const NEVER: u32 = u32::MAX;
    /// It lies in a small pool.
    pub const FLAG_SMALL: u8 = 1;
    /// It lies in an expandable segment.
    pub const FLAG_EXPANDABLE: u8 = 2;
    /// Its size is written in the file, not derived from the allocator's rules.
    pub const FLAG_SIZE_WRITTEN: u8 = 4;

    /// Whether it is active at a position.
    pub const fn is_active_at(&self, position: u32) -> bool {
        self.begin <= position && position < self.end
    }

    /// Whether it is allocated at a position: active, and `free` not yet called.
    pub const fn is_allocated_at(&self, position: u32) -> bool {
        self.begin <= position && position < self.freed && position < self.end
    }
}

/// All allocations of a device: those there at the start first (by address), then by the order in which they were
/// made. An allocation's number is its index.
#[derive(Clone, Debug, Default)]
pub struct Allocations {
    /// Addresses.
    pub address: Column<u64>,
    /// Bytes asked for.
    pub requested: Column<u64>,
    /// Bytes of the blocks.
    pub size: Column<u64>,
    /// See [`Allocation::begin`].
    pub begin: Column<u32>,
    /// See [`Allocation::freed`].
    pub freed: Column<u32>,
    /// See [`Allocation::end`].
    pub end: Column<u32>,
    /// [`TagId`] numbers.
    pub tag: Column<u32>,
    /// [`StackId`] numbers.
    pub stack: Column<u32>,
    /// See [`Allocation::pool`].
    pub pool: Column<u8>,
    /// `FLAG_…` bits.
    pub flags: Column<u8>,
}

impl Allocations {
    /// Number of allocations.
    pub fn len(&self) -> usize {
        self.address.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.address.is_empty()
    }

    /// Appends an allocation and gives its number.
    pub fn push(&mut self, a: Allocation) -> u32 {
        let number = self.len() as u32;
        self.address.push(a.address.0);
        self.requested.push(a.requested);
        self.size.push(a.size);
        self.begin.push(a.begin);
        self.freed.push(a.freed);
        self.end.push(a.end);
        self.tag.push(a.tag.0);
        self.stack.push(a.stack.0);
        self.pool.push(a.pool);
        self.flags.push(a.flags);
        number
    }

    /// Packs every column: for a trace whose allocations are complete.
    pub fn pack(&mut self) {
        self.address.pack();
        self.requested.pack();
        self.size.pack();
        self.begin.pack();
        self.freed.pack();
        self.end.pack();
        self.tag.pack();
        self.stack.pack();
        self.pool.pack();
        self.flags.pack();
    }

    /// Bytes of memory that the columns take.
    pub fn memory(&self) -> usize {
        let wide = self.address.memory() + self.requested.memory() + self.size.memory();
        let positions = self.begin.memory() + self.freed.memory() + self.end.memory();
        wide + positions + self.tag.memory() + self.stack.memory() + self.pool.memory() + self.flags.memory()
    }

    /// Allocation `i`, if there is one.
    pub fn get(&self, i: u32) -> Option<Allocation> {
        let i = i as usize;
        Some(Allocation {
            address: Address(self.address.get(i)?),
            requested: self.requested.get(i)?,
            size: self.size.get(i)?,
            begin: self.begin.get(i)?,
            freed: self.freed.get(i)?,
            end: self.end.get(i)?,
            tag: TagId(self.tag.get(i)?),
            stack: StackId(self.stack.get(i)?),
            pool: self.pool.get(i)?,
            flags: self.flags.get(i)?,
        })
    }

    /// How many were made in the first `position` events or before them: the number of the first one made later.
    pub fn made_by(&self, position: u32) -> u32 {
        // Numbers are in order of `begin`.
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.begin.get(middle).is_some_and(|begin| begin <= position) { low = middle + 1 } else { high = middle }
        }
        low as u32
    }

    /// All allocations by number.
    pub fn iter(&self) -> impl Iterator<Item = Allocation> + '_ {
        (0..self.len() as u32).map_while(|i| self.get(i))
    }
}
