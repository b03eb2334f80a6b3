//! Totals and the event at a position: the status line.

use super::Caches;
use super::context::Context;
use crate::query::{Answer, StateAt};

/// To [`Query::State`](crate::query::Query::State).
pub(super) fn answer(context: Context<'_>, caches: &mut Caches, position: u32) -> Answer {
    let state = caches.states.at(context.replay, position);
    let position = state.position;
    let event = position.checked_sub(1);
    let wall_us = match event {
        Some(index) => context.trace.events.time_us.get(index as usize).unwrap_or(0),
        None => context.summary.start_us,
    };
    Answer::State(StateAt {
        position,
        time_us: context.time_us(position),
        wall_us,
        totals: state.totals,
        event: event.and_then(|index| context.event_row(index)),
    })
}
