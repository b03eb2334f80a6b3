//! The high-water marks of a device over a whole trace.

use replay::{Change, Replay};
use trace::DeviceTrace;

/// The largest sums that a trace reaches, in bytes. Each may be reached at another position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HighWater {
    /// Requested by active allocations.
    pub requested: u64,
    /// In allocated blocks.
    pub allocated: u64,
    /// In segments.
    pub reserved: u64,
}

impl HighWater {
    /// Returns the high-water marks of a trace, in one sweep over its events.
    pub fn of(trace: &DeviceTrace, replay: &Replay) -> Self {
        let allocations = &replay.allocations;
        let requested = |id: u32| allocations.requested.get(id as usize).unwrap_or(0);
        let size = |id: u32| allocations.size.get(id as usize).unwrap_or(0);
        let start = replay.totals_at_start();
        let mut now = Self { requested: start.requested, allocated: start.allocated, reserved: start.reserved };
        let mut peak = now;
        replay.changes(trace, 0, u32::MAX, |_, change| match change {
            Change::Begin(id) => {
                now.requested = now.requested.saturating_add(requested(id));
                now.allocated = now.allocated.saturating_add(size(id));
                peak.requested = peak.requested.max(now.requested);
                peak.allocated = peak.allocated.max(now.allocated);
            }
            Change::Freed(id) => now.allocated = now.allocated.saturating_sub(size(id)),
            Change::End(id) => now.requested = now.requested.saturating_sub(requested(id)),
            Change::Reserved(bytes) => {
                now.reserved = now.reserved.saturating_add_signed(bytes);
                peak.reserved = peak.reserved.max(now.reserved);
            }
        });
        peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_is_the_largest_sum_over_all_positions() {
        let mut snapshot = trace::testing::snapshot(
            "segment_alloc 0x1000000 20971520
             alloc 0x1000000 1000
             free_requested 0x1000000
             alloc 0x1100000 300
             free_completed 0x1000000
             segment_alloc 0x4000000 2097152
             segment_free 0x4000000
             free 0x1100000",
        );
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let marks = HighWater::of(&trace, &replay);
        assert_eq!((marks.requested, marks.reserved), (1_300, 23_068_672));
        let totals = |position| replay.state_at(position).totals;
        let largest = |sum: fn(trace::totals::Totals) -> u64| (0..=replay.positions()).map(|p| sum(totals(p))).max();
        assert_eq!(largest(|totals| totals.requested), Some(marks.requested));
        assert_eq!(largest(|totals| totals.allocated), Some(marks.allocated));
        assert_eq!(largest(|totals| totals.reserved), Some(marks.reserved));
    }
}
