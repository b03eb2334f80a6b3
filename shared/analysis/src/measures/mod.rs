//! Measures of fragmentation: what the allocator holds, and how much of it can serve a request, exact at every position.
//!
//! All sizes are in bytes. A *range* is a native segment, or a contiguous mapped range of an expandable one; a *gap* is a
//! maximal part of a range without an active block. In a trace without contradictions,
//! ```text
//! reserved = active + inactive_split + cached_whole
//!            active = allocated + pending          inactive_split = gaps of ranges with an active block
//!            active = requested + rounding         cached_whole   = ranges without an active block
//! ```
//! [`Measuring`] follows a trace and gives the [`Measures`] of each position; [`servable`](servable()) gives what each
//! pool and stream can serve at one.

mod gap_sizes;
mod measuring;
mod servable;

use gap_sizes::GapSizes;
pub use measuring::Measuring;
pub use servable::{Servable, servable};

use allocator::rounding;
use query::Measure;
use replay::{Change, Replay};

/// The measures at one position. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Requested by active allocations, from `alloc` to `free_completed`. PyTorch: `requested_bytes.all.current`, which
    /// ends at `free` already.
    pub requested: u64,
    /// In allocated blocks: from `alloc` to `free`. PyTorch: `allocated_bytes.all.current`.
    pub allocated: u64,
    /// In active blocks: allocated, or waiting for a stream. PyTorch: `active_bytes.all.current`.
    pub active: u64,
    /// In ranges. PyTorch: `reserved_bytes.all.current`.
    pub reserved: u64,
    /// In gaps of ranges that also hold an active block: free, but `empty_cache` can't give such a native segment back to
    /// the driver. Of an expandable one it unmaps the pages that are wholly free.
    ///
    /// At a peak, this is memory that the process holds beyond its need, and can neither use for the request at hand nor
    /// give back. PyTorch: `inactive_split_bytes.all.current`, which leaves out expandable segments. Here they count.
    pub inactive_split: u64,
    /// In ranges without an active block. `empty_cache` and the allocator's own retry give them back to the driver.
    pub cached_whole: u64,
    /// The largest gap in a range of a small pool.
    pub largest_small_gap: u64,
    /// The largest gap in a range of a large pool.
    pub largest_large_gap: u64,
    /// Number of gaps.
    pub gaps: u32,
    /// The sum of the squares of all gaps, in square bytes.
    pub square_sum: u128,
}

impl Measures {
    /// Adds a change to the sums that do not follow from the gaps: requested, allocated, active and reserved bytes.
    #[inline]
    pub fn add(&mut self, replay: &Replay, change: Change) {
        let allocations = &replay.allocations;
        let size = |number: u32| allocations.size.get(number as usize).unwrap_or_default();
        let requested = |number: u32| allocations.requested.get(number as usize).unwrap_or_default();
        match change {
            Change::Begin(number) => {
                let size = size(number);
                self.requested = self.requested.saturating_add(requested(number));
                self.allocated = self.allocated.saturating_add(size);
                self.active = self.active.saturating_add(size);
            }
            Change::Freed(number) => self.allocated = self.allocated.saturating_sub(size(number)),
            Change::End(number) => {
                self.requested = self.requested.saturating_sub(requested(number));
                self.active = self.active.saturating_sub(size(number));
            }
            Change::Reserved(bytes) => self.reserved = self.reserved.saturating_add_signed(bytes),
        }
    }

    /// Returns the free memory of all ranges: Σ gap = `inactive_split + cached_whole`. In a trace without
    /// contradictions, this is `reserved - active`.
    pub const fn cached(&self) -> u64 {
        self.inactive_split.saturating_add(self.cached_whole)
    }

    /// Returns the reserved memory that is in no live tensor: `reserved - allocated`. It consists of cached memory and of
    /// blocks that wait for a stream.
    pub const fn unallocated(&self) -> u64 {
        self.reserved.saturating_sub(self.allocated)
    }

    /// Returns the memory lost to rounding: `active - requested`.
    pub const fn rounding(&self) -> u64 {
        self.active.saturating_sub(self.requested)
    }

    /// Returns the largest gap of all ranges.
    pub fn largest_gap(&self) -> u64 {
        self.largest_small_gap.max(self.largest_large_gap)
    }

    /// Returns the largest request that some small pool can serve without the driver: `min(largest_small_gap, 1 MiB)`.
    ///
    /// Requests up to 1 MiB (PyTorch's `kSmallSize`) go to small pools. A request has the size that it is rounded to, and
    /// its stream and pool must be those of the gap: see [`servable`](servable()).
    pub fn largest_servable_small(&self) -> u64 {
        rounding::largest_servable(self.largest_small_gap, true)
    }

    /// Returns the largest request that some large pool can serve without the driver: `largest_large_gap`, or 0 if that
    /// is at most 1 MiB, since smaller requests go to small pools. (Only expandable segments have gaps that small.)
    pub const fn largest_servable_large(&self) -> u64 {
        rounding::largest_servable(self.largest_large_gap, false)
    }

    /// Returns the largest request that can be served without the driver, by any pool and stream.
    pub fn largest_servable(&self) -> u64 {
        self.largest_servable_small().max(self.largest_servable_large())
    }

    /// Returns the share of free memory that the largest possible request cannot use:
    /// `1 - largest_servable / cached`, from 0 to 1; 0 if nothing is cached.
    pub fn unusable_share(&self) -> f64 {
        replay::unusable_share(self.largest_servable(), self.cached())
    }

    /// Returns the fragmentation index `1 - Σ gap² / (Σ gap)²`: the probability that two free bytes chosen at random lie
    /// in different gaps. It is 0 for a single gap (or none) and close to 1 for many small ones.
    pub fn fragmentation_index(&self) -> f64 {
        match self.cached() {
            0 => 0.0,
            cached => (1.0 - self.square_sum as f64 / (cached as f64 * cached as f64)).max(0.0),
        }
    }

    /// Returns the value of a measure: bytes, a count, or a share. Numbers of bytes are exact up to 2⁵³.
    pub fn value(&self, measure: Measure) -> f64 {
        let number = match measure {
            Measure::Requested => self.requested,
            Measure::Allocated => self.allocated,
            Measure::Active => self.active,
            Measure::Reserved => self.reserved,
            Measure::Unallocated => self.unallocated(),
            Measure::Cached => self.cached(),
            Measure::InactiveSplit => self.inactive_split,
            Measure::CachedWhole => self.cached_whole,
            Measure::Rounding => self.rounding(),
            Measure::LargestGap => self.largest_gap(),
            Measure::LargestServableSmall => self.largest_servable_small(),
            Measure::LargestServableLarge => self.largest_servable_large(),
            Measure::Gaps => u64::from(self.gaps),
            Measure::UnusableShare => return self.unusable_share(),
            Measure::FragmentationIndex => return self.fragmentation_index(),
        };
        number as f64
    }
}
