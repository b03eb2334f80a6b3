//! Repeats a run under the settings that it was recorded with, and compares each answer with the recorded one.

use super::device::{Answers, Device};
use super::requests::{Act, Recorded, RequestStep, Requests};
use super::runner::Runner;
use super::terms::{AMPLE, Terms};
use allocator::{DriverError, TraceEntry};
use query::whatif::{Difference, SelfCheck};
use trace::event::Action;
use trace::units::{Address, Bytes};

impl Requests {
    /// Repeats the run under the terms of its recording, and compares each answer with the recorded one. Only the release and
    /// the settings of the terms count.
    pub fn check(&self, terms: &Terms) -> Result<SelfCheck, DriverError> {
        // The device refuses what the recording shows as refused, and nothing else. How large it is decides how many addresses
        // an expandable segment has.
        let capacity = self.capacity.unwrap_or(AMPLE);
        let terms = Terms { capacity, held_by_others: 0, fraction: None, ..terms.clone() };
        let device = Device::recorded(capacity);
        let mut runner = Runner::new(self, &terms, (device, &self.start, 0), Vec::new())?;
        let (mut found, mut lengths, mut entries) = (
            SelfCheck { lost: self.lost, ..SelfCheck::default() },
            self.recorded.lengths.iter(),
            self.recorded.entries.as_slice(),
        );
        for step in &self.steps {
            let length = if step.act.is_answered() { lengths.next().copied().unwrap_or_default() } else { 0 };
            let recorded;
            (recorded, entries) = entries.split_at(entries.len().min(length as usize));
            runner.allocator.driver_mut().answer_with(self.answers(step, recorded));
            runner.allocator.sink_mut().clear();
            let done = runner.step(step);
            let is_request = step.act.is_request();
            found.requests += u64::from(is_request);
            if !step.act.is_answered() {
                continue;
            }
            let difference = match done {
                Err(error) => Some(format!("the allocator fails: {error}")),
                Ok(_) => difference(recorded, runner.allocator.sink_mut()),
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

    /// Returns what the device answered to a step.
    fn answers(&self, step: &RequestStep, recorded: &[(Action, u64, u64)]) -> Answers {
        let (mut answers, mut released) = (Answers::default(), 0);
        for &(action, address, _) in recorded {
            match action {
                Action::SegmentAlloc | Action::SegmentMap => answers.given.push_back((address, released)),
                Action::SegmentFree | Action::SegmentUnmap => released += 1,
                _ => {}
            }
        }
        if let Act::Failed(number) | Act::Malloc(number) = step.act {
            answers.is_failing = matches!(step.act, Act::Failed(_));
            let ranges = &self.recorded.ranges;
            let place = ranges.binary_search_by_key(&number, |(short, _)| *short);
            answers.range = place.ok().and_then(|place| ranges.get(place)).map(|(_, address)| *address);
        }
        answers
    }
}

/// Returns how what came out differs from the recording, in words.
fn difference(recorded: &[(Action, u64, u64)], made: &[TraceEntry]) -> Option<String> {
    let made: Vec<_> = made.iter().filter(|entry| Recorded::has(entry.action)).collect();
    let of = |entry: &&TraceEntry| (entry.action, entry.address, entry.size);
    let place = (0..recorded.len().max(made.len())).find(|&n| recorded.get(n).copied() != made.get(n).map(of))?;
    let words = |entry: Option<(Action, u64, u64)>| match entry {
        Some((action, address, size)) => format!("{} {} of {}", action.name(), Address(address), Bytes(size)),
        None => "nothing more".to_owned(),
    };
    Some(format!("recorded: {}; simulated: {}", words(recorded.get(place).copied()), words(made.get(place).map(of))))
}
