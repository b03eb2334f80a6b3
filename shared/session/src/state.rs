//! The totals and the event at a position, for the status line.

use super::context::Context;
use super::device::Caches;
use query::{Answer, StateAt};

/// Answers [`Query::State`](query::Query::State).
pub(super) fn answer(context: Context<'_>, caches: &mut Caches, position: u32) -> Answer {
    let state = caches.states.at(context.replay, position);
    let position = state.position;
    let event = position.checked_sub(1);
    let wall_us = match event {
        Some(index) => context.trace.events.time_us.get(index as usize).unwrap_or(0),
        None => context.summary.start_us,
    };
    // Without events, the summary has the current totals.
    let totals = if context.summary.events == 0 { context.summary.end } else { state.totals };
    Answer::State(StateAt {
        position,
        time_us: context.time_us(position),
        wall_us,
        totals,
        event: event.and_then(|index| context.event_row(index)),
    })
}
