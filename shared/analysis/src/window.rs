//! The sums over a range of positions, in one sweep of its changes: what was allocated, freed and kept, the peak, and
//! how long freed blocks waited for a stream.
//!
//! ```text
//! allocated − freed        = requested bytes at the end − requested bytes at the start
//! allocated = kept + churned
//! ```
//! An allocation is freed when its block becomes free. A freed block waits for a stream from `free` to then.

use rustc_hash::FxHashMap;

use super::site::Sites;
use query::{RangeAmounts, RangeOrder, Waits};
use replay::{Allocation, AllocatorState, Change, Replayed};
use trace::frames::StackId;
use trace::order::SortFew;
use trace::totals::{Amount, Totals};

/// A block that becomes free in the call that freed it does not wait, although its two events have times of their own.
/// They are at most a few microseconds apart.
pub const WAIT_LEAST_US: i64 = 10;

/// The sums over a range.
#[derive(Clone, Debug)]
pub struct WindowSums {
    /// The first position.
    pub from: u32,
    /// The last position.
    pub to: u32,
    /// The totals at the first position.
    pub before: Totals,
    /// The totals at the last one.
    pub after: Totals,
    /// The largest sum of requested bytes, and the first position that has it.
    pub peak: (u64, u32),
    /// The blocks that waited for a stream.
    pub waits: Waits,
    /// What was reserved from the driver.
    pub taken: Amount,
    /// What was given back to the driver.
    pub released: Amount,
    /// The sums over the allocations of each stack, by its number.
    stacks: Vec<RangeAmounts>,
}

/// The sums over one line in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLine {
    /// Its first stack.
    pub stack: StackId,
    /// Its sums.
    pub amounts: RangeAmounts,
}

impl WindowSums {
    /// Sweeps the range between two states.
    pub fn build(input: Replayed<'_>, before: &AllocatorState, after: &AllocatorState) -> Self {
        let Replayed { trace, replay, .. } = input;
        let (from, to) = (before.position, after.position);
        let peak = (before.totals.requested, from);
        let mut sums = Self {
            from,
            to,
            before: before.totals,
            after: after.totals,
            peak,
            waits: Waits::default(),
            taken: Amount::default(),
            released: Amount::default(),
            stacks: Vec::new(),
        };
        let (mut now, mut swept) = (before.totals.requested, from);
        replay.changes(trace, from, to, |position, change| {
            // All changes of one position belong together.
            if position != swept {
                sums.reach(now, swept);
                swept = position;
            }
            match change {
                Change::Begin(id) => {
                    let Some(a) = replay.allocations.get(id) else { return };
                    now = now.saturating_add(a.requested);
                    let amounts = sums.of(a.stack);
                    amounts.allocated.add(a.requested);
                    amounts.kept.add(a.requested);
                }
                Change::End(id) => {
                    let Some(a) = replay.allocations.get(id) else { return };
                    now = now.saturating_sub(a.requested);
                    let amounts = sums.of(a.stack);
                    amounts.freed.add(a.requested);
                    if a.begin > from {
                        amounts.kept = amounts.kept.less(Amount { bytes: a.requested, count: 1 });
                    }
                    sums.wait(input, id, &a, position);
                }
                Change::Freed(_) | Change::Reserved(_) => {}
            }
        });
        sums.reach(now, swept);
        for &id in &after.active {
            if let Some(a) = replay.allocations.get(id).filter(|a| a.freed <= to) {
                sums.wait(input, id, &a, to);
            }
        }
        for (_, bytes) in replay.reserved_changes(from, to) {
            if bytes >= 0 { &mut sums.taken } else { &mut sums.released }.add(bytes.unsigned_abs());
        }
        sums
    }

    /// Returns the sums of a stack.
    fn of(&mut self, stack: StackId) -> &mut RangeAmounts {
        let i = stack.0 as usize;
        if self.stacks.len() <= i {
            self.stacks.resize(i + 1, RangeAmounts::default());
        }
        &mut self.stacks[i]
    }

    fn reach(&mut self, requested: u64, position: u32) {
        if requested > self.peak.0 {
            self.peak = (requested, position);
        }
    }

    /// Adds the time for which a block waited in the range, up to a position.
    fn wait(&mut self, Replayed { trace, replay, .. }: Replayed<'_>, id: u32, a: &Allocation, until: u32) {
        let time = |position: u32| replay.time_at(trace, position);
        let is_wait =
            a.freed < a.end && (a.end - a.freed > 1 || time(a.end).saturating_sub(time(a.freed)) >= WAIT_LEAST_US);
        if !is_wait {
            return;
        }
        let us = time(until).saturating_sub(time(a.freed.max(self.from))).max(0).unsigned_abs();
        let amounts = self.of(a.stack);
        amounts.waited_us = amounts.waited_us.saturating_add(us);
        let waits = &mut self.waits;
        waits.blocks += 1;
        waits.byte_us = waits.byte_us.saturating_add(u128::from(a.size) * u128::from(us));
        if waits.longest.is_none_or(|other| us > waits.longest_us || (us == waits.longest_us && id < other)) {
            (waits.longest_us, waits.longest) = (us, Some(id));
        }
    }

    /// Returns the sums over all allocations.
    pub fn amounts(&self) -> RangeAmounts {
        let mut sum = RangeAmounts::default();
        for stack in &self.stacks {
            sum.plus(*stack);
        }
        sum
    }

    /// Returns the sums of the lines that have any, the largest first. Equal ones are ordered by their text.
    pub fn lines(&self, sites: &Sites, order: RangeOrder) -> Vec<WindowLine> {
        let mut lines: FxHashMap<u32, WindowLine> = FxHashMap::default();
        for (stack, amounts) in (0..).map(StackId).zip(&self.stacks) {
            if *amounts == RangeAmounts::default() {
                continue;
            }
            let empty = || WindowLine { stack: sites.first(stack), amounts: RangeAmounts::default() };
            lines.entry(sites.line(stack)).or_insert_with(empty).amounts.plus(*amounts);
        }
        let mut lines: Vec<WindowLine> = lines.into_values().collect();
        lines.sort_few_by(|a, b| {
            let by_sum = b.amounts.by(order).cmp(&a.amounts.by(order));
            by_sum.then_with(|| sites.label(a.stack).cmp(sites.label(b.stack))).then(a.stack.cmp(&b.stack))
        });
        lines
    }

    /// Returns the sums of one line.
    pub fn line(&self, sites: &Sites, line: u32) -> RangeAmounts {
        let mut sum = RangeAmounts::default();
        for (_, amounts) in (0..).map(StackId).zip(&self.stacks).filter(|(stack, _)| sites.line(*stack) == line) {
            sum.plus(*amounts);
        }
        sum
    }
}
