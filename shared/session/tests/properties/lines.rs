//! Compares memory by line and the sums over ranges with brute force, on random runs of the model allocator.

use std::collections::BTreeMap;

use crate::support::{Run, ops, run};
use analysis::window::WAIT_LEAST_US;
use proptest::prelude::*;
use query::{
    Answer, ClassesQuery, ColorBy, FlameQuery, LineQuery, LineStepQuery, LinesQuery, Memory, Moments, Query,
    RangeAmounts, RangeOrder, RangeQuery, Sandwich, Transform, Waits,
};
use replay::{Allocation, Replay};
use session::Session;
use trace::Snapshot;
use trace::event::Action;
use trace::frames::StackId;
use trace::totals::Amount;

const ORDERS: [RangeOrder; 6] = [
    RangeOrder::Kept,
    RangeOrder::Growth,
    RangeOrder::Churn,
    RangeOrder::Allocated,
    RangeOrder::Freed,
    RangeOrder::Waiting,
];

/// A run in which each line has up to two stacks, and events are far enough apart that a free can wait.
struct Story {
    allocations: Vec<Allocation>,
    /// The time of each position, in microseconds since the trace begins.
    times: Vec<i64>,
    /// Actions and sizes of the events.
    events: Vec<(Action, u64)>,
    /// The text of each stack's line.
    labels: Vec<String>,
    /// The requested bytes at each position.
    requested: Vec<u64>,
    session: Session,
}

impl Story {
    fn new(ops: &[crate::support::Op], lost: usize) -> Self {
        let Run { mut trace, mut tags, mut symbols, settings, moments } = run(ops, lost);
        let name = symbols.intern(b"main");
        let filename = symbols.intern(b"/home/user/train.py");
        let caller = symbols.intern_frame(trace::frames::Frame { name, filename, line: 9 });
        for i in 0..trace.events.len() {
            let mut event = trace.events.get(i).unwrap();
            event.time_us *= WAIT_LEAST_US + 1;
            if i % 3 == 0 && event.stack.0 > 0 {
                let mut frames = symbols.stack(event.stack).to_vec();
                frames.push(caller);
                event.stack = symbols.intern_stack(&frames);
            }
            trace.events.set(i, event);
        }
        let replay = Replay::build(&trace, &mut tags, &settings);
        let times = (0..=replay.positions()).map(|position| replay.time_at(&trace, position)).collect();
        let events = trace.events.iter().map(|event| (event.action, event.size)).collect();
        let labels = (0..symbols.stack_count() as u32)
            .map(|stack| {
                symbols.stack(StackId(stack)).first().map(|id| symbols.text(symbols.frame(*id).name).into_owned())
            })
            .map(|name| name.unwrap_or_else(|| "no stack recorded".to_owned()))
            .collect();
        let allocations = replay.allocations.iter().collect();
        let requested = moments.iter().map(crate::support::Moment::requested).collect();
        let snapshot = Snapshot { devices: vec![trace], symbols, tags, settings, ..Snapshot::default() };
        let session = Session::new(snapshot, "pickle".to_owned(), Vec::new(), &mut |_| {});
        Self { allocations, times, events, labels, requested, session }
    }

    fn at(&self, share: f64) -> u32 {
        (self.requested.len() as f64 * share) as u32
    }

    /// Sums what `amount_of` returns for each allocation, by line.
    fn by_line<T: Default>(&self, mut add: impl FnMut(&mut T, u32, &Allocation)) -> BTreeMap<String, T> {
        let mut lines: BTreeMap<String, T> = BTreeMap::new();
        for (id, a) in (0..).zip(&self.allocations) {
            add(lines.entry(self.labels[a.stack.0 as usize].clone()).or_default(), id, a);
        }
        lines
    }

    fn memory(&self, moments: Moments) -> BTreeMap<String, Memory> {
        let mut lines = self.by_line(|memory: &mut Memory, _, a| {
            if a.is_active_at(moments.at) {
                memory.now.add(a.requested);
            }
            if moments.since.is_some_and(|since| a.is_active_at(since)) {
                memory.before.add(a.requested);
            }
        });
        lines.retain(|_, memory| *memory != Memory::default());
        lines
    }

    fn is_wait(&self, a: &Allocation) -> bool {
        let time = |position: u32| self.times[(position as usize).min(self.times.len() - 1)];
        a.freed < a.end && (a.end - a.freed > 1 || time(a.end) - time(a.freed) >= WAIT_LEAST_US)
    }

    fn amounts(&self, from: u32, to: u32) -> (BTreeMap<String, RangeAmounts>, Waits) {
        let is_inside = |position: u32| from < position && position <= to;
        let mut waits = Waits::default();
        let lines = self.by_line(|amounts: &mut RangeAmounts, id, a| {
            if a.begin >= a.end {
                return;
            }
            if is_inside(a.begin) {
                amounts.allocated.add(a.requested);
            }
            if is_inside(a.end) {
                amounts.freed.add(a.requested);
            }
            if is_inside(a.begin) && a.is_active_at(to) {
                amounts.kept.add(a.requested);
            }
            let waits_inside = is_inside(a.end) || (a.is_active_at(to) && a.freed <= to);
            if waits_inside && self.is_wait(a) {
                let us = self.times[a.end.min(to) as usize] - self.times[a.freed.max(from) as usize];
                let us = us.unsigned_abs();
                amounts.waited_us += us;
                waits.blocks += 1;
                waits.byte_us += u128::from(us) * u128::from(a.size);
                if waits.longest.is_none() || us > waits.longest_us {
                    (waits.longest_us, waits.longest) = (us, Some(id));
                }
            }
        });
        (lines, waits)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn steps_go_along_a_line_and_around_its_ends(ops in ops(80), lost in 0_usize..40, at in 0.0..1.0) {
        let mut story = Story::new(&ops, lost);
        let position = story.at(at);
        let end = story.requested.len() as u32 - 1;
        for (label, ids) in story.by_line(|ids: &mut Vec<u32>, id, _| ids.push(id)) {
            let of = |id: u32| story.allocations[id as usize];
            let stack = of(ids[0]).stack.0;
            let life = (of(ids[0]).begin, ids.iter().map(|id| of(*id).end.min(end)).max().unwrap());
            let begins: Vec<u32> = ids.iter().map(|id| of(*id).begin).collect();
            let mut step = |from, forward| {
                let query = LineStepQuery { stack, from, position, forward };
                let Answer::LineStep(Some(step)) = story.session.answer(0, &Query::LineStep(query)) else { panic!("{label}") };
                step
            };
            for (i, id) in ids.iter().enumerate() {
                for (forward, to) in [(true, (i + 1) % ids.len()), (false, (i + ids.len() - 1) % ids.len())] {
                    let found = step(Some(*id), forward);
                    prop_assert_eq!((found.allocation, found.number as usize - 1, found.of as usize), (ids[to], to, ids.len()));
                    prop_assert_eq!((found.position, found.life), (begins[to], life));
                }
            }
            // From a moment: the next that is made after it, or the last that was made before it.
            let next = begins.iter().position(|begin| *begin > position).unwrap_or(0);
            prop_assert_eq!(step(None, true).allocation, ids[next]);
            let before = begins.iter().rposition(|begin| *begin < position).unwrap_or(ids.len() - 1);
            prop_assert_eq!(step(None, false).allocation, ids[before]);
        }
    }

    #[test]
    fn lines_add_up_and_are_those_of_brute_force(
        ops in ops(120), lost in 0_usize..60, at in 0.0..1.0, since in 0.0..1.0, has_since in any::<bool>(), rows in 0_u32..8,
    ) {
        let mut story = Story::new(&ops, lost);
        let moments = Moments { at: story.at(at), since: has_since.then(|| story.at(since)) };
        let want = story.memory(moments);
        let query = LinesQuery { moments, rows, filter: Vec::new() };
        let Answer::Lines(lines) = story.session.answer(0, &Query::Lines(query)) else { panic!("no lines") };
        prop_assert_eq!(lines.rows.len(), want.len().min(rows as usize));
        prop_assert_eq!(lines.others as usize, want.len() - lines.rows.len());
        let mut sum = lines.rest;
        for row in &lines.rows {
            prop_assert_eq!(Some(&row.memory), want.get(row.label.split("  ").next().unwrap()));
            sum.plus(row.memory);
        }
        prop_assert_eq!(sum, lines.total);
        prop_assert_eq!(sum.now.bytes, story.requested[moments.at as usize]);
        prop_assert!(lines.rows.is_sorted_by_key(|row| std::cmp::Reverse(row.memory.growth())));
        if let (Some(last), 1..) = (lines.rows.last(), lines.others) {
            let largest = want.values().map(Memory::growth).filter(|growth| *growth > last.memory.growth()).count();
            prop_assert!(largest < lines.rows.len(), "no larger line is left out");
        }

        // Each line has the number of the list, whichever of its stacks is asked for.
        for row in &lines.rows {
            let stacks = (0..story.labels.len()).filter(|i| story.labels[*i] == story.labels[row.stack as usize]);
            for stack in stacks {
                let query = LineQuery { stack: stack as u32, moments, range: None, filter: Vec::new() };
                let Answer::Line(line) = story.session.answer(0, &Query::Line(query)) else { panic!("no line") };
                prop_assert_eq!((line.stack, line.memory, &line.label), (row.stack, row.memory, &row.label));
                let mut sum = line.other_stacks.1;
                line.stacks.iter().for_each(|stack| sum.plus(stack.memory));
                prop_assert_eq!(sum, row.memory);
                prop_assert_eq!(line.stacks.len() as u32 + line.other_stacks.0, row.stacks);
                let own: Vec<&Allocation> =
                    story.allocations.iter().filter(|a| story.labels[a.stack.0 as usize] == story.labels[stack]).collect();
                let held = |p: u32| own.iter().filter(|a| a.is_active_at(p)).map(|a| a.requested).sum::<u64>();
                let positions = story.requested.len() as u32;
                let peak = (0..positions).map(held).max().unwrap();
                prop_assert_eq!(line.peak.0, peak);
                prop_assert_eq!(held(line.peak.1), peak);
                prop_assert!((0..line.peak.1).all(|p| held(p) < peak));
                prop_assert_eq!(line.all.count as usize, own.len());
                prop_assert_eq!(line.live_at_end.bytes, held(positions - 1));
            }
        }
    }

    #[test]
    fn a_flame_of_growth_has_the_stacks_that_grew(ops in ops(120), lost in 0_usize..60, at in 0.0..1.0, since in 0.0..1.0) {
        let mut story = Story::new(&ops, lost);
        let (position, since) = (story.at(at), story.at(since));
        let mut stacks: BTreeMap<u32, i64> = BTreeMap::new();
        for a in &story.allocations {
            let growth = i64::from(a.is_active_at(position)) - i64::from(a.is_active_at(since));
            *stacks.entry(a.stack.0).or_default() += growth * a.requested as i64;
        }
        let want: i64 = stacks.values().filter(|growth| **growth > 0).sum();
        let query = FlameQuery { position, since: Some(since), width: 1000.0, ..FlameQuery::default() };
        let Answer::Flame(flame) = story.session.answer(0, &Query::Flame(query)) else { panic!("no flame") };
        prop_assert_eq!(flame.total as i64, want);
        let below: u64 = flame.boxes.iter().filter(|b| b.depth == 1).map(|b| b.bytes).sum();
        prop_assert_eq!(below as i64, want);
    }

    #[test]
    fn a_flame_of_differences_has_what_grew_and_what_shrank(ops in ops(120), lost in 0_usize..60, at in 0.0..1.0, since in 0.0..1.0) {
        let mut story = Story::new(&ops, lost);
        let (position, since) = (story.at(at), story.at(since));
        let mut stacks: BTreeMap<u32, (u64, u64, u64)> = BTreeMap::new();
        for a in &story.allocations {
            let (now, before, matched) = stacks.entry(a.stack.0).or_default();
            *now += u64::from(a.is_active_at(position)) * a.requested;
            *before += u64::from(a.is_active_at(since)) * a.requested;
            *matched += u64::from(a.is_active_at(position) && a.requested > 65536) * a.requested;
        }
        let query = FlameQuery {
            position, since: Some(since), differs: true, width: 1000.0, highlight: Some(">64KiB".to_owned()), ..FlameQuery::default()
        };
        let Answer::Flame(flame) = story.session.answer(0, &Query::Flame(query.clone())) else { panic!("no flame") };
        let root = &flame.boxes[0];
        prop_assert_eq!(flame.total, stacks.values().map(|(now, before, _)| now.max(before)).sum::<u64>());
        prop_assert_eq!(root.bytes, stacks.values().map(|(now, ..)| now).sum::<u64>());
        prop_assert_eq!(root.before, stacks.values().map(|(_, before, _)| before).sum::<u64>());
        prop_assert!(flame.matched.unwrap() <= flame.total);
        // At one moment, what a search matches is counted exactly, and merging and collapsing leave the sum.
        let plain = FlameQuery { since: None, differs: false, ..query };
        for transforms in [vec![], vec![Transform::Merge(0)], vec![Transform::CollapseRecursion(1), Transform::CollapseFunction(0)]] {
            let query = FlameQuery { transforms, ..plain.clone() };
            let Answer::Flame(flame) = story.session.answer(0, &Query::Flame(query)) else { panic!("no flame") };
            prop_assert_eq!(flame.matched, Some(stacks.values().map(|(.., matched)| matched).sum::<u64>()));
            prop_assert_eq!(flame.total, stacks.values().map(|(now, ..)| now).sum::<u64>());
        }
        // Callers and callees of a function are those of the same bytes.
        let half = |is_callers| FlameQuery {
            bottom_up: is_callers, sandwich: Some(Sandwich { frame: 0, is_line: false, is_callers }), ..plain.clone()
        };
        let mut total = |query| match story.session.answer(0, &Query::Flame(query)) {
            Answer::Flame(flame) => (flame.total, flame.matched),
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(total(half(true)), total(half(false)));
    }

    #[test]
    fn classes_add_up_to_the_same(ops in ops(120), lost in 0_usize..60, at in 0.0..1.0, since in 0.0..1.0) {
        let mut story = Story::new(&ops, lost);
        let moments = Moments { at: story.at(at), since: Some(story.at(since)) };
        let total = story.memory(moments).into_values().fold(Memory::default(), |mut sum, memory| {
            sum.plus(memory);
            sum
        });
        for color_by in [ColorBy::Site, ColorBy::Size, ColorBy::Stream, ColorBy::Pool, ColorBy::Lifetime] {
            let query = ClassesQuery { moments, color_by, filter: Vec::new(), highlight: Some(">64KiB".to_owned()) };
            let Answer::Classes(classes) = story.session.answer(0, &Query::Classes(query)) else { panic!("no classes") };
            prop_assert_eq!(classes.classes.len(), classes.memory.len());
            let mut sum = Memory::default();
            classes.memory.iter().for_each(|memory| sum.plus(*memory));
            prop_assert_eq!(sum, total, "{:?}", color_by);
        }
    }

    #[test]
    fn ranges_are_those_of_brute_force(
        ops in ops(120), lost in 0_usize..60, ends in (0.0..1.0, 0.0..1.0), rows in 0_u32..8,
    ) {
        let mut story = Story::new(&ops, lost);
        let (a, b) = (story.at(ends.0), story.at(ends.1));
        let (from, to) = (a.min(b), a.max(b));
        let (want, waits) = story.amounts(from, to);
        let moments = story.requested[from as usize..=to as usize].to_vec();
        let of_driver = |actions: [Action; 2]| {
            let mut amount = Amount::default();
            for (action, size) in &story.events[from as usize..to as usize] {
                if actions.contains(action) {
                    amount.add(*size);
                }
            }
            amount
        };
        let taken = of_driver([Action::SegmentAlloc, Action::SegmentMap]);
        let released = of_driver([Action::SegmentFree, Action::SegmentUnmap]);
        for order in ORDERS {
            let query = RangeQuery { from: a, to: b, order, rows };
            let Answer::Range(sums) = story.session.answer(0, &Query::Range(query)) else { panic!("no range") };
            prop_assert_eq!((sums.query.from, sums.query.to), (from, to));
            prop_assert_eq!((sums.before.requested, sums.after.requested), (moments[0], moments[moments.len() - 1]));
            prop_assert_eq!(sums.peak.0, *moments.iter().max().unwrap());
            let first = moments.iter().position(|bytes| *bytes == sums.peak.0).unwrap() as u32;
            prop_assert_eq!(sums.peak.1, from + first);
            prop_assert_eq!((sums.taken, sums.released), (taken, released));
            prop_assert_eq!(sums.waits, waits);
            prop_assert_eq!(sums.to_us - sums.from_us, story.times[to as usize] - story.times[from as usize]);

            let mut sum = sums.rest;
            for line in &sums.lines {
                prop_assert_eq!(Some(&line.amounts), want.get(line.label.split("  ").next().unwrap()));
                prop_assert!(line.amounts.by(order) > 0);
                sum.plus(line.amounts);
            }
            prop_assert_eq!(sum, sums.amounts);
            prop_assert!(sums.lines.is_sorted_by_key(|line| std::cmp::Reverse(line.amounts.by(order))));
            let listed = want.values().filter(|amounts| amounts.by(order) > 0).count();
            prop_assert_eq!(sums.lines.len(), listed.min(rows as usize));
            let all = want.values().filter(|amounts| **amounts != RangeAmounts::default()).count();
            prop_assert_eq!(sums.others as usize, all - sums.lines.len());
            prop_assert_eq!(sums.amounts.growth(), sums.after.requested as i64 - sums.before.requested as i64);
        }
    }

    #[test]
    fn no_query_panics(ops in ops(40), (at, since, stack) in any::<(u32, u32, u32)>(), rows in any::<u32>(), term in ".{0,9}") {
        let mut story = Story::new(&ops, 7);
        let moments = Moments { at, since: Some(since) };
        let filter = vec![term.clone()];
        for query in [
            Query::Lines(LinesQuery { moments, rows, filter: filter.clone() }),
            Query::Line(LineQuery { stack, moments, range: Some((at, since)), filter: filter.clone() }),
            Query::Classes(ClassesQuery { moments, color_by: ColorBy::Site, filter, highlight: Some(term) }),
            Query::Range(RangeQuery { from: at, to: since, order: RangeOrder::Waiting, rows }),
        ] {
            story.session.answer(0, &query);
            story.session.answer(1, &query);
        }
    }
}
