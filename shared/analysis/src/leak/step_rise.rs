//! The memory that a line keeps step by step.

use std::fmt;

use super::lines::Lines;
use super::span::block_bytes;
use super::{LeakCandidate, LeakSource, Trend};
use crate::steps::{StepSource, Steps};
use trace::event::Action;
use trace::units::{Bytes, Count};

/// The memory that a line kept step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRise {
    /// The number of the first step.
    pub first: u64,
    /// The number of the last one.
    pub last: u64,
    /// How many whole steps that are.
    pub steps: u32,
    /// Bytes, in whole blocks, that the line allocated in these steps and kept.
    pub bytes: u64,
    /// Whether it kept the same in each of them.
    pub is_even: bool,
}

impl StepRise {
    /// Returns the bytes that it kept in each step; the average if they differ.
    pub const fn per_step(&self) -> u64 {
        let steps = if self.steps == 0 { 1 } else { self.steps as u64 };
        self.bytes.saturating_add(steps / 2) / steps
    }
}

impl fmt::Display for StepRise {
    /// Writes `1.00 MiB more in each step, over steps 3 to 40`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frequency = if self.is_even { "in each step" } else { "in each step on average" };
        let (first, last) = (Count(self.first), Count(self.last));
        write!(f, "{} more {frequency}, over steps {first} to {last}", Bytes(self.per_step()))
    }
}

impl LeakCandidate {
    /// Returns what the line kept step by step; `None` if the trace has fewer than two whole steps since it began, or the line
    /// keeps one tensor.
    pub fn by_step(&self, source: LeakSource<'_>, steps: &Steps) -> Option<StepRise> {
        let Self { first_seen, until, line, trend, .. } = *self;
        if trend == Trend::Replaced {
            return None;
        }
        // The step in which a request failed is not complete.
        let last = until.checked_sub(1).and_then(|event| source.trace.events.action.get(event as usize));
        let slots = steps.slots(if last == Some(Action::Oom as u8) { until.saturating_sub(1) } else { until });
        let slots = slots.get(slots.partition_point(|slot| slot.to < first_seen)..)?;
        let (first, last) = (slots.first()?, slots.last()?);
        let mut kept = vec![0_u64; slots.len()];
        let allocations = &source.replay.allocations;
        let mut lines = Lines::new(source);
        let made = allocations.made_by(first.from)..allocations.made_by(last.to);
        let (freed, ends) = (&mut allocations.freed.reader(), &mut allocations.end.reader());
        for number in made {
            let gone = freed.get(number as usize).unwrap_or(0).min(ends.get(number as usize).unwrap_or(0));
            let Some(allocation) = allocations.get(number).filter(|_| gone > until) else { continue };
            let is_own = lines.of(allocation.stack) == Some(line)
                && !source.replay.pool(&allocation).is_private()
                && !lines.is_workspace(&allocation);
            let slot = slots.partition_point(|slot| slot.to < allocation.begin);
            if let Some(sum) = kept.get_mut(slot).filter(|_| is_own) {
                *sum = sum.saturating_add(block_bytes(allocation.requested));
            }
        }
        let busy = kept.iter().filter(|bytes| **bytes > 0).count();
        // What repeats in a trace may be less than a step, such as a layer.
        if steps.source == StepSource::Pattern && busy * 2 < slots.len() {
            return None;
        }
        let bytes = kept.iter().fold(0_u64, |sum, kept| sum.saturating_add(*kept));
        let is_even = kept.iter().all(|of| Some(of) == kept.first());
        let rise = StepRise { first: first.number, last: last.number, steps: slots.len() as u32, bytes, is_even };
        (rise.steps >= 2 && bytes > 0).then_some(rise)
    }
}
