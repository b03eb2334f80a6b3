//! How often a program came back to a line: training steps, requests.

use super::LeakSource;
use super::lines::Lines;
use super::rising::Rising;
use super::span::LeakSpan;
use replay::Replay;
use trace::event::Action;
use trace::frames::{FrameId, StackId};

/// The rounds that are enough where each round comes back to the same code several times, as a step does to its layers.
const NESTED_ROUNDS: u32 = 4;
/// How often a round has to come back to one stack. Within a layer, few lines run that often.
const NESTED_VISITS: u32 = 4;

/// The rounds of a program, counted at one line.
#[derive(Clone, Copy, Default)]
pub(super) struct Rounds {
    /// How often the line kept something after other memory had been freed.
    pub(super) count: u32,
    /// In how many of them the program came back to another stack several times.
    nested: u32,
}

impl Rounds {
    pub(super) const fn is_nested(&self) -> bool {
        self.count >= NESTED_ROUNDS && self.nested >= self.count / 2
    }
}

/// A line while its rounds are counted.
struct Counting {
    line: FrameId,
    rounds: Rounds,
    has_freed: bool,
    is_nested: bool,
    /// By stack: the round in which it allocated last, and how often the program has come to it in that round.
    seen: Vec<(u32, u32)>,
    /// The stack that allocated last.
    last: StackId,
}

/// Counts the rounds of each line. Without rounds there is no leak: while a program sets up, everything stays. If less
/// than half of what is allocated after the warm-up is freed, nothing counts as a round.
pub(super) fn count_rounds(lines: &mut Lines<'_>, span: LeakSpan, rising: &[Rising]) -> Vec<Rounds> {
    let LeakSource { trace, replay, .. } = lines.source;
    let mut counting: Vec<Counting> = rising
        .iter()
        .map(|line| Counting {
            line: line.line,
            rounds: Rounds::default(),
            has_freed: false,
            is_nested: false,
            seen: Vec::new(),
            last: StackId(0),
        })
        .collect();
    let allocations = &replay.allocations;
    let (mut begun, mut ended) = (0_u64, 0_u64);
    let (from, until) = (span.from as usize, span.until as usize);
    let actions = trace.events.action.range(from..until);
    let mut stacks = allocations.stack.reader();
    let (mut freed, mut ends) = (allocations.freed.reader(), allocations.end.reader());
    let mut numbers = replay.event_allocation.reader();
    for (i, action) in (from..).zip(actions) {
        match Action::from_code(action) {
            Action::FreeCompleted => {
                ended += 1;
                counting.iter_mut().for_each(|line| line.has_freed = true);
            }
            Action::Alloc => {
                begun += 1;
                let Some(number) = numbers.get(i).filter(|number| *number != Replay::NONE) else { continue };
                let number = number as usize;
                let stack = StackId(stacks.get(number).unwrap_or(0));
                let gone = freed.get(number).unwrap_or(0).min(ends.get(number).unwrap_or(0));
                let line = lines.of(stack);
                counting.iter_mut().for_each(|own| own.visit(stack, line, gone > span.until));
            }
            _ => {}
        }
    }
    let is_setting_up = ended * 2 < begun;
    counting.into_iter().map(|line| if is_setting_up { Rounds::default() } else { line.rounds }).collect()
}

impl Counting {
    fn visit(&mut self, stack: StackId, line: Option<FrameId>, is_kept: bool) {
        if line == Some(self.line) {
            if is_kept && self.has_freed {
                self.rounds.count += 1;
                self.rounds.nested += u32::from(self.is_nested);
                (self.has_freed, self.is_nested) = (false, false);
            }
        } else if !self.is_nested && line.is_some() && stack != self.last {
            let i = stack.0 as usize;
            if self.seen.len() <= i {
                self.seen.resize(i + 1, (0, 0));
            }
            if let Some((round, visits)) = self.seen.get_mut(i) {
                *visits = if *round == self.rounds.count { *visits + 1 } else { 1 };
                *round = self.rounds.count;
                self.is_nested = *visits >= NESTED_VISITS;
            }
        }
        self.last = stack;
    }
}
