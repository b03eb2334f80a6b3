//! The tensor that a program replaces by a larger one in each round, as `torch.cat([all, new])` does: one block at a time, and a
//! larger one each time.

use super::lines::Lines;
use super::span::{LeakSpan, block_bytes};
use super::{LeakCandidate, LeakSource, Trend};
use replay::Replay;
use trace::frames::StackId;

/// The allocations of one stack that are enough.
const LEAST_COUNT: u32 = 24;
/// In a program whose sequences or batches grow, most stacks allocate more each time. One part in this many of them may, for one to
/// be a leak.
const FEW_PART: usize = 4;

/// The allocations of a stack after the warm-up.
#[derive(Clone, Copy, Default)]
struct Replaced {
    count: u32,
    first_bytes: u64,
    last_bytes: u64,
    first_seen: u32,
    /// When the latest one was freed.
    gone: u32,
    /// Whether each was larger than the one before. A queue that is full stays as it is.
    is_growing: bool,
    /// Whether each was made while the one before was live.
    overlaps: bool,
}

impl Replaced {
    fn add(&mut self, begin: u32, gone: u32, bytes: u64) {
        if self.count == 0 {
            (self.first_bytes, self.first_seen, self.is_growing, self.overlaps) = (bytes, begin, true, true);
        } else {
            self.is_growing &= bytes > self.last_bytes;
            self.overlaps &= self.gone > begin;
        }
        (self.count, self.last_bytes, self.gone) = (self.count + 1, bytes, gone);
    }

    /// Returns how much it grew; 0 if it became smaller meanwhile.
    const fn rise(&self) -> u64 {
        if self.is_growing { self.last_bytes.saturating_sub(self.first_bytes) } else { 0 }
    }
}

/// Returns the stack whose tensor grows most, if it grows by `least` bytes.
#[inline(never)]
pub(super) fn replaced(lines: &mut Lines<'_>, span: LeakSpan, least: u64) -> Option<LeakCandidate> {
    let LeakSource { replay, .. } = lines.source;
    let stacks = of_stacks(replay, span);
    let many = || (0_u32..).zip(&stacks).filter(|(_, replaced)| replaced.count >= LEAST_COUNT);
    let growing = many().filter(|(_, replaced)| replaced.rise() > 0).count();
    if growing * FEW_PART > many().count() {
        return None;
    }
    let kept =
        many().filter(|(_, replaced)| replaced.overlaps && replaced.gone > span.until && replaced.rise() >= least);
    let (stack, found) = kept.max_by_key(|(_, replaced)| replaced.rise())?;
    let stack = StackId(stack);
    let line = lines.of(stack)?;
    Some(LeakCandidate {
        line,
        stack,
        first_bytes: found.first_bytes,
        last_bytes: found.last_bytes,
        count: found.count,
        first_seen: found.first_seen,
        from: span.from,
        until: span.until,
        rounds: found.count,
        is_cache: lines.is_cache(line),
        is_read: false,
        trend: Trend::Replaced,
        most_held: (found.last_bytes, span.until),
    })
}

fn of_stacks(replay: &Replay, span: LeakSpan) -> Vec<Replaced> {
    let allocations = &replay.allocations;
    let made = allocations.made_by(span.from) as usize..allocations.made_by(span.until) as usize;
    let mut stacks: Vec<Replaced> = Vec::new();
    let (freed, ends) = (&mut allocations.freed.reader(), &mut allocations.end.reader());
    for number in made {
        let gone = freed.get(number).unwrap_or(0).min(ends.get(number).unwrap_or(0));
        let Some(allocation) = allocations.get(number as u32) else { continue };
        let i = allocation.stack.0 as usize;
        if stacks.len() <= i {
            stacks.resize(i + 1, Replaced::default());
        }
        if let Some(replaced) = stacks.get_mut(i) {
            replaced.add(allocation.begin, gone, block_bytes(allocation.requested));
        }
    }
    stacks
}
