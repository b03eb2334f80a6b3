//! The table of allocations: those that are active at a position, and those of one size from one call site in one row.

use std::cmp::Ordering;
use std::sync::Arc;

use super::lines::matching;
use super::{Answering, moments, searches};
use crate::caches::{Cache, Caches};
use crate::context::Context;
use crate::states::States;
use crate::terms::Terms;
use query::{
    AllocationOrder, AllocationRow, AllocationRows, AllocationsQuery, DeviceSummary, FreedBy, Moments, Sealed,
};
use replay::Allocation;
use replay::index::RecentCache;
use trace::frames::StackId;
use trace::limits::ALLOCATION_ROWS;
use trace::order::SortFew;
use trace::totals::Amount;

/// Tables kept for one device: the one on the screen, and the one before.
const KEPT: usize = 2;

/// The tables of one device, by what determines them; the last is the length of the trace, since a later event can end a
/// lifetime.
#[derive(Debug, Default)]
struct Tables(RecentCache<TableKey, Arc<Vec<Group>>, KEPT>);

type TableKey = (Moments, Vec<String>, AllocationOrder, bool, u32);

impl Cache for Tables {
    fn bytes(&self) -> usize {
        self.0.values().map(|groups| size_of_val(groups.as_slice())).sum()
    }

    fn forget_categories(&mut self) {
        *self = Self::default();
    }
}

/// A row before its texts are written.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// The allocation that was made first.
    first: u32,
    begin: u32,
    count: u32,
    /// Requested bytes of each.
    size: u64,
    /// A stack of the call site.
    stack: StackId,
    /// The longest lifetime, in microseconds and in events.
    lifetime_us: f64,
    lifetime: u32,
    /// How many are still live at the end.
    live: u32,
    freed: Freed,
}

/// What freed the allocations of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Freed {
    Nothing,
    Unknown,
    /// A line, by one of its stacks.
    Line(StackId),
    Several,
}

impl Group {
    /// Returns the row of a single allocation.
    fn of(context: Context<'_>, id: u32, a: &Allocation) -> Self {
        let known = |position: u32| (position != Allocation::NEVER).then_some(position);
        let end = known(a.end).unwrap_or_else(|| context.replay.positions());
        let is_live = known(a.freed).or(known(a.end)).is_none();
        Self {
            first: id,
            begin: a.begin,
            count: 1,
            size: a.requested,
            stack: a.stack,
            lifetime_us: (context.time_us(end) - context.time_us(a.begin)).max(0.0),
            lifetime: end.saturating_sub(a.begin),
            live: is_live.into(),
            freed: if is_live { Freed::Nothing } else { freed_by(context, a) },
        }
    }

    /// Adds a row of a later allocation with the same size and call site.
    fn add(&mut self, context: Context<'_>, one: &Self) {
        self.count += one.count;
        self.live += one.live;
        self.lifetime_us = self.lifetime_us.max(one.lifetime_us);
        self.lifetime = self.lifetime.max(one.lifetime);
        self.freed = match (self.freed, one.freed) {
            (known, Freed::Nothing) => known,
            (Freed::Nothing, other) => other,
            (Freed::Line(a), Freed::Line(b)) if context.sites.line(a) == context.sites.line(b) => self.freed,
            (a, b) if a == b => a,
            _ => Freed::Several,
        };
    }

    /// Returns the requested bytes of all of its allocations.
    fn bytes(&self) -> u64 {
        self.size.saturating_mul(self.count.into())
    }
}

/// Returns what freed an allocation. PyTorch writes the stack that allocated it where it recorded none for the free.
fn freed_by(context: Context<'_>, a: &Allocation) -> Freed {
    // What was freed before the trace and still waits has position 0, which no event leads to.
    let event = [a.freed, a.end].into_iter().find(|position| !matches!(*position, 0 | Allocation::NEVER));
    let index = event.and_then(|position| (position as usize).checked_sub(1));
    match index.and_then(|i| context.trace.events.stack.get(i)).map(StackId) {
        Some(stack) if stack != StackId(0) && stack != a.stack && context.sites.contains(stack) => Freed::Line(stack),
        _ => Freed::Unknown,
    }
}

/// Returns the rows of a table in their order.
fn table(context: Context<'_>, caches: &mut Caches, query: &AllocationsQuery) -> Result<Arc<Vec<Group>>, String> {
    let Moments { at, since } = query.moments;
    let key = (query.moments, query.filter.clone(), query.order, query.is_folded, context.replay.positions());
    if let Some(known) = caches.of::<Tables>().0.remove(&key) {
        return Ok(Arc::clone(caches.of::<Tables>().0.insert(key, known)));
    }
    let filter = caches.of::<Terms>().all(context, &query.filter)?;
    let state = caches.of::<States>().at(context.replay, at);
    let mut groups: Vec<Group> = matching(&state, filter.as_deref())
        .filter_map(|id| Some((id, context.replay.allocations.get(id)?)))
        .filter(|(_, a)| since.is_none_or(|since| a.begin > since))
        .map(|(id, a)| Group::of(context, id, &a))
        .collect();
    if query.is_folded {
        let share = |group: &Group| (context.sites.line(group.stack), group.size);
        groups.sort_few_by_key(|group| (share(group), group.first));
        let mut folded: Vec<Group> = Vec::new();
        for group in &groups {
            match folded.last_mut() {
                Some(last) if share(last) == share(group) => last.add(context, group),
                _ => folded.push(*group),
            }
        }
        groups = folded;
    }
    groups.sort_few_by(|a, b| compared(context, query.order, a, b).then(a.first.cmp(&b.first)));
    Ok(Arc::clone(caches.of::<Tables>().0.insert(key, Arc::new(groups))))
}

/// Compares two rows.
fn compared(context: Context<'_>, order: AllocationOrder, a: &Group, b: &Group) -> Ordering {
    match order {
        AllocationOrder::Bytes => b.bytes().cmp(&a.bytes()),
        AllocationOrder::Count => b.count.cmp(&a.count),
        AllocationOrder::Made => a.begin.cmp(&b.begin),
        AllocationOrder::Lifetime => b.lifetime_us.total_cmp(&a.lifetime_us).then_with(|| b.lifetime.cmp(&a.lifetime)),
        AllocationOrder::Site => context.sites.label(a.stack).cmp(context.sites.label(b.stack)),
        AllocationOrder::FreedBy => {
            let key = |group: &Group| match group.freed {
                Freed::Line(stack) => (0, context.sites.label(stack)),
                Freed::Several => (1, ""),
                Freed::Unknown => (2, ""),
                Freed::Nothing => (3, ""),
            };
            key(a).cmp(&key(b))
        }
    }
}

/// Returns a row with its texts.
fn row(context: Context<'_>, group: &Group) -> AllocationRow {
    let sites = context.sites;
    AllocationRow {
        allocation: group.first,
        count: group.count,
        size: group.size,
        begin: group.begin,
        begin_us: context.time_us(group.begin),
        lifetime_us: group.lifetime_us,
        lifetime: group.lifetime,
        live: group.live,
        stack: group.stack.0,
        label: sites.label(group.stack).to_owned(),
        paint: sites.paint(group.stack),
        freed_by: match group.freed {
            Freed::Nothing => FreedBy::Nothing,
            Freed::Unknown => FreedBy::Unknown,
            Freed::Line(stack) => FreedBy::Line(sites.label(stack).to_owned()),
            Freed::Several => FreedBy::Several,
        },
    }
}

impl Answering for AllocationsQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Sealed<AllocationRows>, String> {
        let groups = table(context, caches, self)?;
        let mut total = Amount::default();
        for group in groups.iter() {
            total.plus(Amount { bytes: group.bytes(), count: group.count });
        }
        let (first, count) = (self.first as usize, (self.count as usize).min(ALLOCATION_ROWS));
        let rows = |shown: &mut dyn Iterator<Item = &Group>| {
            shown.skip(first).take(count).map(|group| row(context, group)).collect()
        };
        Ok(Sealed::new(&AllocationRows {
            query: self.clone(),
            table_rows: groups.len() as u32,
            total,
            rows: if self.is_reversed { rows(&mut groups.iter().rev()) } else { rows(&mut groups.iter()) },
        }))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let mut all = Vec::new();
        for moments in moments(device) {
            for (order, is_folded) in AllocationOrder::ALL.into_iter().zip([true, false].into_iter().cycle()) {
                let (filter, is_reversed) = (Vec::new(), !is_folded);
                all.push(Self { moments, filter, order, is_reversed, is_folded, first: 1, count: 50 });
            }
            all.extend(searches().map(|(filter, _)| Self {
                moments,
                filter,
                order: AllocationOrder::Bytes,
                is_reversed: false,
                is_folded: true,
                first: 0,
                count: 50,
            }));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use crate::Session;
    use query::{AllocationOrder, AllocationRows, AllocationsQuery, Answer, FreedBy, Moments, Query};
    use trace::totals::Amount;

    /// Two layers of equal size, one of another, and a cache; one layer is freed.
    const STORY: &str = "segment_alloc 0x10000000 209715200
        alloc 0x10000000 5000 forward@/m/model.py:5 step@/m/train.py:1
        alloc 0x10100000 5000 forward@/m/model.py:5 evaluate@/m/train.py:9
        alloc 0x10200000 7000 forward@/m/model.py:5
        alloc 0x10300000 9000 remember@/m/cache.py:7
        free 0x10000000 backward@/m/train.py:4
        free 0x10200000";

    fn table(at: u32, change: impl Fn(&mut AllocationsQuery)) -> AllocationRows {
        let snapshot = trace::testing::snapshot(STORY);
        let mut session = Session::new(snapshot, "pickle".to_owned(), Vec::new(), &mut |_| {});
        let mut query = AllocationsQuery {
            moments: Moments { at, since: None },
            filter: Vec::new(),
            order: AllocationOrder::Bytes,
            is_reversed: false,
            is_folded: true,
            first: 0,
            count: 9,
        };
        change(&mut query);
        let Answer::Allocations(table) = session.answer(0, &Query::Allocations(query)) else { panic!("no table") };
        (*table).clone()
    }

    /// Returns the sizes of a table with the number of allocations of each.
    fn sizes(table: &AllocationRows) -> Vec<(u64, u32)> {
        table.rows.iter().map(|row| (row.size, row.count)).collect()
    }

    #[test]
    fn equal_allocations_of_a_line_share_a_row() {
        let all = table(5, |_| {});
        assert_eq!(sizes(&all), [(5_000, 2), (9_000, 1), (7_000, 1)]);
        assert_eq!((all.table_rows, all.total), (3, Amount { bytes: 26_000, count: 4 }));
        let pair = &all.rows[0];
        assert_eq!((pair.label.as_str(), pair.begin, pair.live), ("forward  m/model.py:5", 2, 1));
        assert_eq!(pair.freed_by, FreedBy::Line("backward  m/train.py:4".to_owned()));
        assert_eq!((&all.rows[1].freed_by, &all.rows[2].freed_by), (&FreedBy::Nothing, &FreedBy::Unknown));
        let each = table(5, |query| query.is_folded = false);
        assert_eq!(sizes(&each), [(9_000, 1), (7_000, 1), (5_000, 1), (5_000, 1)]);
        assert_eq!(each.rows[2].lifetime, 5, "from its alloc to the end of its free");
        assert_eq!(sizes(&table(9, |_| {})), [(9_000, 1), (5_000, 1)], "what was freed is gone");
    }

    #[test]
    fn a_table_is_ordered_cut_and_filtered() {
        for (order, want) in [
            (AllocationOrder::Count, [5_000, 7_000, 9_000]),
            (AllocationOrder::Made, [5_000, 7_000, 9_000]),
            (AllocationOrder::Lifetime, [5_000, 7_000, 9_000]),
            (AllocationOrder::Site, [5_000, 7_000, 9_000]),
            (AllocationOrder::FreedBy, [5_000, 7_000, 9_000]),
        ] {
            let sizes = |table: AllocationRows| table.rows.iter().map(|row| row.size).collect::<Vec<_>>();
            assert_eq!(sizes(table(5, |query| query.order = order)), want, "{order:?}");
            let reversed = sizes(table(5, |query| (query.order, query.is_reversed) = (order, true)));
            assert_eq!(reversed, want.into_iter().rev().collect::<Vec<_>>(), "{order:?}");
        }
        assert_eq!(sizes(&table(5, |query| (query.first, query.count) = (1, 1))), [(9_000, 1)]);
        assert_eq!(sizes(&table(5, |query| query.filter = vec!["cache.py".to_owned()])), [(9_000, 1)]);
        assert_eq!(sizes(&table(5, |query| query.moments.since = Some(3))), [(9_000, 1), (7_000, 1)]);
        assert_eq!(sizes(&table(0, |_| {})), []);
    }
}
