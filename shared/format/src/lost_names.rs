//! What stands for the numbers of names that no chunk of a recording has defined, because their chunk was lost.
//!
//! Each such number gets an entry of its own in the tables, once something refers to it: two lost stacks are not one.

use rustc_hash::{FxHashMap, FxHashSet};

use trace::frames::{StackId, Symbols};
use trace::limits::LOST_NAMES;

/// How much of the names was lost, of what something refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostNames {
    /// Stacks of which no chunk tells the frames.
    pub stacks: usize,
    /// Stacks with a frame of which a name was lost.
    pub parts: usize,
}

/// A kind of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    String,
    Frame,
    Stack,
}

/// The numbers that are lost.
#[derive(Debug, Default)]
pub(super) struct LostNumbers {
    /// For each kind, by number: what stands for it.
    ids: [FxHashMap<u32, u32>; 3],
    /// The stacks with a frame of which a name was lost.
    parts: FxHashSet<StackId>,
    /// How many stacks are written as lost: the recording is a copy.
    written: usize,
}

/// The number of all that are beyond the limit.
const FURTHER: u32 = u32::MAX;

impl LostNumbers {
    /// Returns what stands for a number, which `new` makes.
    #[cold]
    pub(super) fn stand_in(&mut self, kind: Named, number: u32, new: impl FnOnce() -> u32) -> u32 {
        let [strings, frames, stacks] = &mut self.ids;
        let ids = match kind {
            Named::String => strings,
            Named::Frame => frames,
            Named::Stack => stacks,
        };
        let number = if ids.len() < LOST_NAMES || ids.contains_key(&number) { number } else { FURTHER };
        *ids.entry(number).or_insert_with(new)
    }

    /// Notes that names of some frames of a stack were lost.
    pub(super) fn add_part(&mut self, stack: StackId) {
        self.parts.insert(stack);
    }

    /// Returns the stack for one that is written as lost.
    pub(super) fn written(&mut self, symbols: &mut Symbols) -> StackId {
        self.written += 1;
        symbols.lose_stack()
    }

    /// Returns whether names of some frames of a stack were lost.
    #[inline]
    pub(super) fn is_part(&self, stack: StackId) -> bool {
        !self.parts.is_empty() && self.parts.contains(&stack)
    }

    /// Returns whether any stack is written as lost.
    #[inline]
    pub(super) const fn has_written(&self) -> bool {
        self.written > 0
    }

    /// Returns how much was lost.
    pub(super) fn told(&self) -> LostNames {
        let [.., stacks] = &self.ids;
        LostNames { stacks: stacks.len() + self.written, parts: self.parts.len() }
    }

    /// Returns the bytes of memory that they occupy.
    pub(super) fn bytes(&self) -> usize {
        let entries: usize = self.ids.iter().map(FxHashMap::capacity).sum();
        (2 * entries + self.parts.capacity()) * 2 * size_of::<u32>()
    }
}
