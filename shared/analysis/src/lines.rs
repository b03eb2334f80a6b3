//! Active memory by line: the stacks of one line of the program are summed, and can be listed again.

use rustc_hash::FxHashMap;

use super::peak::held;
use super::site::Sites;
use query::Memory;
use replay::{Allocation, Replay};
use trace::frames::StackId;
use trace::order::SortFew;
use trace::totals::Amount;

/// The memory of one stack, or of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineMemory {
    /// The stack; of a line, its first one.
    pub stack: StackId,
    /// The number of stacks that have memory.
    pub stacks: u32,
    /// Its memory.
    pub memory: Memory,
}

/// Returns the memory of each stack: of the allocations `now`, and of those `before`. The order is that of [`ranked`].
pub fn by_stack(
    replay: &Replay,
    sites: &Sites,
    now: impl Iterator<Item = u32>,
    before: Option<impl Iterator<Item = u32>>,
) -> Vec<LineMemory> {
    let mut stacks: FxHashMap<StackId, Memory> = FxHashMap::default();
    for held in held(replay, now) {
        stacks.entry(held.stack).or_default().now = Amount { bytes: held.bytes, count: held.count };
    }
    for held in before.map(|before| held(replay, before)).unwrap_or_default() {
        stacks.entry(held.stack).or_default().before = Amount { bytes: held.bytes, count: held.count };
    }
    let stacks = stacks.into_iter().map(|(stack, memory)| LineMemory { stack, stacks: 1, memory });
    ranked(stacks.collect(), sites)
}

/// Returns the memory of each line, in the order of [`ranked`].
pub fn by_line(stacks: &[LineMemory], sites: &Sites) -> Vec<LineMemory> {
    let mut lines: FxHashMap<u32, LineMemory> = FxHashMap::default();
    for of in stacks {
        let empty = || LineMemory { stack: sites.first(of.stack), stacks: 0, memory: Memory::default() };
        let line = lines.entry(sites.line(of.stack)).or_insert_with(empty);
        line.stacks += 1;
        line.memory.plus(of.memory);
    }
    ranked(lines.into_values().collect(), sites)
}

/// Returns the lines (or stacks) with the largest growth first, which is their memory if there is no earlier moment.
/// Equal ones are ordered by their memory, then by their text, so that a list does not depend on the file's order.
fn ranked(mut lines: Vec<LineMemory>, sites: &Sites) -> Vec<LineMemory> {
    lines.sort_few_by(|a, b| {
        let (x, y) = (&a.memory, &b.memory);
        let by_bytes = y.growth().cmp(&x.growth()).then(y.now.bytes.cmp(&x.now.bytes));
        by_bytes.then_with(|| sites.label(a.stack).cmp(sites.label(b.stack))).then(a.stack.cmp(&b.stack))
    });
    lines
}

/// Returns the sum of some memory.
pub fn sum<'a>(lines: impl IntoIterator<Item = &'a LineMemory>) -> Memory {
    let mut sum = Memory::default();
    for line in lines {
        sum.plus(line.memory);
    }
    sum
}

/// Returns the largest sum of requested bytes of a line that was active at once, and the first position that has it.
pub fn line_peak(replay: &Replay, sites: &Sites, line: u32) -> (u64, u32) {
    let allocations = &replay.allocations;
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    for (id, stack) in (0..).zip(allocations.stack.iter()) {
        if sites.line(StackId(stack)) != line {
            continue;
        }
        let Some(Allocation { begin, end, requested, .. }) = allocations.get(id) else { continue };
        if begin < end {
            begins.push((begin, requested));
            ends.push((end, requested));
        }
    }
    // Begins are in order, since allocations are numbered by them.
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let (mut now, mut peak) = (0_u64, (0, 0));
    for (position, bytes) in begins {
        while let Some((_, ended)) = ends.next_if(|(end, _)| *end <= position) {
            now = now.saturating_sub(ended);
        }
        now = now.saturating_add(bytes);
        if now > peak.0 {
            peak = (now, position);
        }
    }
    peak
}
