//! The totals and the event at a position, for the status line.

use super::{Answering, positions};
use crate::caches::Caches;
use crate::context::Context;
use crate::states::States;
use query::{DeviceSummary, StateAt, StateQuery};

impl Answering for StateQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<StateAt, String> {
        let state = caches.of::<States>().at(context.replay, self.position);
        let position = state.position;
        let event = position.checked_sub(1);
        let wall_us = match event {
            Some(index) => context.trace.events.time_us.get(index as usize).unwrap_or(0),
            None => context.summary.start_us,
        };
        // Without events, the summary has the current totals.
        let totals = if context.summary.events == 0 { context.summary.end } else { state.totals };
        Ok(StateAt {
            position,
            time_us: context.time_us(position),
            wall_us,
            totals,
            event: event.and_then(|index| context.event_row(index)),
        })
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        positions(device).map(|position| Self { position }).collect()
    }
}
