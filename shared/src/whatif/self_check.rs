//! Repeats a run under the settings that it was recorded with, and compares each answer with the recorded one.

use serde::Serialize;

use super::device::{Answers, Device};
use super::requests::{Act, Requests, Step};
use super::runner::{AMPLE, Runner, Terms};
use crate::allocator::rounding::{LARGE_BUFFER, SMALL_SIZE};
use crate::allocator::{DriverError, TraceEntry};
use crate::event::Action;
use crate::units::{Address, Bytes};

/// Events after a request that failed in which the range that was reserved for it is looked for.
const LOOKAHEAD: usize = 1 << 12;

/// The first answer of the allocator that is not the recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The event of the trace.
    pub event: u32,
    /// What was recorded, and what came out.
    pub why: String,
}

/// How far the run comes out as recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SelfCheck {
    /// Requests for memory in the trace.
    pub requests: u64,
    /// Those that got the recorded address, and took from the driver what was recorded.
    pub equal: u64,
    /// The first one that did not; `None` if all came out as recorded.
    pub first_difference: Option<Difference>,
}

impl SelfCheck {
    /// Whether everything came out as recorded.
    pub fn is_exact(&self) -> bool {
        self.first_difference.is_none()
    }
}

impl Requests<'_> {
    /// Repeats the run under the terms of its recording, and compares each answer with the recorded one.
    pub fn check(&self, terms: &Terms) -> Result<SelfCheck, DriverError> {
        // The device refuses what the recording shows as refused, and nothing else.
        let terms = Terms { capacity: AMPLE, ..terms.clone() };
        let device = Device::recorded(AMPLE);
        let mut runner = Runner::new(self, &terms, (device, &self.start, 0), Vec::new())?;
        let mut found = SelfCheck::default();
        for step in &self.steps {
            let recorded = self.recorded(step);
            runner.allocator.driver_mut().answer_with(self.answers(step, &recorded));
            runner.allocator.sink_mut().clear();
            let done = runner.step(step);
            let is_request = matches!(step.act, Act::Malloc(_) | Act::Failed);
            let is_compared = is_request || step.act == Act::EmptyCache;
            found.requests += u64::from(is_request);
            if !is_compared {
                continue;
            }
            let difference = match done {
                Err(error) => Some(format!("the allocator fails: {error}")),
                Ok(_) => difference(&recorded, runner.allocator.sink_mut()),
            };
            match difference {
                None => found.equal += u64::from(is_request),
                Some(why) if found.first_difference.is_none() => {
                    found.first_difference = Some(Difference { event: step.event, why });
                }
                Some(_) => {}
            }
        }
        Ok(found)
    }

    /// Returns what the recording has of a step: actions, addresses and sizes.
    fn recorded(&self, step: &Step) -> Vec<(Action, u64, u64)> {
        let events = self.trace.events.iter_from(step.driver_from as usize);
        let own = events.take((step.event - step.driver_from) as usize + usize::from(step.act != Act::EmptyCache));
        own.map(|event| (event.action, event.address.0, event.size)).filter(|entry| is_compared(entry.0)).collect()
    }

    /// Returns what the device answered to a step.
    fn answers(&self, step: &Step, recorded: &[(Action, u64, u64)]) -> Answers {
        let (mut answers, mut released) = (Answers::default(), 0);
        for &(action, address, _) in recorded {
            match action {
                Action::SegmentAlloc | Action::SegmentMap => answers.given.push_back((address, released)),
                Action::SegmentFree | Action::SegmentUnmap => released += 1,
                _ => {}
            }
        }
        if step.act == Act::Failed {
            answers.is_failing = true;
            // A range that was reserved for it, and got no memory then, gets some later.
            let stream = self.stream(step.event);
            let mut later = self.trace.events.iter_from(step.event as usize).take(LOOKAHEAD);
            let asked = self.trace.events.get(step.event as usize).map_or(0, |event| event.size);
            let range = later.find(|event| {
                let is_small = event.size < LARGE_BUFFER;
                let is_same_stream = self.tags.get(event.tag).stream == stream;
                event.action == Action::SegmentMap && is_same_stream && is_small == (asked <= SMALL_SIZE)
            });
            answers.range = range.map(|event| event.address.0);
        }
        answers
    }
}

fn is_taking(action: Action) -> bool {
    matches!(action, Action::SegmentAlloc | Action::SegmentMap)
}

fn is_compared(action: Action) -> bool {
    is_taking(action) || matches!(action, Action::SegmentFree | Action::SegmentUnmap | Action::Alloc)
}

/// Returns how what came out differs from the recording, in words.
fn difference(recorded: &[(Action, u64, u64)], made: &[TraceEntry]) -> Option<String> {
    let made: Vec<_> = made.iter().filter(|entry| is_compared(entry.action)).collect();
    let of = |entry: &&TraceEntry| (entry.action, entry.address, entry.size);
    let place = (0..recorded.len().max(made.len())).find(|&n| recorded.get(n).copied() != made.get(n).map(of))?;
    let words = |entry: Option<(Action, u64, u64)>| match entry {
        Some((action, address, size)) => format!("{} {} of {}", action.name(), Address(address), Bytes(size)),
        None => "nothing more".to_owned(),
    };
    Some(format!("recorded: {}; simulated: {}", words(recorded.get(place).copied()), words(made.get(place).map(of))))
}
