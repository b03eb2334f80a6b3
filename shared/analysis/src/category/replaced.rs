//! Finds parameters that an optimizer replaces, as `p.data = p.data - …` does: the new one is made in `step`, like the optimizer's
//! state, and the old one is freed right after it.

use super::{Category, Rule};
use replay::{Replay, Replayed};
use trace::event::Action;

/// The most events after an allocation that are looked at: the operands are freed, and then the old parameter.
const EVENTS: usize = 8;

/// Takes what replaces a parameter for one. In order, so that it is known for what replaces it in turn.
pub(super) fn classify(Replayed { trace, replay, .. }: Replayed<'_>, rules: &mut [u8]) {
    let allocations = &replay.allocations;
    let (events, numbers) = (&trace.events.action, &replay.event_allocation);
    let is_parameter =
        |rule: u8| Rule::ALL.get(usize::from(rule)).is_some_and(|rule| rule.category() == Category::Parameters);
    for id in 0..rules.len() {
        if rules.get(id) != Some(&(Rule::OptimizerKept as u8)) {
            continue;
        }
        // The position after an event is the number of the next one.
        let from = allocations.begin.get(id).unwrap_or(0) as usize;
        let bytes = allocations.requested.get(id);
        let replaces = (from..from + EVENTS)
            .map_while(|event| {
                events.get(event).filter(|action| *action != Action::Alloc as u8).map(|action| (event, action))
            })
            .filter(|(_, action)| *action == Action::FreeRequested as u8)
            .filter_map(|(event, _)| numbers.get(event).filter(|number| *number != Replay::NONE))
            .any(|old| {
                let rule = rules.get(old as usize).copied();
                allocations.requested.get(old as usize) == bytes && rule.is_some_and(is_parameter)
            });
        if let Some(rule) = rules.get_mut(id).filter(|_| replaces) {
            *rule = Rule::OptimizerReplaced as u8;
        }
    }
}
