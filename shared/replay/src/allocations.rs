//! The allocations of a trace as intervals, in columns.

use trace::frames::StackId;
use trace::units::Address;
use trace::{Column, TagId};

/// One allocation, from `alloc` to `free_completed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The address of its block.
    pub address: Address,
    /// Requested bytes.
    pub requested: u64,
    /// The size of its block in bytes.
    pub size: u64,
    /// The position right after it was made; 0 if it was active at the start.
    pub begin: u32,
    /// The position right after `free` was called; [`Allocation::NEVER`] if it was not.
    pub freed: u32,
    /// The position right after its block became free; [`Allocation::NEVER`] if it did not.
    pub end: u32,
    /// Stream, pool and contexts.
    pub tag: TagId,
    /// Its call site.
    pub stack: StackId,
    /// The pool that its block belongs to: an index into [`Replay::pools`](super::Replay::pools).
    pub pool: u8,
    /// See the `FLAG_…` constants.
    pub flags: u8,
}

impl Allocation {
    /// The position of an event that never happens.
    pub const NEVER: u32 = u32::MAX;
    /// It lies in a small pool.
    pub const FLAG_SMALL: u8 = 1;
    /// It lies in an expandable segment.
    pub const FLAG_EXPANDABLE: u8 = 2;
    /// Its size is recorded, not derived from the allocator's rules.
    pub const FLAG_SIZE_WRITTEN: u8 = 4;

    /// Returns whether it is active at a position.
    pub const fn is_active_at(&self, position: u32) -> bool {
        self.begin <= position && position < self.end
    }

    /// Whether it is allocated at a position: active, and `free` not yet called.
    pub const fn is_allocated_at(&self, position: u32) -> bool {
        self.begin <= position && position < self.freed && position < self.end
    }
}

/// The allocations of a device: first those active at the start, by address, then the others in the order in which they
/// were made. An allocation's number is its index.
#[derive(Clone, Debug, Default)]
pub struct Allocations {
    /// Addresses.
    pub address: Column<u64>,
    /// Requested bytes.
    pub requested: Column<u64>,
    /// Sizes of the blocks in bytes.
    pub size: Column<u64>,
    /// Positions: see [`Allocation::begin`].
    pub begin: Column<u32>,
    /// Positions: see [`Allocation::freed`].
    pub freed: Column<u32>,
    /// Positions: see [`Allocation::end`].
    pub end: Column<u32>,
    /// [`TagId`] numbers.
    pub tag: Column<u32>,
    /// [`StackId`] numbers.
    pub stack: Column<u32>,
    /// Indices into the pools: see [`Allocation::pool`].
    pub pool: Column<u8>,
    /// `FLAG_…` bits.
    pub flags: Column<u8>,
}

impl Allocations {
    /// Returns the number of allocations.
    pub fn len(&self) -> usize {
        self.address.len()
    }

    /// Returns whether there are no allocations.
    pub fn is_empty(&self) -> bool {
        self.address.is_empty()
    }

    /// Appends an allocation, and returns its number.
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

    /// Returns allocation `i`, if there is one.
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

    /// Returns how many allocations begin at or before `position`, which is the number of the first later one.
    pub fn made_by(&self, position: u32) -> u32 {
        // Numbers are in order of `begin`.
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.begin.get(middle).is_some_and(|begin| begin <= position) { low = middle + 1 } else { high = middle }
        }
        low as u32
    }

    /// Returns the allocations by number.
    pub fn iter(&self) -> impl Iterator<Item = Allocation> + '_ {
        (0..self.len() as u32).map_while(|i| self.get(i))
    }
}
