//! The event list: rows, filtered rows, and steps from one to the next.

use std::sync::Arc;

use super::Caches;
use super::context::Context;
use crate::analysis::actions::written_name;
use crate::analysis::matches::Matches;
use crate::event::{Action, counts_in_words};
use crate::query::{Answer, EventFilter, EventRows, LOST, ListRow, LossRow};
use crate::replay::Replay;
use crate::trace::Loss;

/// Filtered lists kept for one device: four bytes an event each.
const KEPT: usize = 3;
/// Rows in one answer: more than any screen shows.
const ROWS: u32 = 10_000;

/// Filtered lists, the one used last at the end.
#[derive(Debug, Default)]
pub(super) struct EventLists {
    kept: Vec<(EventFilter, Arc<Vec<u32>>)>,
    /// The positions that they know.
    until: u32,
}

impl EventLists {
    /// Bytes of memory that they take, about.
    pub(super) fn bytes(&self) -> usize {
        self.kept.iter().map(|(_, indices)| indices.len() * size_of::<u32>()).sum()
    }
}

/// The indices of events that pass a filter, rising: see [`Rows`] for what is shown between them.
#[derive(Clone, Debug)]
enum List {
    /// All of so many.
    All(u32),
    Some(Arc<Vec<u32>>),
}

impl List {
    fn len(&self) -> u32 {
        match self {
            Self::All(count) => *count,
            Self::Some(indices) => indices.len() as u32,
        }
    }

    fn get(&self, row: u32) -> Option<u32> {
        match self {
            Self::All(count) => (row < *count).then_some(row),
            Self::Some(indices) => indices.get(row as usize).copied(),
        }
    }

    /// How many rows come before event `index`.
    fn rank(&self, index: u32) -> u32 {
        match self {
            Self::All(count) => index.min(*count),
            Self::Some(indices) => indices.partition_point(|i| *i < index) as u32,
        }
    }
}

impl Caches {
    fn event_list(&mut self, context: Context<'_>, filter: &EventFilter) -> Result<List, String> {
        if filter.actions.is_empty() && filter.terms.is_empty() {
            return Ok(List::All(context.replay.positions()));
        }
        if self.lists.until != context.replay.positions() {
            self.lists.until = context.replay.positions();
            self.lists.kept.clear();
        }
        let kept = &mut self.lists.kept;
        if let Some(i) = kept.iter().position(|(known, _)| known == filter) {
            let found = kept.remove(i);
            let indices = Arc::clone(&found.1);
            kept.push(found);
            return Ok(List::Some(indices));
        }
        let matches = self.terms.all(context, &filter.terms)?;
        let indices = Arc::new(filtered(context, &filter.actions, matches.as_deref()));
        let kept = &mut self.lists.kept;
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((filter.clone(), Arc::clone(&indices)));
        Ok(List::Some(indices))
    }
}

/// The events whose action is one of `actions` (or any, where that is empty) and whose allocation is in `matches`.
fn filtered(context: Context<'_>, actions: &[String], matches: Option<&Matches>) -> Vec<u32> {
    let known: [bool; Action::ALL.len()] =
        Action::ALL.map(|action| actions.is_empty() || actions.iter().any(|name| *name == action.name()));
    let events = &context.trace.events;
    // Actions that this build does not know are told apart by the name in their tag.
    let is_other_wanted = |index: usize| {
        events.get(index).is_some_and(|event| {
            let name = written_name(&event, &context.snapshot.tags, context.symbols());
            actions.is_empty() || actions.iter().any(|wanted| *wanted == name)
        })
    };
    let is_wanted = |index: usize, code: u8| match Action::from_code(code) {
        Action::Other => is_other_wanted(index),
        action => known[action as usize],
    };
    let is_matched = |id: u32| matches.is_none_or(|matches| id != Replay::NONE && matches.contains(id));
    let columns = events.action.iter().zip(context.replay.event_allocation.iter());
    (0u32..)
        .zip(columns)
        .filter(|(i, (code, id))| is_matched(*id) && is_wanted(*i as usize, *code))
        .map(|(i, _)| i)
        .collect()
}

/// The rows of a list: its events, and between them the places where others are missing.
struct Rows<'a> {
    events: List,
    losses: &'a [Loss],
}

/// What a row is of.
enum Place<'a> {
    /// The event with this index.
    Event(u32),
    Lost(&'a Loss),
}

impl Rows<'_> {
    fn len(&self) -> u32 {
        self.events.len().saturating_add(self.losses.len() as u32)
    }

    /// The row of a loss, by its place among them: behind the events before it.
    fn row_of(&self, loss: usize) -> Option<u32> {
        let position = self.losses.get(loss)?.position;
        Some(self.events.rank(position).saturating_add(loss as u32))
    }

    fn get(&self, row: u32) -> Option<Place<'_>> {
        // How many losses stand in rows before this one.
        let (mut before, mut rest) = (0, self.losses.len());
        while before < rest {
            let middle = before + (rest - before) / 2;
            match self.row_of(middle)? {
                at if at < row => before = middle + 1,
                _ => rest = middle,
            }
        }
        if self.row_of(before) == Some(row) {
            return self.losses.get(before).map(Place::Lost);
        }
        self.events.get(row.checked_sub(before as u32)?).map(Place::Event)
    }

    /// The row of the last event before a position.
    fn before(&self, position: u32) -> Option<u32> {
        let event = self.events.rank(position).checked_sub(1)?;
        let index = self.events.get(event)?;
        // A loss at the event's own place stands before it.
        let losses = self.losses.partition_point(|loss| loss.position <= index);
        Some(event.saturating_add(losses as u32))
    }
}

/// To [`Query::Events`](crate::query::Query::Events).
pub(super) fn rows(
    context: Context<'_>,
    caches: &mut Caches,
    filter: &EventFilter,
    (first, count): (u32, u32),
    locate: u32,
) -> Answer {
    let events = match caches.event_list(context, filter) {
        Ok(list) => list,
        Err(sentence) => return Answer::Refused(sentence),
    };
    // Whatever else a filter asks for: what is missing might have passed it.
    let with_losses = filter.actions.is_empty() || filter.actions.iter().any(|name| name == LOST);
    let list = Rows { events, losses: if with_losses { &context.trace.losses } else { &[] } };
    let total = list.len();
    let first = first.min(total);
    let last = first.saturating_add(count.min(ROWS)).min(total);
    let row = |row| match list.get(row)? {
        Place::Event(index) => context.event_row(index).map(ListRow::Event),
        Place::Lost(loss) => Some(ListRow::Lost(LossRow {
            position: loss.position,
            events: loss.events,
            kinds: counts_in_words(&loss.by_action),
        })),
    };
    let rows = (first..last).filter_map(row).collect();
    // The event that leads to a position is the one before it.
    Answer::Events(EventRows { total, first, rows, located: list.before(locate) })
}

/// To [`Query::StepEvent`](crate::query::Query::StepEvent).
pub(super) fn step(
    context: Context<'_>,
    caches: &mut Caches,
    filter: &EventFilter,
    position: u32,
    forward: bool,
) -> Answer {
    let list = match caches.event_list(context, filter) {
        Ok(list) => list,
        Err(sentence) => return Answer::Refused(sentence),
    };
    // Event `i` leads to position `i + 1`.
    let found = if forward {
        list.get(list.rank(position))
    } else {
        list.rank(position.saturating_sub(1)).checked_sub(1).and_then(|row| list.get(row))
    };
    let is_all = matches!(list, List::All(_));
    Answer::Position(match found {
        Some(index) => Some(index + 1),
        // Before the first event lies the start, which no event leads to.
        None if !forward && is_all && position > 0 => Some(0),
        None => None,
    })
}
