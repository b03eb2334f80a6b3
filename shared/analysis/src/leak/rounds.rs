//! How often a program came back to a line: training steps, requests.

use super::LeakSource;
use super::lines::Lines;
use super::rising::Rising;
use super::span::LeakSpan;
use allocator::rounding::MIN_BLOCK;
use replay::Replay;
use trace::event::Action;
use trace::frames::{FrameId, StackId};

/// The rounds that are enough where each round comes back to the same code several times, as a step does to its layers.
const NESTED_ROUNDS: u32 = 4;
/// How often a round has to come back to one stack. Within a layer, few lines run that often.
const NESTED_VISITS: u32 = 4;
/// The rounds that are enough where each frees far more than stays of it.
const PASSING_ROUNDS: u32 = 5;
/// How many times as much a round has to free as stays of it. The forward pass of one layer frees a few times as much as it keeps;
/// with a step that ends, nearly all of it goes.
const PASSING_TIMES: u64 = 32;

/// The rounds of a program, counted at one line.
#[derive(Clone, Copy, Default)]
pub(super) struct Rounds {
    /// How often the line kept something after other memory had been freed.
    pub(super) count: u32,
    /// In how many of them the program came back to another stack several times.
    nested: u32,
    /// In how many of them far more was freed than stays to the end, of whatever line.
    passing: u32,
    /// In how many of them something was made that grew by what the round before kept, as where all of it is put together.
    read: u32,
}

impl Rounds {
    /// Returns whether they are rounds of a program, and not of the layers within one.
    pub(super) const fn are_whole(&self) -> bool {
        let are_nested = self.count >= NESTED_ROUNDS && self.nested >= self.count / 2;
        are_nested || self.passing >= PASSING_ROUNDS
    }

    /// Returns whether the program reads all of it in most rounds.
    pub(super) const fn are_read(&self) -> bool {
        self.count >= NESTED_ROUNDS && self.read >= self.count / 2
    }
}

/// What a program has freed, and what it has made that stays to the end, since the warm-up.
#[derive(Clone, Copy, Default)]
struct Passed {
    frees: u64,
    freed_bytes: u64,
    kept_bytes: u64,
}

/// What a stack allocates in a round.
#[derive(Clone, Copy, Default)]
struct Seen {
    round: u32,
    visits: u32,
    /// The size of its latest allocation, in whole blocks.
    size: u64,
}

/// An allocation.
struct Made<'a> {
    stack: StackId,
    line: Option<FrameId>,
    size: u64,
    /// If it stays to the end, what has passed before it.
    kept: Option<&'a Passed>,
}

/// A line while its rounds are counted.
struct Counting {
    line: FrameId,
    rounds: Rounds,
    /// What had been freed, and kept, in all when the present round began.
    before: Passed,
    is_nested: bool,
    is_read: bool,
    /// What the present round has kept, and the round before, in whole blocks.
    kept: (u64, u64),
    /// What all rounds have kept.
    kept_in_all: u64,
    /// By stack: what it allocated in the present round.
    seen: Vec<Seen>,
    /// The stack that allocated last.
    last: StackId,
}

/// Counts the rounds of each line. Without rounds there is no leak: while a program sets up, everything stays. If less
/// than half of what is allocated after the warm-up is freed, nothing counts as a round. With `looks_for_reads` it counts those in
/// which all of it is read.
#[inline(never)]
pub(super) fn count_rounds(
    lines: &mut Lines<'_>,
    span: LeakSpan,
    rising: &[Rising],
    looks_for_reads: bool,
) -> Vec<Rounds> {
    let LeakSource { trace, replay, .. } = lines.source;
    let mut counting: Vec<Counting> = rising
        .iter()
        .map(|line| Counting {
            line: line.line,
            rounds: Rounds::default(),
            before: Passed::default(),
            is_nested: false,
            is_read: !looks_for_reads,
            kept: (0, 0),
            kept_in_all: 0,
            seen: Vec::new(),
            last: StackId(0),
        })
        .collect();
    let allocations = &replay.allocations;
    let (mut begun, mut passed) = (0_u64, Passed::default());
    let (from, until) = (span.from as usize, span.until as usize);
    let events = trace.events.action.range(from..until).zip(trace.events.size.range(from..until));
    let mut stacks = allocations.stack.reader();
    let (mut freed, mut ends) = (allocations.freed.reader(), allocations.end.reader());
    let mut numbers = replay.event_allocation.reader();
    for (i, (action, size)) in (from..).zip(events) {
        match Action::from_code(action) {
            Action::FreeCompleted => {
                (passed.frees, passed.freed_bytes) = (passed.frees + 1, passed.freed_bytes.saturating_add(size));
            }
            Action::Alloc => {
                begun += 1;
                let Some(number) = numbers.get(i).filter(|number| *number != Replay::NONE) else { continue };
                let number = number as usize;
                let stack = StackId(stacks.get(number).unwrap_or(0));
                let gone = freed.get(number).unwrap_or(0).min(ends.get(number).unwrap_or(0));
                let line = lines.of(stack);
                let is_kept = gone > span.until;
                let made = Made { stack, line, size, kept: is_kept.then_some(&passed) };
                counting.iter_mut().for_each(|own| own.visit(&made, looks_for_reads));
                passed.kept_bytes = passed.kept_bytes.saturating_add(if is_kept { size } else { 0 });
            }
            _ => {}
        }
    }
    let is_setting_up = passed.frees * 2 < begun;
    counting.into_iter().map(|line| if is_setting_up { Rounds::default() } else { line.rounds }).collect()
}

impl Counting {
    fn visit(&mut self, made: &Made<'_>, looks_for_reads: bool) {
        if made.line == Some(self.line) {
            if let Some(passed) = made.kept {
                self.keep(made.size, passed, looks_for_reads);
            }
        } else if made.line.is_some() && made.stack != self.last && !(self.is_nested && self.is_read) {
            let i = made.stack.0 as usize;
            if self.seen.len() <= i {
                self.seen.resize(i + 1, Seen::default());
            }
            if let Some(seen) = self.seen.get_mut(i) {
                let grew = made.size.saturating_sub(seen.size);
                self.is_read |= grew > 0 && made.size >= self.kept_in_all && self.kept.1.abs_diff(grew) <= MIN_BLOCK;
                seen.visits = if seen.round == self.rounds.count { seen.visits + 1 } else { 1 };
                (seen.round, seen.size) = (self.rounds.count, made.size);
                self.is_nested |= seen.visits >= NESTED_VISITS;
            }
        }
        self.last = made.stack;
    }

    /// Takes in what stays. After something was freed, that begins a round.
    fn keep(&mut self, size: u64, passed: &Passed, looks_for_reads: bool) {
        if passed.frees > self.before.frees {
            let kept_bytes = passed.kept_bytes - self.before.kept_bytes;
            let freed_bytes = passed.freed_bytes - self.before.freed_bytes;
            self.rounds.count += 1;
            self.rounds.nested += u32::from(self.is_nested);
            self.rounds.read += u32::from(looks_for_reads && self.is_read);
            self.rounds.passing += u32::from(freed_bytes / PASSING_TIMES >= kept_bytes.max(1));
            (self.before, self.is_nested, self.is_read) = (*passed, false, !looks_for_reads);
            self.kept = (0, self.kept.0);
        }
        self.kept.0 = self.kept.0.saturating_add(size);
        self.kept_in_all = self.kept_in_all.saturating_add(size);
    }
}
