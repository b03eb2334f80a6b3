//! The event list: rows, filtered rows, and steps between them.

use std::sync::Arc;

use super::sorted_events::{SortedEvents, since_us};
use super::{Answering, positions};
use crate::caches::Cache;
use crate::caches::Caches;
use crate::context::Context;
use crate::terms::{Terms, is_permanent_text};
use analysis::actions::written_name;
use analysis::matches::Matches;
use query::{
    DeviceSummary, EventColumn, EventFilter, EventOrder, EventRows, EventTextQuery, EventsQuery, LOST, ListRow,
    LossRow, PartnerQuery, Related, Sealed, StepEventQuery,
};
use replay::index::{Index, RecentCache};
use replay::{Allocation, Replay};
use trace::Loss;
use trace::event::{Action, counts_in_words};
use trace::frames::StackId;
use trace::units::{Bytes, Count};

/// Filtered lists kept for one device: four bytes an event each.
const KEPT: usize = 3;
/// The largest number of rows in one answer: more than any screen shows.
const ROWS: u32 = 10_000;

/// The filtered lists of one device.
#[derive(Debug, Default)]
struct EventLists {
    kept: RecentCache<EventFilter, FilteredEvents, KEPT>,
}

impl Cache for EventLists {
    fn bytes(&self) -> usize {
        self.kept.values().map(Index::bytes).sum()
    }

    fn forget_categories(&mut self) {
        *self = Self::default();
    }
}

/// The events that pass one filter. Each extension must be for the same filter.
#[derive(Debug, Default)]
struct FilteredEvents {
    /// Their indices, rising.
    indices: Arc<Vec<u32>>,
    /// How many events were filtered.
    events: u32,
}

/// What a list is filtered by.
#[derive(Clone, Copy)]
struct FilterInput<'a> {
    context: Context<'a>,
    /// The names of the wanted actions; empty includes all.
    actions: &'a [String],
    /// The allocations whose events are wanted; `None` includes all events.
    matches: Option<&'a Matches>,
    /// Whether `matches` has of the allocations added before what it had then.
    is_permanent: bool,
}

impl Index<FilterInput<'_>> for FilteredEvents {
    fn extend(&mut self, input: FilterInput<'_>) {
        let positions = input.context.replay.positions();
        if !input.is_permanent {
            *self = Self::default();
        }
        Arc::make_mut(&mut self.indices).extend(input.filtered(self.events));
        self.events = positions;
    }

    fn bytes(&self) -> usize {
        self.indices.len() * size_of::<u32>()
    }
}

/// The indices of events that pass a filter, rising. [`Rows`] adds the losses between them.
#[derive(Clone, Debug)]
enum List {
    /// All events, by their number.
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

    /// Returns the number of rows before event `index`.
    fn rank(&self, index: u32) -> u32 {
        match self {
            Self::All(count) => index.min(*count),
            Self::Some(indices) => indices.partition_point(|i| *i < index) as u32,
        }
    }
}

/// Returns the events that pass a filter.
fn event_list(context: Context<'_>, caches: &mut Caches, filter: &EventFilter) -> Result<List, String> {
    if filter.actions.is_empty() && filter.terms.is_empty() {
        return Ok(List::All(context.replay.positions()));
    }
    let mut list = caches.of::<EventLists>().kept.remove(filter).unwrap_or_default();
    if list.events != context.replay.positions() {
        let matches = caches.of::<Terms>().all(context, &filter.terms)?;
        let is_permanent = filter.terms.iter().all(|term| is_permanent_text(term));
        list.extend(FilterInput { context, actions: &filter.actions, matches: matches.as_deref(), is_permanent });
    }
    let list = caches.of::<EventLists>().kept.insert(filter.clone(), list);
    Ok(List::Some(Arc::clone(&list.indices)))
}

impl FilterInput<'_> {
    /// Returns the events from index `first` on whose action and allocation are wanted.
    fn filtered(&self, first: u32) -> impl Iterator<Item = u32> {
        let Self { context, actions, matches, .. } = *self;
        let known: [bool; Action::ALL.len()] =
            Action::ALL.map(|action| actions.is_empty() || actions.iter().any(|name| *name == action.name()));
        let events = &context.trace.events;
        // Actions that this build does not know are distinguished by the name in their tag.
        let is_other_wanted = move |index: usize| {
            events.get(index).is_some_and(|event| {
                let name = written_name(&event, &context.snapshot.tags, context.symbols());
                actions.is_empty() || actions.iter().any(|wanted| *wanted == name)
            })
        };
        let is_wanted = move |index: usize, code: u8| match Action::from_code(code) {
            Action::Other => is_other_wanted(index),
            action => known[action as usize],
        };
        let is_matched = move |id: u32| matches.is_none_or(|matches| id != Replay::NONE && matches.contains(id));
        let new = first as usize..events.len();
        let codes = events.action.range(new.clone());
        let columns = codes.zip(context.replay.event_allocation.range(new));
        (first..)
            .zip(columns)
            .filter(move |(i, (code, id))| is_matched(*id) && is_wanted(*i as usize, *code))
            .map(|(i, _)| i)
    }
}

/// The rows of a list: its events, and the losses between them.
struct Rows<'a> {
    events: List,
    losses: &'a [Loss],
}

/// What a row shows.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// The event with this index.
    Event(u32),
    Lost(&'a Loss),
}

impl Rows<'_> {
    fn len(&self) -> u32 {
        self.events.len().saturating_add(self.losses.len() as u32)
    }

    /// Returns the row of a loss, given by its index: behind the events before it.
    fn row_of(&self, loss: usize) -> Option<u32> {
        let position = self.losses.get(loss)?.position;
        Some(self.events.rank(position).saturating_add(loss as u32))
    }

    fn get(&self, row: u32) -> Option<Place<'_>> {
        // The number of losses in rows before this one, by binary search.
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

    /// Returns the row of the last event before a position.
    fn before(&self, position: u32) -> Option<u32> {
        let event = self.events.rank(position).checked_sub(1)?;
        let index = self.events.get(event)?;
        // A loss at the event's own position is listed before it.
        let losses = self.losses.partition_point(|loss| loss.position <= index);
        Some(event.saturating_add(losses as u32))
    }
}

/// Returns filters of each kind.
fn filters() -> Vec<EventFilter> {
    let actions = vec!["alloc".to_owned()];
    let terms = vec!["layer2".to_owned()];
    vec![
        EventFilter::default(),
        EventFilter { actions, ..EventFilter::default() },
        EventFilter { terms, ..EventFilter::default() },
    ]
}

/// Returns a row of the list.
fn shown(context: Context<'_>, place: Place<'_>) -> Option<ListRow> {
    match place {
        Place::Event(index) => {
            let event = context.event_row(index)?;
            let partner = event.allocation.and_then(|id| partner(context, index, id));
            Some(ListRow::Event(event, Related { since_us: since_us(context, index), partner }))
        }
        Place::Lost(loss) => Some(ListRow::Lost(LossRow {
            position: loss.position,
            events: loss.events,
            kinds: counts_in_words(&loss.by_action),
        })),
    }
}

impl Answering for PartnerQuery {
    fn answer(&self, context: Context<'_>, _: &mut Caches) -> Result<Option<u32>, String> {
        let index = self.position.checked_sub(1);
        let id = index.and_then(|index| context.replay.event_allocation.get(index as usize));
        let found = index.zip(id.filter(|id| *id != Replay::NONE)).and_then(|(index, id)| partner(context, index, id));
        Ok(found)
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        positions(device).map(|position| Self { position }).collect()
    }
}

/// Returns the position after the free of allocation `id` if event `index` makes it, otherwise after its `alloc`.
fn partner(context: Context<'_>, index: u32, id: u32) -> Option<u32> {
    let Allocation { begin, freed, end, .. } = context.replay.allocations.get(id)?;
    let position = if index.checked_add(1) == Some(begin) { freed.min(end) } else { begin };
    // An allocation may begin or end without an event of its own.
    let at = position.checked_sub(1)? as usize;
    (context.replay.event_allocation.get(at) == Some(id)).then_some(position)
}

impl Answering for EventsQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Sealed<EventRows>, String> {
        let EventsQuery { filter, order, locate, .. } = self;
        let events = event_list(context, caches, filter)?;
        if matches!(order.by, EventColumn::Number | EventColumn::Time) {
            // Losses are listed whatever the search terms: the missing events might have matched.
            let with_losses = filter.actions.is_empty() || filter.actions.iter().any(|name| name == LOST);
            let list = Rows { events, losses: if with_losses { &context.trace.losses } else { &[] } };
            // The event that leads to a position is the one before it.
            return Ok(Sealed::new(&page(context, self, list.len(), list.before(*locate), |row| list.get(row))));
        }
        let all = || (0..events.len()).filter_map(|row| events.get(row)).collect();
        let sorted = caches.of::<SortedEvents>().of(context, filter, order.by, all);
        let wanted = locate.checked_sub(1);
        let located = sorted.iter().position(|index| Some(*index) == wanted).map(|row| row as u32);
        let place = |row: u32| sorted.get(row as usize).copied().map(Place::Event);
        Ok(Sealed::new(&page(context, self, sorted.len() as u32, located, place)))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let rows = |filter: EventFilter, order| Self { filter, order, first: 0, count: 500, locate: device.events / 2 };
        let sorted =
            EventColumn::ALL.into_iter().map(|by| (EventFilter::default(), EventOrder { by, is_falling: true }));
        let filtered = filters().into_iter().map(|filter| (filter, EventOrder::default()));
        sorted.chain(filtered).map(|(filter, order)| rows(filter, order)).collect()
    }
}

/// Returns the rows that a query asks for, of `total` rows whose places `get` returns in rising order. `located` is the
/// row in that order that the query looks for.
fn page<'a>(
    context: Context<'_>,
    query: &EventsQuery,
    total: u32,
    located: Option<u32>,
    get: impl Fn(u32) -> Option<Place<'a>>,
) -> EventRows {
    let order = query.order;
    let turned = |row: u32| if order.is_falling { total.checked_sub(row)?.checked_sub(1) } else { Some(row) };
    let first = query.first.min(total);
    let last = first.saturating_add(query.count.min(ROWS)).min(total);
    let rows = (first..last).filter_map(|row| shown(context, get(turned(row)?)?)).collect();
    EventRows { total, first, rows, located: located.and_then(turned), order }
}

impl Answering for EventTextQuery {
    fn answer(&self, context: Context<'_>, _: &mut Caches) -> Result<Option<String>, String> {
        let Some(row) = context.event_row(self.index) else { return Ok(None) };
        let known = Action::from_name(&row.action);
        let place = match known {
            Some(Action::Oom) => format!("{} free", Bytes(row.address.0).exact()),
            _ => row.address.to_string(),
        };
        let mut text = format!(
            "event {}  {} µs  {}  {}  {place}  stream {}  {}",
            Count(u64::from(self.index) + 1),
            Count(row.time_us.max(0.0) as u64),
            row.action,
            Bytes(row.size).exact(),
            row.stream,
            row.site
        );
        let of_event = context.trace.events.stack.get(self.index as usize).filter(|stack| *stack != 0);
        let of_allocation = || context.replay.allocations.stack.get(row.allocation? as usize);
        if let Some(stack) = of_event.or_else(of_allocation) {
            for frame in context.frames(StackId(stack)) {
                text += &format!("\n    {}", frame.name);
                if !frame.filename.is_empty() {
                    text += &format!("  {}:{}", frame.filename, frame.line);
                }
            }
        }
        Ok(Some(text))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        [0, device.events / 2, u32::MAX].map(|index| Self { index }).into()
    }
}

impl Answering for StepEventQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Option<u32>, String> {
        let list = event_list(context, caches, &self.filter)?;
        // Event `i` leads to position `i + 1`.
        let found = if self.forward {
            list.get(list.rank(self.position))
        } else {
            list.rank(self.position.saturating_sub(1)).checked_sub(1).and_then(|row| list.get(row))
        };
        let is_all = matches!(list, List::All(_));
        Ok(match found {
            Some(index) => Some(index + 1),
            // Before the first event is the start, which no event leads to.
            None if !self.forward && is_all && self.position > 0 => Some(0),
            None => None,
        })
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let of = |filter: EventFilter| {
            [false, true].map(|forward| Self { filter: filter.clone(), position: device.events / 2, forward })
        };
        filters().into_iter().flat_map(of).collect()
    }
}
