//! The event list in another order than that of time.

use std::sync::Arc;

use crate::caches::Cache;
use crate::context::Context;
use query::{EventColumn, EventFilter};
use replay::Replay;
use replay::index::RecentCache;
use trace::event::Action;
use trace::frames::StackId;

/// Orders kept for one device, four bytes an event each: the one on the screen, and the one before.
const KEPT: usize = 2;
/// Events are sorted again once their trace has grown by this part of it: those of a running job would be sorted all
/// the time.
const GROWN: u32 = 64;
/// Bits of a digit of the radix sort. In practice, sizes and addresses differ in two or three digits.
const DIGIT: u32 = 16;

/// The sorted lists of one device.
#[derive(Debug, Default)]
pub(super) struct SortedEvents(RecentCache<(EventFilter, EventColumn), Sorted, KEPT>);

#[derive(Debug)]
struct Sorted {
    indices: Arc<Vec<u32>>,
    /// The number of events of the trace when it was made.
    positions: u32,
}

impl SortedEvents {
    /// Returns the indices of a list's events, sorted by a column, the smallest first. `list` returns the
    /// indices in rising order.
    pub(super) fn of(
        &mut self,
        context: Context<'_>,
        filter: &EventFilter,
        by: EventColumn,
        list: impl FnOnce() -> Vec<u32>,
    ) -> Arc<Vec<u32>> {
        let key = (filter.clone(), by);
        let positions = context.replay.positions();
        let is_current = |known: &Sorted| positions.saturating_sub(known.positions) <= known.positions / GROWN;
        let known = self.0.remove(&key).filter(is_current);
        let sorted = known.unwrap_or_else(|| Sorted { indices: Arc::new(sorted(context, by, &list())), positions });
        Arc::clone(&self.0.insert(key, sorted).indices)
    }
}

impl Cache for SortedEvents {
    fn bytes(&self) -> usize {
        self.0.values().map(|sorted| size_of_val(sorted.indices.as_slice())).sum()
    }

    fn forget_categories(&mut self) {
        *self = Self::default();
    }
}

/// Returns events sorted by a column. Needs 16 bytes an event besides the list while it sorts.
fn sorted(context: Context<'_>, by: EventColumn, list: &[u32]) -> Vec<u32> {
    let keys = keys(context, by, list);
    let order = order(&keys);
    order.into_iter().filter_map(|place| list.get(place as usize).copied()).collect()
}

/// Returns the sort key of each event of a list.
fn keys(context: Context<'_>, by: EventColumn, list: &[u32]) -> Vec<u64> {
    let events = &context.trace.events;
    let indices = || list.iter().map(|index| *index as usize);
    match by {
        EventColumn::Number | EventColumn::Time => list.iter().map(|index| u64::from(*index)).collect(),
        EventColumn::Since => {
            // Whole microseconds. The first event has no event before it, and comes first.
            list.iter().map(|index| since_us(context, *index).map_or(0, |since| since as u64 + 1)).collect()
        }
        EventColumn::Action => {
            let mut names = Action::ALL.map(|action| (action.name(), action as usize));
            names.sort_unstable();
            let mut ranks = [0; Action::ALL.len()];
            for ((_, action), rank) in names.into_iter().zip(0..) {
                ranks[action] = rank;
            }
            let mut codes = events.action.reader();
            indices().map(|i| ranks[Action::from_code(codes.get(i).unwrap_or_default()) as usize]).collect()
        }
        EventColumn::Size => {
            let mut sizes = events.size.reader();
            indices().map(|i| sizes.get(i).unwrap_or_default()).collect()
        }
        EventColumn::Address => {
            let mut addresses = events.address.reader();
            indices().map(|i| addresses.get(i).unwrap_or_default()).collect()
        }
        EventColumn::Stream => {
            // Maps signed numbers to unsigned ones, in the same order.
            let streams: Vec<u64> =
                context.snapshot.tags.iter().map(|tag| tag.stream.0.cast_unsigned() ^ (1 << 63)).collect();
            let mut tags = events.tag.reader();
            let stream = |tag: u32| streams.get(tag as usize).copied().unwrap_or_default();
            indices().map(|i| stream(tags.get(i).unwrap_or_default())).collect()
        }
        EventColumn::Site => {
            let ranks = site_ranks(context);
            let mut stacks = events.stack.reader();
            let mut of_event = context.replay.event_allocation.reader();
            let mut shown = |i: usize| match stacks.get(i) {
                Some(0) | None => {
                    let id = of_event.get(i).filter(|id| *id != Replay::NONE);
                    id.and_then(|id| context.replay.allocations.stack.get(id as usize)).unwrap_or_default()
                }
                Some(stack) => stack,
            };
            indices().map(|i| ranks.get(shown(i) as usize).copied().unwrap_or_default()).collect()
        }
    }
}

/// Returns the place of each stack's line among all lines, by their text.
fn site_ranks(context: Context<'_>) -> Vec<u64> {
    let stacks = context.symbols().stack_count() as u32;
    let label = |stack: u32| context.sites.label(StackId(stack));
    let mut by_label: Vec<u32> = (0..stacks).collect();
    by_label.sort_by(|a, b| label(*a).cmp(label(*b)));
    let mut ranks = vec![0; by_label.len()];
    let (mut rank, mut before) = (0, None);
    for stack in by_label {
        rank += u64::from(before.is_some_and(|before| label(before) != label(stack)));
        before = Some(stack);
        if let Some(known) = ranks.get_mut(stack as usize) {
            *known = rank;
        }
    }
    ranks
}

/// Returns the microseconds between an event and the one before; `None` for the first event.
pub(super) fn since_us(context: Context<'_>, index: u32) -> Option<f64> {
    (index > 0).then(|| (context.time_us(index.saturating_add(1)) - context.time_us(index)).max(0.0))
}

/// Returns the indices of keys in rising order of the keys. Equal keys keep their order.
fn order(keys: &[u64]) -> Vec<u32> {
    let mut places: Vec<u32> = (0..keys.len() as u32).collect();
    let key = |place: &u32| keys.get(*place as usize).copied().unwrap_or_default();
    if keys.len() < 1 << DIGIT {
        places.sort_by_key(key);
        return places;
    }
    // A radix sort from the last digit to the first. Each pass keeps the order of the one before among equal digits,
    // and digits that all keys share are skipped.
    let first = keys.first().copied().unwrap_or_default();
    let differing = keys.iter().fold(0, |bits, key| bits | (key ^ first));
    let mut next = vec![0_u32; places.len()];
    for shift in (0..u64::BITS).step_by(DIGIT as usize) {
        const LAST: u64 = (1 << DIGIT) - 1;
        if differing >> shift & LAST == 0 {
            continue;
        }
        let digit = |key: u64| (key >> shift & LAST) as usize;
        let mut starts = vec![0_u32; 1 << DIGIT];
        for key in keys {
            starts[digit(*key)] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            (*start, sum) = (sum, sum + *start);
        }
        for place in &places {
            let at = &mut starts[digit(key(place))];
            if let Some(slot) = next.get_mut(*at as usize) {
                *slot = *place;
            }
            *at += 1;
        }
        std::mem::swap(&mut places, &mut next);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_are_in_the_order_of_a_plain_sort() {
        let mut seed = 7_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed >> 20
        };
        for mask in [0, 1, 0xff_0000, 0xffff_f000_0000, u64::MAX] {
            for count in [0, 1, 3_000, (1 << DIGIT) + 3_000] {
                let keys: Vec<u64> = (0..count).map(|_| next() & mask).collect();
                let mut want: Vec<u32> = (0..count).collect();
                want.sort_by_key(|place| keys[*place as usize]);
                assert_eq!(order(&keys), want, "{count} keys under {mask:x}");
            }
        }
    }
}
