//! Memory by line, and the sums over a range.

use std::sync::Arc;

use super::{Answering, moments, searches};
use crate::caches::Cache;
use crate::caches::Caches;
use crate::context::Context;
use crate::coverage::missing_of;
use crate::states::States;
use crate::terms::Terms;
use analysis::lines::{LineMemory, by_line, by_stack, line_peak, sum};
use analysis::matches::Matches;
use analysis::site::frame_label;
use analysis::window::{WindowLine, WindowSums};
use query::{
    DeviceSummary, LineDetail, LineQuery, LineRow, LineStep, LineStepQuery, Lines, LinesQuery, Moments, RangeAmounts,
    RangeLine, RangeOrder, RangeQuery, RangeSums, StackRow,
};
use replay::index::RecentCache;
use replay::{Allocation, AllocatorState};
use trace::frames::{FrameId, StackId};
use trace::limits::LINE_ROWS;
use trace::order::SortFew;
use trace::totals::Amount;

/// Ranges whose sums are kept for one device: the one on the screen, and the one before.
const KEPT: usize = 2;
/// The number of a line's stacks that are listed.
const STACKS: usize = 50;
/// The number of a line's active allocations that are listed.
const LARGEST: usize = 20;

/// The sums over ranges of one device, by their ends and the length of the trace: whether a block waits can depend on
/// a later event.
#[derive(Debug, Default)]
struct Windows(RecentCache<(u32, u32, u32), Arc<WindowSums>, KEPT>);

impl Cache for Windows {
    fn bytes(&self) -> usize {
        0
    }

    fn forget_categories(&mut self) {}
}

/// Returns the sums over the range between two positions, in either order.
fn window(context: Context<'_>, caches: &mut Caches, from: u32, to: u32) -> Arc<WindowSums> {
    let end = context.replay.positions();
    let key = (from.min(to).min(end), from.max(to).min(end), end);
    let sums = caches.of::<Windows>().0.remove(&key).unwrap_or_else(|| {
        let states = caches.of::<States>();
        let (before, after) = (states.at(context.replay, key.0), states.at(context.replay, key.1));
        Arc::new(WindowSums::build(context.replayed(), &before, &after))
    });
    Arc::clone(caches.of::<Windows>().0.insert(key, sums))
}

/// Returns the memory of each stack, of the allocations that match a filter.
fn stacks(
    context: Context<'_>,
    caches: &mut Caches,
    moments: Moments,
    filter: &[String],
) -> Result<Vec<LineMemory>, String> {
    let filter = caches.of::<Terms>().all(context, filter)?;
    let filter = filter.as_deref();
    let states = caches.of::<States>();
    let now = states.at(context.replay, moments.at);
    let before = moments.since.map(|since| states.at(context.replay, since));
    let before = before.as_deref().map(|state| matching(state, filter));
    Ok(by_stack(context.replay, context.sites, matching(&now, filter), before))
}

/// Returns the active allocations that match a filter.
pub(super) fn matching<'a>(state: &'a AllocatorState, filter: Option<&'a Matches>) -> impl Iterator<Item = u32> + 'a {
    state.active.iter().copied().filter(move |id| filter.is_none_or(|filter| filter.contains(*id)))
}

impl Answering for LinesQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Lines, String> {
        let stacks = stacks(context, caches, self.moments, &self.filter)?;
        let mut lines = by_line(&stacks, context.sites);
        let total = sum(&lines);
        let others = lines.split_off(lines.len().min(self.rows as usize).min(LINE_ROWS));
        let row = |line: &LineMemory| LineRow {
            stack: line.stack.0,
            label: context.sites.label(line.stack).to_owned(),
            paint: context.sites.paint(line.stack),
            stacks: line.stacks,
            memory: line.memory,
        };
        Ok(Lines {
            query: self.clone(),
            rows: lines.iter().map(row).collect(),
            others: others.len() as u32,
            rest: sum(&others),
            total,
        })
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let of = |moments| searches().map(|(filter, _)| Self { moments, rows: 20, filter });
        moments(device).into_iter().flat_map(of).collect()
    }
}

impl Answering for LineQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Box<LineDetail>, String> {
        let id = StackId(self.stack);
        if !context.sites.contains(id) {
            return Err("This file has no such call site.".to_owned());
        }
        let (sites, replay) = (context.sites, context.replay);
        let line = sites.line(id);
        let mut stacks = stacks(context, caches, self.moments, &self.filter)?;
        stacks.retain(|of| sites.line(of.stack) == line);
        let memory = sum(&stacks);
        let largest_stack = stacks.first().map_or(id, |of| of.stack);
        let others = stacks.split_off(stacks.len().min(STACKS));

        let state = caches.of::<States>().at(replay, self.moments.at);
        let stack_of = |id: u32| replay.allocations.stack.get(id as usize).map_or(StackId(0), StackId);
        let of_line: Vec<u32> = state.active.iter().copied().filter(|id| sites.line(stack_of(*id)) == line).collect();
        let mut largest: Vec<(u32, u64)> =
            of_line.iter().map(|&id| (id, replay.allocations.requested.get(id as usize).unwrap_or(0))).collect();
        largest.sort_few_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
        largest.truncate(LARGEST);

        let (mut all, mut live_at_end) = (Amount::default(), Amount::default());
        for (_, usage) in context.usage.iter().filter(|(stack, _)| sites.line(*stack) == line) {
            all.plus(Amount { bytes: usage.bytes, count: usage.count });
            live_at_end.plus(Amount { bytes: usage.end_bytes, count: usage.end_count });
        }
        let missing = missing_of(context, caches, of_line.into_iter());
        let range = self.range.map(|(from, to)| window(context, caches, from, to).line(sites, line));
        let row =
            |of: &LineMemory| StackRow { stack: of.stack.0, memory: of.memory, caller: caller(context, of.stack) };
        Ok(Box::new(LineDetail {
            query: self.clone(),
            stack: sites.first(id).0,
            label: sites.label(id).to_owned(),
            paint: sites.paint(id),
            memory,
            stacks: told_apart(context, stacks.iter().map(row).collect()),
            other_stacks: (others.len() as u32, sum(&others)),
            largest,
            peak: line_peak(replay, sites, line),
            all,
            live_at_end,
            range,
            frames: context.frames(largest_stack),
            missing,
        }))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let range = Some((device.events / 3, device.events));
        let of = |moments| [1, 2, u32::MAX].map(|stack| Self { stack, moments, range, filter: Vec::new() });
        moments(device).into_iter().flat_map(of).collect()
    }
}

impl Answering for LineStepQuery {
    fn answer(&self, context: Context<'_>, _: &mut Caches) -> Result<Option<LineStep>, String> {
        let (sites, replay) = (context.sites, context.replay);
        if !context.sites.contains(StackId(self.stack)) {
            return Ok(None);
        }
        let line = sites.line(StackId(self.stack));
        let a = &replay.allocations;
        let begin = |id: u32| a.begin.get(id as usize).unwrap_or(0);
        let (mut of, mut before, mut life) = (0, 0, (u32::MAX, 0));
        // The first and last allocation of the line, and the nearest ones before and after the start.
        let (mut first, mut last, mut left, mut right) = (None, None, None, None);
        for (id, stack) in (0_u32..).zip(a.stack.range(0..a.len())) {
            if sites.line(StackId(stack)) != line {
                continue;
            }
            of += 1;
            let is_left = match self.from {
                Some(from) => id < from,
                None if self.forward => begin(id) <= self.position,
                None => begin(id) < self.position,
            };
            if is_left {
                (left, before) = (Some(id), of);
            } else if self.from != Some(id) && right.is_none() {
                right = Some((id, of));
            }
            first = first.or(Some(id));
            last = Some(id);
            let end = a.end.get(id as usize).unwrap_or(Allocation::NEVER);
            let end = if end == Allocation::NEVER { replay.positions() } else { end };
            life = (life.0.min(begin(id)), life.1.max(end));
        }
        let found = if self.forward {
            right.or_else(|| Some((first?, 1)))
        } else {
            left.map(|id| (id, before)).or_else(|| Some((last?, of)))
        };
        Ok(found.map(|(allocation, number)| LineStep { allocation, position: begin(allocation), number, of, life }))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let position = device.events / 2;
        let of = |(from, forward)| [1, u32::MAX].map(|stack| Self { stack, from, position, forward });
        [(None, false), (None, true), (Some(3), false), (Some(3), true)].into_iter().flat_map(of).collect()
    }
}

/// Returns the line of the program that called the line which represents a stack; empty if none did.
fn caller(context: Context<'_>, stack: StackId) -> String {
    let symbols = context.symbols();
    let ids = symbols.stack(stack);
    let label = |id: &FrameId| frame_label(symbols, symbols.frame(*id));
    let own = context.sites.label(stack);
    let Some(at) = ids.iter().position(|id| label(id) == own) else { return String::new() };
    let above = ids.get(at + 1..).unwrap_or_default();
    context.sites.best_frames().frame(above).map(|id| label(&id)).unwrap_or_default()
}

/// Adds to callers that several stacks share the innermost frame that only one of these stacks has.
fn told_apart(context: Context<'_>, mut rows: Vec<StackRow>) -> Vec<StackRow> {
    let symbols = context.symbols();
    let frames = |row: &StackRow| symbols.stack(StackId(row.stack));
    let own: Vec<Option<String>> = (0_usize..)
        .zip(&rows)
        .map(|(i, row)| {
            let alike = || (0..).zip(&rows).filter(|(j, other)| *j != i && other.caller == row.caller);
            alike().next()?;
            let is_own = |id: &&FrameId| alike().all(|(_, other)| !frames(other).contains(id));
            frames(row).iter().find(is_own).map(|id| frame_label(symbols, symbols.frame(*id)))
        })
        .collect();
    for (row, own) in rows.iter_mut().zip(own) {
        if let Some(own) = own.filter(|own| *own != row.caller && !row.caller.is_empty()) {
            row.caller += &format!(", through {own}");
        }
    }
    rows
}

impl Answering for RangeQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Box<RangeSums>, String> {
        let sums = window(context, caches, self.from, self.to);
        let mut lines = sums.lines(context.sites, self.order);
        let shown = lines.partition_point(|line| line.amounts.by(self.order) > 0);
        let others = lines.split_off(shown.min(self.rows as usize).min(LINE_ROWS));
        let mut rest = RangeAmounts::default();
        for line in &others {
            rest.plus(line.amounts);
        }
        let row = |line: &WindowLine| RangeLine {
            stack: line.stack.0,
            label: context.sites.label(line.stack).to_owned(),
            paint: context.sites.paint(line.stack),
            amounts: line.amounts,
        };
        Ok(Box::new(RangeSums {
            query: RangeQuery { from: sums.from, to: sums.to, ..*self },
            from_us: context.replay.time_at(context.trace, sums.from),
            to_us: context.replay.time_at(context.trace, sums.to),
            before: sums.before,
            after: sums.after,
            peak: sums.peak,
            amounts: sums.amounts(),
            waits: sums.waits,
            taken: sums.taken,
            released: sums.released,
            lines: lines.iter().map(row).collect(),
            others: others.len() as u32,
            rest,
        }))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let (from, to) = (device.events / 3, device.events);
        [RangeOrder::Kept, RangeOrder::Growth, RangeOrder::Churn, RangeOrder::Waiting]
            .map(|order| Self { from, to, order, rows: 20 })
            .into()
    }
}

#[cfg(test)]
mod tests {
    use crate::Session;
    use query::{Answer, LineQuery, LinesQuery, Memory, Moments, Query, RangeOrder, RangeQuery};
    use trace::totals::Amount;

    /// A cache grows beside activations, until a request fails. The activations were freed at the peak's end.
    const STORY: &str = "segment_alloc 0x10000000 209715200
        alloc 0x10000000 60000000 forward@/m/model.py:5 step@/m/train.py:1
        alloc 0x14000000 50000000 forward@/m/model.py:5 evaluate@/m/train.py:9
        alloc 0x18000000 30000000 remember@/m/cache.py:7 step@/m/train.py:1
        free 0x10000000
        free 0x14000000
        alloc 0x10000000 40000000 remember@/m/cache.py:7 step@/m/train.py:1
        oom 0x0 99000000";

    fn open() -> Session {
        Session::new(trace::testing::snapshot(STORY), "pickle".to_owned(), Vec::new(), &mut |_| {})
    }

    fn lines(
        session: &mut Session,
        at: u32,
        since: Option<u32>,
        rows: u32,
    ) -> (Vec<(String, u32, i64)>, Memory, Memory) {
        let query = LinesQuery { moments: Moments { at, since }, rows, filter: Vec::new() };
        let Answer::Lines(lines) = session.answer(0, &Query::Lines(query)) else { panic!("no lines") };
        let row = |row: &query::LineRow| (row.label.clone(), row.stacks, row.memory.growth());
        (lines.rows.iter().map(row).collect(), lines.rest, lines.total)
    }

    const FORWARD: &str = "forward  m/model.py:5";
    const CACHE: &str = "remember  m/cache.py:7";

    #[test]
    fn at_an_out_of_memory_the_lines_are_those_of_its_moment() {
        let mut session = open();
        let device = &session.summary().devices[0];
        let (peak, oom) = (device.peak_position, device.ooms[0].0);
        assert_eq!((peak, oom), (4, 10));
        let at_peak = lines(&mut session, peak, None, 9).0;
        assert_eq!(at_peak, [(FORWARD.to_owned(), 2, 110_000_000), (CACHE.to_owned(), 1, 30_000_000)]);
        let (at_oom, rest, total) = lines(&mut session, oom, None, 9);
        assert_eq!(at_oom, [(CACHE.to_owned(), 1, 70_000_000)]);
        assert_eq!((rest, total.now), (Memory::default(), Amount { bytes: 70_000_000, count: 2 }));
    }

    #[test]
    fn growth_leads_with_what_grew_and_ends_with_what_shrank() {
        let mut session = open();
        let (rows, rest, total) = lines(&mut session, 10, Some(4), 9);
        assert_eq!(rows, [(CACHE.to_owned(), 1, 40_000_000), (FORWARD.to_owned(), 2, -110_000_000)]);
        assert_eq!((rest.growth(), total.growth(), total.count_growth()), (0, -70_000_000, -1));
        let (rows, rest, _) = lines(&mut session, 10, Some(4), 1);
        assert_eq!((rows.len(), rest.growth()), (1, -110_000_000));
    }

    #[test]
    fn a_line_has_all_of_its_stacks_and_who_called_them() {
        let mut session = open();
        let query = |stack| LineQuery {
            stack,
            moments: Moments { at: 4, since: None },
            range: Some((2, 10)),
            filter: Vec::new(),
        };
        let Answer::Line(line) = session.answer(0, &Query::Line(query(2))) else { panic!("no line") };
        assert_eq!((line.stack, line.label.as_str(), line.memory.now.bytes), (1, FORWARD, 110_000_000));
        let stacks: Vec<_> = line.stacks.iter().map(|row| (row.memory.now.bytes, row.caller.as_str())).collect();
        assert_eq!(stacks, [(60_000_000, "step  m/train.py:1"), (50_000_000, "evaluate  m/train.py:9")]);
        let range = line.range.unwrap();
        assert_eq!((range.allocated.bytes, range.freed.bytes, range.kept.bytes), (50_000_000, 110_000_000, 0));
        assert!(matches!(session.answer(0, &Query::Line(query(99))), Answer::Refused(_)));
        assert_eq!((line.peak, line.all.count, line.live_at_end.count), ((110_000_000, 3), 2, 0));
    }

    #[test]
    fn stacks_with_the_same_caller_are_told_apart() {
        let mut twice = Session::new(
            trace::testing::snapshot(
                "segment_alloc 0x1000000 20971520
                 alloc 0x1000000 3000 f@/m/a.py:1 step@/m/a.py:2 warm@/m/b.py:3
                 alloc 0x1001000 2000 f@/m/a.py:1 step@/m/a.py:2 main@/m/b.py:4",
            ),
            "pickle".to_owned(),
            Vec::new(),
            &mut |_| {},
        );
        let moments = Moments { at: 3, since: None };
        let of_both = LineQuery { stack: 1, moments, range: None, filter: Vec::new() };
        let Answer::Line(line) = twice.answer(0, &Query::Line(of_both)) else { panic!("no line") };
        let callers: Vec<_> = line.stacks.iter().map(|row| row.caller.as_str()).collect();
        assert_eq!(callers, ["step  m/a.py:2, through warm  m/b.py:3", "step  m/a.py:2, through main  m/b.py:4"]);
    }

    #[test]
    fn a_range_tells_what_was_kept_and_what_was_churned() {
        let mut session = open();
        let mut ask = |from, to, order, rows| {
            let query = RangeQuery { from, to, order, rows };
            let Answer::Range(sums) = session.answer(0, &Query::Range(query)) else { panic!("no range") };
            sums
        };
        let whole = ask(0, u32::MAX, RangeOrder::Kept, 9);
        assert_eq!((whole.query.to, whole.peak, whole.taken.bytes), (10, (140_000_000, 4), 209_715_200));
        assert_eq!((whole.amounts.kept.count, whole.amounts.churned().bytes), (2, 110_000_000));
        assert_eq!(whole.lines.len(), 1, "the other line kept nothing");
        assert_eq!((whole.lines[0].label.as_str(), whole.lines[0].amounts.kept.bytes), (CACHE, 70_000_000));
        assert_eq!((whole.others, whole.rest.churned().count), (1, 2));
        let swapped = ask(10, 4, RangeOrder::Growth, 9);
        assert_eq!((swapped.query.from, swapped.query.to, swapped.amounts.growth()), (4, 10, -70_000_000));
    }
}
