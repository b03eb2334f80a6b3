//! What each call site used over a whole trace, and the peak of them all, in one sweep.

use crate::frames::StackId;
use crate::replay::{Allocation, Change, Replay};
use crate::trace::DeviceTrace;

/// What one call site's allocations came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteUsage {
    /// Allocations.
    pub count: u32,
    /// Their requested bytes, all added up.
    pub bytes: u64,
    /// The largest sum of requested bytes that was active at once.
    pub peak_bytes: u64,
    /// Where that was first reached: a position.
    pub peak_position: u32,
    /// Requested bytes never freed in the trace.
    pub end_bytes: u64,
    /// Number of those allocations.
    pub end_count: u32,
    /// Requested bytes times the positions that they were held for: the area that the site takes in a timeline.
    pub area: f64,
}

/// The use of a device's memory by call site.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// By stack number.
    sites: Vec<SiteUsage>,
    /// The largest sum of requested bytes over the trace.
    pub peak_bytes: u64,
    /// Where it was first reached: a position.
    pub peak_position: u32,
    /// The largest sum of reserved bytes over the trace.
    pub peak_reserved: u64,
}

impl Usage {
    /// Sums up a trace.
    pub fn build(trace: &DeviceTrace, replay: &Replay) -> Self {
        let mut sweep = Sweep { replay, usage: Self::default(), live: Vec::new(), live_in_all: 0 };
        let mut reserved = replay.reserved_at_start();
        let mut peak_reserved = reserved;
        for (id, _) in (0..).zip(replay.allocations.begin.iter()).take_while(|(_, begin)| *begin == 0) {
            sweep.begin(0, id);
        }
        replay.changes(trace, 0, u32::MAX, |position, change| match change {
            Change::Begin(id) => sweep.begin(position, id),
            Change::End(id) => sweep.end(id),
            Change::Reserved(bytes) => {
                reserved = reserved.saturating_add_signed(bytes);
                peak_reserved = peak_reserved.max(reserved);
            }
            Change::Freed(_) => {}
        });
        Self { peak_reserved, ..sweep.usage }
    }

    /// What the allocations of a stack came to; nothing for a stack without any.
    pub fn site(&self, stack: StackId) -> SiteUsage {
        self.sites.get(stack.0 as usize).copied().unwrap_or_default()
    }

    /// All stacks that have allocations.
    pub fn iter(&self) -> impl Iterator<Item = (StackId, SiteUsage)> + '_ {
        (0..).map(StackId).zip(self.sites.iter().copied()).filter(|(_, site)| site.count > 0)
    }
}

/// The running sums behind a [`Usage`].
struct Sweep<'a> {
    replay: &'a Replay,
    usage: Usage,
    /// Requested bytes active now, by stack.
    live: Vec<u64>,
    live_in_all: u64,
}

impl Sweep<'_> {
    /// Requested bytes and stack of an allocation.
    fn look_up(&self, id: u32) -> (u64, usize) {
        let allocations = &self.replay.allocations;
        let stack = allocations.stack.get(id as usize).unwrap_or(0);
        (allocations.requested.get(id as usize).unwrap_or(0), stack as usize)
    }

    fn begin(&mut self, position: u32, id: u32) {
        let (bytes, stack) = self.look_up(id);
        if self.live.len() <= stack {
            self.live.resize(stack + 1, 0);
            self.usage.sites.resize(stack + 1, SiteUsage::default());
        }
        let usage = &mut self.usage;
        let (Some(held), Some(site)) = (self.live.get_mut(stack), usage.sites.get_mut(stack)) else { return };
        *held = held.saturating_add(bytes);
        self.live_in_all = self.live_in_all.saturating_add(bytes);
        site.count += 1;
        site.bytes = site.bytes.saturating_add(bytes);
        if *held > site.peak_bytes {
            (site.peak_bytes, site.peak_position) = (*held, position);
        }
        if self.live_in_all > usage.peak_bytes {
            (usage.peak_bytes, usage.peak_position) = (self.live_in_all, position);
        }
        let end = self.replay.allocations.end.get(id as usize).unwrap_or(Allocation::NEVER);
        if end == Allocation::NEVER {
            site.end_bytes = site.end_bytes.saturating_add(bytes);
            site.end_count += 1;
        }
        // The last position is drawn as one more, so that what the last event makes counts too.
        let until = end.min(self.replay.positions() + 1);
        site.area += bytes as f64 * f64::from(until.saturating_sub(position));
    }

    fn end(&mut self, id: u32) {
        let (bytes, stack) = self.look_up(id);
        if let Some(held) = self.live.get_mut(stack) {
            *held = held.saturating_sub(bytes);
        }
        self.live_in_all = self.live_in_all.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_site_is_summed_up_apart() {
        let mut snapshot = crate::testing::snapshot(
            "segment_alloc 0x1000000 20971520
             alloc 0x1000000 1000 a@/m/a.py:1
             alloc 0x1100000 300 b@/m/b.py:1
             alloc 0x1200000 2000 a@/m/a.py:1
             free 0x1000000
             free 0x1200000
             alloc 0x1000000 500 a@/m/a.py:1",
        );
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let usage = Usage::build(&trace, &replay);
        assert_eq!((usage.peak_bytes, usage.peak_position), (3_300, 4));
        assert_eq!(usage.peak_reserved, 20_971_520);
        let a = usage.site(StackId(1));
        assert_eq!((a.count, a.bytes), (3, 3_500));
        assert_eq!((a.peak_bytes, a.peak_position), (3_000, 4));
        assert_eq!((a.end_bytes, a.end_count), (500, 1));
        // Held over the positions 2 to 5, 4 to 7, and 9, the last.
        assert_eq!(a.area, 1_000.0 * 4.0 + 2_000.0 * 4.0 + 500.0);
        assert_eq!(usage.site(StackId(2)).end_bytes, 300);
        assert_eq!(usage.iter().count(), 2);
        assert_eq!(usage.site(StackId(99)), SiteUsage::default());
    }
}
