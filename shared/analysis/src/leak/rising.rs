//! The memory over the run of the lines that may leak.

use rustc_hash::FxHashMap;

use super::lines::Lines;
use super::purpose::is_cache;
use super::rounds::Rounds;
use super::span::{LeakSpan, PARTS};
use super::{LeakCandidate, LeakSource, Trend};
use crate::site::frame_label;
use replay::Allocation;
use trace::frames::{FrameId, StackId};

/// The longest stretch after the warm-up in which the line may keep nothing, as one part in this many. A cache that is
/// full keeps nothing more; what is left of a cache that replaces its entries was made in its last stretch.
const LONGEST_PAUSE: u32 = 3;
/// Each quarter of the run has to add at least one part in this many of the rise.
const LEAST_PART_OF_RISE: u64 = 16;
/// The parts over which it has to rise, and over which it has to be level.
const LEVEL_PARTS: usize = 4;
/// The rounds that are enough for a line without nested rounds. One forward pass that keeps something of each layer
/// looks like as many rounds, and few models have more layers.
const PLAIN_ROUNDS: u32 = 24;

/// The memory over the run of a line that may leak.
pub(super) struct Rising {
    pub(super) line: FrameId,
    pub(super) newest: StackId,
    /// At the end of each part of the span: requested bytes that had been live for a part by then.
    held: [u64; PARTS + 1],
    first_bytes: u64,
    last_bytes: u64,
    count: u32,
    first_seen: u32,
    /// The last position after the warm-up at which something was kept, and the longest stretch without that.
    last_kept: u32,
    longest_pause: u32,
    /// The smallest and largest size that was kept after the warm-up.
    sizes: (u64, u64),
}

/// Returns the lines that hold enough for long enough to matter. Those are few: all that is held for a part of the run
/// is at most `PARTS` peaks.
pub(super) fn rising(lines: &mut Lines<'_>, span: LeakSpan, least: u64) -> FxHashMap<FrameId, Rising> {
    let mut long: FxHashMap<FrameId, u64> = FxHashMap::default();
    for_each_held(lines, span, |line, allocation, _| {
        let sum = long.entry(line).or_default();
        *sum = sum.saturating_add(allocation.requested);
    });
    long.retain(|_, bytes| *bytes >= least);
    let mut rising: FxHashMap<FrameId, Rising> = FxHashMap::default();
    for_each_held(lines, span, |line, allocation, gone| {
        if long.contains_key(&line) {
            rising.entry(line).or_insert_with(|| Rising::new(line, span)).add(allocation, gone, span);
        }
    });
    rising
}

/// Visits the allocations of the default pool that are held for a part of the span or are live at its end, each with
/// its line and the position at which it was freed. A private pool's memory stays for as long as its graph does.
fn for_each_held(lines: &mut Lines<'_>, span: LeakSpan, mut visit: impl FnMut(FrameId, &Allocation, u32)) {
    let replay = lines.source.replay;
    let allocations = &replay.allocations;
    let (freed, ends) = (&mut allocations.freed.reader(), &mut allocations.end.reader());
    for (number, begin) in (0_usize..).zip(allocations.begin.iter()).take_while(|(_, begin)| *begin <= span.until) {
        let gone = freed.get(number).unwrap_or(0).min(ends.get(number).unwrap_or(0));
        let is_kept = gone > span.until;
        if !is_kept && (gone <= span.from || gone - begin.min(gone) < span.held()) {
            continue;
        }
        let Some(allocation) = allocations.get(number as u32) else { continue };
        if !replay.pool(&allocation).is_private()
            && let Some(line) = lines.of(allocation.stack)
        {
            visit(line, &allocation, gone);
        }
    }
}

impl Rising {
    const fn new(line: FrameId, span: LeakSpan) -> Self {
        Self {
            line,
            newest: StackId(0),
            held: [0; PARTS + 1],
            first_bytes: 0,
            last_bytes: 0,
            count: 0,
            first_seen: u32::MAX,
            last_kept: span.from,
            longest_pause: 0,
            sizes: (u64::MAX, 0),
        }
    }

    fn add(&mut self, allocation: &Allocation, gone: u32, span: LeakSpan) {
        let Allocation { begin, requested, stack, .. } = *allocation;
        for (i, held) in self.held.iter_mut().enumerate() {
            let at = span.at(i);
            if begin.saturating_add(span.held()) <= at && at < gone {
                *held = held.saturating_add(requested);
            }
        }
        if gone <= span.until {
            return;
        }
        self.count += 1;
        self.newest = stack;
        self.first_seen = self.first_seen.min(begin);
        self.last_bytes = self.last_bytes.saturating_add(requested);
        if begin <= span.from {
            self.first_bytes = self.first_bytes.saturating_add(requested);
        } else {
            self.longest_pause = self.longest_pause.max(begin - self.last_kept);
            self.last_kept = begin;
            self.sizes = (self.sizes.0.min(requested), self.sizes.1.max(requested));
        }
    }

    pub(super) const fn rise(&self) -> u64 {
        self.last_bytes.saturating_sub(self.first_bytes)
    }

    /// Returns whether what is held rises all along the span, and what is kept was made all along the span.
    pub(super) fn is_steady(&self, span: LeakSpan, least: u64) -> bool {
        let rise = self.rise();
        let pause = self.longest_pause.max(span.until - self.last_kept);
        let quarters = self.held.iter().step_by(PARTS / 4);
        let rises = |(before, after): (&u64, &u64)| after.saturating_sub(*before) > rise / LEAST_PART_OF_RISE;
        rise >= least && pause <= span.length() / LONGEST_PAUSE && quarters.clone().zip(quarters.skip(1)).all(rises)
    }

    /// Returns whether what is held rose over several parts of the span and is level, or less, from then on.
    pub(super) fn is_level(&self, least: u64) -> bool {
        let (most, at) = self.most();
        let rising = self.held.iter().zip(self.held.iter().skip(1)).filter(|(before, after)| after > before).count();
        let end = self.held.last().copied().unwrap_or(0);
        most.saturating_sub(self.held.first().copied().unwrap_or(0)) >= least
            && rising >= LEVEL_PARTS
            && at <= PARTS - LEVEL_PARTS
            && end <= most
    }

    /// Returns the most that is held, and in which part that is reached.
    fn most(&self) -> (u64, usize) {
        let most = self.held.iter().copied().max().unwrap_or(0);
        (most, self.held.iter().position(|held| *held == most).unwrap_or(0))
    }

    /// Returns whether it keeps one tensor of one size in each of many rounds.
    pub(super) const fn is_plain(&self, rounds: &Rounds) -> bool {
        rounds.count >= PLAIN_ROUNDS && self.sizes.0 == self.sizes.1
    }

    pub(super) fn candidate(
        &self,
        source: LeakSource<'_>,
        span: LeakSpan,
        least: u64,
        rounds: Rounds,
    ) -> LeakCandidate {
        let label = frame_label(source.symbols, source.symbols.frame(self.line));
        LeakCandidate {
            line: self.line,
            stack: self.newest,
            first_bytes: self.first_bytes,
            last_bytes: self.last_bytes,
            count: self.count,
            first_seen: self.first_seen,
            from: span.from,
            until: span.until,
            rounds: rounds.count,
            is_cache: is_cache(&label),
            trend: if self.is_steady(span, least) { Trend::Rising } else { Trend::Level },
            most_held: (self.most().0, span.at(self.most().1)),
        }
    }
}
