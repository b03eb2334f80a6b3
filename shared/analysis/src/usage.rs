//! The memory use of each call site over a whole trace, and the peak of all together, in one sweep.

use replay::index::Index;
use replay::{Allocations, Change, Replayed};
use trace::ColumnReader;
use trace::frames::StackId;

/// The sums over one call site's allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteUsage {
    /// The number of allocations.
    pub count: u32,
    /// The sum of their requested bytes.
    pub bytes: u64,
    /// The largest sum of requested bytes that was active at once.
    pub peak_bytes: u64,
    /// The position at which that was first reached.
    pub peak_position: u32,
    /// Requested bytes that are active at the end.
    pub end_bytes: u64,
    /// The number of allocations that are active at the end.
    pub end_count: u32,
    /// Requested bytes times the number of positions at which they are active: the site's area in a timeline.
    pub area: f64,
}

/// A device's memory use by call site.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// By stack number.
    sites: Vec<SiteUsage>,
    /// The largest sum of requested bytes over the trace.
    pub peak_bytes: u64,
    /// The position at which it was first reached.
    pub peak_position: u32,
    /// The largest sum of reserved bytes over the trace.
    pub peak_reserved: u64,
    /// The running sums, by stack number.
    live: Vec<RunningUsage>,
    /// Requested bytes that are active at [`Self::until`].
    live_in_all: u64,
    /// Bytes reserved at [`Self::until`].
    reserved: u64,
    /// The position up to which the trace was swept; `None` before its start was.
    until: Option<u32>,
}

/// The running sums of one call site.
#[derive(Clone, Copy, Debug, Default)]
struct RunningUsage {
    /// Active requested bytes.
    bytes: u64,
    /// Those bytes, each times the position at which it became active.
    since: u128,
    /// Requested bytes that are no longer active, each times the number of positions at which it was.
    done: u128,
}

/// What is read of allocations. Those of neighbouring changes are close to each other.
struct Reader<'a> {
    requested: ColumnReader<'a, u64>,
    stack: ColumnReader<'a, u32>,
    begin: ColumnReader<'a, u32>,
}

impl<'a> Reader<'a> {
    fn new(Allocations { requested, stack, begin, .. }: &'a Allocations) -> Self {
        Self { requested: requested.reader(), stack: stack.reader(), begin: begin.reader() }
    }

    /// Returns the requested bytes and the stack of an allocation.
    #[inline]
    fn get(&mut self, id: u32) -> (u64, usize) {
        let stack = self.stack.get(id as usize).unwrap_or(0);
        (self.requested.get(id as usize).unwrap_or(0), stack as usize)
    }
}

impl Index<Replayed<'_>> for Usage {
    fn extend(&mut self, Replayed { trace, replay, .. }: Replayed<'_>) {
        let reader = &mut Reader::new(&replay.allocations);
        if self.until.is_none() {
            self.reserved = replay.reserved_at_start();
            self.peak_reserved = self.reserved;
            for (id, _) in (0..).zip(replay.allocations.begin.iter()).take_while(|(_, begin)| *begin == 0) {
                self.begin(reader, 0, id);
            }
        }
        replay.changes(trace, self.until.unwrap_or(0), u32::MAX, |position, change| match change {
            Change::Begin(id) => self.begin(reader, position, id),
            Change::End(id) => self.end(reader, position, id),
            Change::Reserved(bytes) => {
                self.reserved = self.reserved.saturating_add_signed(bytes);
                self.peak_reserved = self.peak_reserved.max(self.reserved);
            }
            Change::Freed(_) => {}
        });
        let end = replay.positions();
        self.until = Some(end);
        // The last position is drawn as wide as the others, so that what the last event makes counts too.
        let behind = u128::from(end) + 1;
        for (site, live) in self.sites.iter_mut().zip(&self.live) {
            site.area = (live.done + (u128::from(live.bytes) * behind).saturating_sub(live.since)) as f64;
        }
    }

    fn bytes(&self) -> usize {
        self.sites.capacity() * size_of::<SiteUsage>() + self.live.capacity() * size_of::<RunningUsage>()
    }
}

impl Usage {
    fn begin(&mut self, reader: &mut Reader<'_>, position: u32, id: u32) {
        let (bytes, stack) = reader.get(id);
        if self.live.len() <= stack {
            self.live.resize(stack + 1, RunningUsage::default());
            self.sites.resize(stack + 1, SiteUsage::default());
        }
        let (Some(live), Some(site)) = (self.live.get_mut(stack), self.sites.get_mut(stack)) else { return };
        live.bytes = live.bytes.saturating_add(bytes);
        live.since += area(bytes, position);
        self.live_in_all = self.live_in_all.saturating_add(bytes);
        site.count += 1;
        site.bytes = site.bytes.saturating_add(bytes);
        site.end_bytes = site.end_bytes.saturating_add(bytes);
        site.end_count += 1;
        if live.bytes > site.peak_bytes {
            (site.peak_bytes, site.peak_position) = (live.bytes, position);
        }
        if self.live_in_all > self.peak_bytes {
            (self.peak_bytes, self.peak_position) = (self.live_in_all, position);
        }
    }

    fn end(&mut self, reader: &mut Reader<'_>, position: u32, id: u32) {
        let (bytes, stack) = reader.get(id);
        self.live_in_all = self.live_in_all.saturating_sub(bytes);
        let (Some(live), Some(site)) = (self.live.get_mut(stack), self.sites.get_mut(stack)) else { return };
        let begin = reader.begin.get(id as usize).unwrap_or(position);
        live.bytes = live.bytes.saturating_sub(bytes);
        live.since = live.since.saturating_sub(area(bytes, begin));
        live.done += area(bytes, position.saturating_sub(begin));
        site.end_bytes = site.end_bytes.saturating_sub(bytes);
        site.end_count = site.end_count.saturating_sub(1);
    }

    /// Returns the number of positions that were swept.
    pub fn positions(&self) -> u32 {
        self.until.map_or(0, |until| until.saturating_add(1))
    }

    /// Returns the sums over the allocations of a stack; zeros for a stack without any.
    pub fn site(&self, stack: StackId) -> SiteUsage {
        self.sites.get(stack.0 as usize).copied().unwrap_or_default()
    }

    /// Returns the stacks that have allocations.
    pub fn iter(&self) -> impl Iterator<Item = (StackId, SiteUsage)> + '_ {
        (0..).map(StackId).zip(self.sites.iter().copied()).filter(|(_, site)| site.count > 0)
    }
}

/// Returns bytes times positions. The product seldom needs 128 bits, which WebAssembly multiplies slowly.
#[inline]
fn area(bytes: u64, positions: u32) -> u128 {
    match u32::try_from(bytes) {
        Ok(bytes) => (u64::from(bytes) * u64::from(positions)).into(),
        Err(_) => u128::from(bytes) * u128::from(positions),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use replay::Replay;

    #[test]
    fn sums_are_kept_by_call_site() {
        let mut snapshot = trace::testing::snapshot(
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
        let usage = Usage::build(Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay });
        assert_eq!((usage.peak_bytes, usage.peak_position), (3_300, 4));
        assert_eq!(usage.peak_reserved, 20_971_520);
        let a = usage.site(StackId(1));
        assert_eq!((a.count, a.bytes), (3, 3_500));
        assert_eq!((a.peak_bytes, a.peak_position), (3_000, 4));
        assert_eq!((a.end_bytes, a.end_count), (500, 1));
        // Active at the positions 2 to 5, 4 to 7, and 9, the last.
        assert_eq!(a.area, 1_000.0 * 4.0 + 2_000.0 * 4.0 + 500.0);
        assert_eq!(usage.site(StackId(2)).end_bytes, 300);
        assert_eq!(usage.iter().count(), 2);
        assert_eq!(usage.site(StackId(99)), SiteUsage::default());
    }
}
