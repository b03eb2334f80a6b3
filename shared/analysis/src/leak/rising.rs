//! The memory over the run of the lines that may leak.

use rustc_hash::FxHashMap;

use super::lines::Lines;
use super::rounds::Rounds;
use super::span::{LeakSpan, PARTS, block_bytes};
use super::{LeakCandidate, Trend};
use replay::Allocation;
use trace::frames::{FrameId, StackId};

/// The longest stretch after the warm-up in which the line may keep nothing, as one part in this many. A cache that is
/// full keeps nothing more; what is left of a cache that replaces its entries was made in its last stretch.
const LONGEST_PAUSE: u32 = 3;
/// The parts that each have to add something. A line that keeps nothing in the first of them is looked at from where it begins, if
/// that is before the last.
const QUARTERS: u32 = 4;
/// The rounds that are enough for such a line.
const LATE_ROUNDS: u32 = 12;
/// What stays is no sign of a leak as long as it isn't older than this many times what the line freed.
const OLD_TIMES: u32 = 2;
/// How much of the rise has to be older than that: one part in this many.
const OLD_PART: u64 = 4;
/// Each quarter of the run has to add at least one part in this many of the rise.
const LEAST_PART_OF_RISE: u64 = 16;
/// An optimizer keeps fewer tensors of the size of each parameter than this.
const STATES_OF_ONE: u64 = 4;
/// The parts over which it has to rise, and over which it has to be level.
const LEVEL_PARTS: usize = 4;
/// The rounds that are enough for a line without nested rounds. One forward pass that keeps something of each layer
/// looks like as many rounds, and few models have more layers.
const PLAIN_ROUNDS: u32 = 24;

/// The memory over the run of a line that may leak.
pub(super) struct Rising {
    pub(super) line: FrameId,
    /// The part of the run over which it is looked at.
    pub(super) span: LeakSpan,
    /// Whether that begins later than for other lines.
    is_late: bool,
    /// How long something lived that the line freed, in positions; 0 if nothing lived long.
    life: u32,
    /// Bytes that were made after the warm-up, stay, and are far older than that.
    old_bytes: u64,
    pub(super) newest: StackId,
    /// At the end of each part of the span: bytes that had been live for a part by then.
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

/// What a line holds for a part of the run or to its end, in short.
struct Overview {
    bytes: u64,
    /// The first position after the warm-up at which something was made that stays.
    first_kept: u32,
    /// The longest lives of what was freed, in positions: two of them, the longer first.
    longest: (u32, u32),
}

impl Overview {
    fn add(&mut self, allocation: &Allocation, gone: u32, span: LeakSpan) {
        self.bytes = self.bytes.saturating_add(block_bytes(allocation.requested));
        if gone > span.until {
            let is_later = allocation.begin > span.from;
            self.first_kept = self.first_kept.min(if is_later { allocation.begin } else { u32::MAX });
            return;
        }
        let life = gone - allocation.begin.min(gone);
        let (first, second) = self.longest;
        self.longest = (first.max(life), second.max(life.min(first)));
    }

    /// Returns the part of the run over which the line is looked at: from where it began to keep something, if that is late.
    fn span(&self, span: LeakSpan) -> LeakSpan {
        let own = LeakSpan { from: self.first_kept.min(span.until), ..span };
        let is_late = own.from - span.from > span.length() / QUARTERS && own.length() >= span.length() / QUARTERS;
        if is_late { own } else { span }
    }
}

/// Returns the lines that hold enough for long enough to matter. Those are few: all that is held for a part of the run
/// is at most `PARTS` peaks.
#[inline(never)]
pub(super) fn rising(lines: &mut Lines<'_>, span: LeakSpan, least: u64) -> FxHashMap<FrameId, Rising> {
    let mut long: FxHashMap<FrameId, Overview> = FxHashMap::default();
    for_each_held(lines, span, |line, allocation, gone| {
        let new = || Overview { bytes: 0, first_kept: u32::MAX, longest: (0, 0) };
        long.entry(line).or_insert_with(new).add(allocation, gone, span);
    });
    long.retain(|_, held| held.bytes >= least);
    let mut rising: FxHashMap<FrameId, Rising> = FxHashMap::default();
    for_each_held(lines, span, |line, allocation, gone| {
        if let Some(held) = long.get(&line) {
            let new = || Rising::new(line, held.span(span), held.longest.1, held.span(span).from > span.from);
            rising.entry(line).or_insert_with(new).add(allocation, gone);
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
            && !lines.is_workspace(&allocation)
            && let Some(line) = lines.of(allocation.stack)
        {
            visit(line, &allocation, gone);
        }
    }
}

impl Rising {
    const fn new(line: FrameId, span: LeakSpan, life: u32, is_late: bool) -> Self {
        Self {
            line,
            span,
            is_late,
            life,
            old_bytes: 0,
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

    fn add(&mut self, allocation: &Allocation, gone: u32) {
        let span = self.span;
        let Allocation { begin, requested, stack, .. } = *allocation;
        let bytes = block_bytes(requested);
        for (i, held) in self.held.iter_mut().enumerate() {
            let at = span.at(i);
            if begin.saturating_add(span.held()) <= at && at < gone {
                *held = held.saturating_add(bytes);
            }
        }
        if gone <= span.until {
            return;
        }
        self.count += 1;
        self.newest = stack;
        self.first_seen = self.first_seen.min(begin);
        self.last_bytes = self.last_bytes.saturating_add(bytes);
        if begin <= span.from {
            self.first_bytes = self.first_bytes.saturating_add(bytes);
        } else {
            self.longest_pause = self.longest_pause.max(begin - self.last_kept);
            self.last_kept = begin;
            let is_old = span.until - begin.min(span.until) > self.life.saturating_mul(OLD_TIMES);
            self.old_bytes = self.old_bytes.saturating_add(if is_old { bytes } else { 0 });
            self.sizes = (self.sizes.0.min(requested), self.sizes.1.max(requested));
        }
    }

    pub(super) const fn rise(&self) -> u64 {
        self.last_bytes.saturating_sub(self.first_bytes)
    }

    /// Returns whether what is held rises all along the span, and what is kept was made all along the span.
    pub(super) fn is_steady(&self, least: u64) -> bool {
        let (rise, span) = (self.rise(), self.span);
        let pause = self.longest_pause.max(span.until - self.last_kept);
        let quarters = self.held.iter().step_by(PARTS / QUARTERS as usize);
        let rises = |(before, after): (&u64, &u64)| after.saturating_sub(*before) > rise / LEAST_PART_OF_RISE;
        rise >= least
            && self.old_bytes >= rise / OLD_PART
            && pause <= span.length() / LONGEST_PAUSE
            && quarters.clone().zip(quarters.skip(1)).all(rises)
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

    /// Returns whether state of an optimizer was made again for the same parameters: there is far more of one size than anything
    /// else of it, or of half of it, as weights of half the precision are.
    pub(super) fn is_made_again(&self, lines: &mut Lines<'_>) -> bool {
        let replay = lines.source.replay;
        let (mut own, mut others) = (0_u64, 0_u64);
        for number in replay.active_at(self.span.until) {
            let Some(allocation) = replay.allocations.get(number) else { continue };
            match allocation.requested == self.sizes.1 && lines.of(allocation.stack) == Some(self.line) {
                true => own += 1,
                false => others += u64::from([self.sizes.1, self.sizes.1 / 2].contains(&allocation.requested)),
            }
        }
        own >= STATES_OF_ONE * others.max(1)
    }

    /// Returns whether rounds of the program led to the rise. A line without rounds that are surely whole may still be one if it
    /// `is_alone` and keeps one tensor of one size in each of many.
    pub(super) const fn comes_in(&self, rounds: &Rounds, is_alone: bool) -> bool {
        let is_plain = is_alone && rounds.count >= PLAIN_ROUNDS && self.sizes.0 == self.sizes.1;
        (rounds.are_whole() || is_plain) && (!self.is_late || rounds.count >= LATE_ROUNDS)
    }

    pub(super) fn candidate(&self, lines: &Lines<'_>, least: u64, rounds: Rounds) -> LeakCandidate {
        let span = self.span;
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
            is_cache: lines.is_cache(self.line),
            is_read: rounds.are_read(),
            trend: if self.is_steady(least) { Trend::Rising } else { Trend::Level },
            most_held: (self.most().0, span.at(self.most().1)),
        }
    }
}
