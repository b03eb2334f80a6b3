//! Compares the level of detail with sums computed event by event.

use crate::support::{Moment, Op, Run, ops, run};
use analysis::lod::{Coloring, ColoringInput, RunningTotals, Scene, Span, extent, overview, spans, timeline};
use analysis::paint::Painter;
use analysis::site::{SiteInput, Sites};
use analysis::term_matches::{Field, TermMatches};
use analysis::usage::Usage;
use proptest::prelude::*;
use query::term::Term;
use query::{Axis, ColorBy, Detail, Quads, Timeline, TimelineQuery, Window};
use replay::index::Index;
use replay::{Replay, Replayed};
use trace::units::Stream;

const STREAMS: [Stream; 2] = [Stream(0), Stream(7)];

/// Builds everything that a timeline needs, and returns the timeline.
fn ask(run: &mut Run, query: &TimelineQuery) -> Timeline {
    let replay = Replay::build(&run.trace, &mut run.tags, &run.settings);
    let replayed = Replayed { trace: &run.trace, tags: &run.tags, replay: &replay };
    let usage = Usage::build(replayed);
    let sites = Sites::build(SiteInput { symbols: &run.symbols, usages: &[&usage] });
    let painter = Painter {
        color_by: query.color_by,
        trace: &run.trace,
        replay: &replay,
        tags: &run.tags,
        sites: &sites,
        streams: &STREAMS,
        categories: None,
    };
    let field = Field { symbols: &run.symbols, tags: &run.tags, replay: &replay, categories: None };
    let matches = |text: &String| TermMatches::build((&Term::parse(text).unwrap(), field)).matches().clone();
    let filter = query.filter.first().map(matches);
    let highlight = query.highlight.as_ref().map(matches);
    let Coloring { classes, pyramid, .. } = Coloring::build(ColoringInput {
        painter: &painter,
        usage: &usage,
        filter: filter.as_deref(),
        highlight: highlight.as_deref(),
        is_permanent: true,
    });
    let totals = RunningTotals::build(replayed);
    let scene = Scene {
        trace: &run.trace,
        replay: &replay,
        totals: &totals,
        classes: &classes,
        pyramid: &pyramid,
        painter: &painter,
        is_highlighted: highlight.is_some(),
    };
    timeline(scene, query)
}

/// Returns the positions in each column, by the definition.
fn columns(run: &Run, axis: Axis, window: Window, columns: u32) -> Vec<Vec<usize>> {
    let n = run.moments.len() - 1;
    let start = run.trace.events.time_us.get(0).unwrap_or(0);
    let begins = |p: usize| match axis {
        Axis::Event => p as f64,
        Axis::Time => p.checked_sub(1).map_or(f64::MIN, |i| (run.trace.events.time_us.get(i).unwrap() - start) as f64),
    };
    let ends = |p: usize| match axis {
        Axis::Event => p as f64 + 1.0,
        Axis::Time => {
            if p == n {
                f64::MAX
            } else {
                begins(p + 1)
            }
        }
    };
    let last = match axis {
        Axis::Event => n as f64 + 1.0,
        Axis::Time => {
            let t = begins(n).max(0.0);
            (t * 1.01).max(t + 1.0)
        }
    };
    (0..columns)
        .map(|c| {
            let a = window.start + f64::from(c) * window.length() / f64::from(columns);
            let b = if c + 1 == columns {
                window.end
            } else {
                window.start + f64::from(c + 1) * window.length() / f64::from(columns)
            };
            if !(b > 0.0 && a < last && b > a) {
                return Vec::new();
            }
            // Current somewhere in [a, b), or begun in it and over within the same instant.
            (0..=n).filter(|&p| begins(p) < b && (ends(p) > a || begins(p) >= a)).collect()
        })
        .collect()
}

fn check(mut run: Run, axis: Axis, part: (f64, f64), count: u32, color_by: ColorBy, filter: Option<&str>) {
    let all = match axis {
        Axis::Event => run.moments.len() as f64,
        Axis::Time => {
            let times: Vec<i64> = run.trace.events.time_us.iter().collect();
            times.last().map_or(1.0, |t| ((t - times[0]) as f64 * 1.01).max(1.0))
        }
    };
    let window = Window { start: all * part.0.min(part.1), end: all * part.0.max(part.1) + 0.5 };
    let tallest = run.moments.iter().map(Moment::requested).max().unwrap_or(0).max(1);
    let query = TimelineQuery {
        axis,
        window,
        columns: count,
        bytes: Window { start: 0.0, end: tallest as f64 },
        rows: 200,
        color_by,
        filter: filter.map(str::to_owned).into_iter().collect(),
        highlight: None,
    };
    let answer = ask(&mut run, &query);
    // A trace whose beginning was lost doesn't always tell how much of its segment a block took: the replay's own sums count.
    let replay = Replay::build(&run.trace, &mut run.tags, &run.settings);
    let passes = |requested: u64| filter.is_none() || requested > 1 << 20;
    let seen: Vec<usize> = columns(&run, axis, window, count).into_iter().flatten().collect();
    if let (Some(&first), Some(&last)) = (seen.iter().min(), seen.iter().max()) {
        let begun = run.trace.events.iter().take(last).skip(first);
        let begun = begun.filter(|e| e.action == trace::event::Action::Alloc && passes(e.size)).count();
        let there = run.moments[first].active().iter().filter(|b| passes(b.requested)).count();
        assert_eq!(answer.allocations as usize, there + begun);
    }
    let height = |p: usize| run.moments[p].active().iter().map(|b| b.requested).filter(|&r| passes(r)).sum::<u64>();
    let quads = &answer.quads;
    for (c, positions) in columns(&run, axis, window, count).into_iter().enumerate() {
        let want = positions.iter().map(|&p| height(p)).max().unwrap_or(0);
        assert_eq!(answer.top[c], want, "top of column {c} of {axis:?}: {positions:?}");
        if positions.is_empty() {
            continue;
        }
        let at = answer.position[c] as usize;
        assert!(positions.contains(&at) && height(at) == want, "column {c} is drawn at {at}");
        let reserved = positions.iter().map(|&p| run.moments[p].reserved()).max().unwrap_or(0);
        assert_eq!(answer.reserved[c], reserved);
        assert_eq!(answer.active[c], replay.state_at(at as u32).totals.active);
        // The shapes of the column fill it from 0 to its top, without holes or overlaps.
        let mut shapes: Vec<usize> =
            (0..quads.len()).filter(|&i| quads.x0[i] as usize <= c && c < quads.x1[i] as usize).collect();
        shapes.sort_by(|&i, &j| quads.y0[i].total_cmp(&quads.y0[j]));
        let mut edge = 0.0_f32;
        for &i in &shapes {
            assert_eq!(quads.y0[i], edge, "column {c}");
            edge = quads.y1[i];
        }
        assert_eq!(edge, want as f32, "column {c}");
        if answer.detail == Detail::Allocations {
            let mut by_itself = shapes
                .iter()
                .filter(|&&i| quads.id[i] != Quads::NONE)
                .map(|&i| quads.y1[i] - quads.y0[i])
                .collect::<Vec<_>>();
            let least = (tallest as f64 / 200.0).max(1.0) as u64;
            let mut large: Vec<f32> = run.moments[at]
                .active()
                .iter()
                .map(|b| b.requested)
                .filter(|&r| passes(r) && r >= least)
                .map(|r| r as f32)
                .collect();
            by_itself.sort_by(f32::total_cmp);
            large.sort_by(f32::total_cmp);
            assert_eq!(by_itself.len(), large.len(), "shapes of column {c}");
            for (a, b) in by_itself.iter().zip(&large) {
                // Heights are differences of 24-bit numbers.
                assert!((a - b).abs() <= tallest as f32 / 1e6, "{a} is drawn for {b}");
            }
        }
    }
}

fn color() -> impl Strategy<Value = ColorBy> {
    prop_oneof![
        Just(ColorBy::Site),
        Just(ColorBy::Size),
        Just(ColorBy::Stream),
        Just(ColorBy::Pool),
        Just(ColorBy::Lifetime)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_column_has_the_largest_totals_of_its_time(
        ops in ops(150), lost in 0_usize..40, is_time: bool, part in (0.0..1.0_f64, 0.0..1.0_f64), count in 1_u32..80, color in color(), is_filtered: bool,
    ) {
        let axis = if is_time { Axis::Time } else { Axis::Event };
        check(run(&ops, lost), axis, part, count, color, is_filtered.then_some(">1MiB"));
    }

    #[test]
    fn totals_and_composition_equal_sums_event_by_event(ops in ops(900), lost in 0_usize..40, ends in (0_u32..1500, 0_u32..1500), color in color()) {
        let mut run = run(&ops, lost);
        let replay = Replay::build(&run.trace, &mut run.tags, &run.settings);
        let replayed = Replayed { trace: &run.trace, tags: &run.tags, replay: &replay };
        let usage = Usage::build(replayed);
        let sites = Sites::build(SiteInput { symbols: &run.symbols, usages: &[&usage] });
        let painter = Painter { color_by: color, trace: &run.trace, replay: &replay, tags: &run.tags, sites: &sites, streams: &STREAMS, categories: None };
        let input = ColoringInput { painter: &painter, usage: &usage, filter: None, highlight: None, is_permanent: true };
        let Coloring { classes, pyramid, .. } = Coloring::build(input);
        let totals = RunningTotals::build(replayed);
        let n = replay.positions();
        let span = Span { first: ends.0.min(ends.1).min(n), last: ends.0.max(ends.1).min(n) };
        let moments = &run.moments[span.first as usize..=span.last as usize];
        let first_of = |f: &dyn Fn(&Moment) -> u64| {
            let most = moments.iter().map(f).max().unwrap();
            (most, span.first + moments.iter().position(|m| f(m) == most).unwrap() as u32)
        };
        let sums = |m: &Moment, pending: bool| m.active().iter().filter(|p| pending || p.is_allocated).map(|p| p.size).sum::<u64>();
        prop_assert_eq!(pyramid.peak(&run.trace, &replay, &classes, span), first_of(&Moment::requested));
        prop_assert_eq!(
            totals.largest(&run.trace, &replay, span),
            [first_of(&|m| sums(m, false)), first_of(&|m| sums(m, true)), first_of(&Moment::reserved)]
        );
        let least = moments.iter().map(|m| sums(m, false)).min().unwrap();
        prop_assert_eq!(totals.least_allocated(&run.trace, &replay, span), least);
        let at = &run.moments[span.last as usize];
        prop_assert_eq!(totals.at(&run.trace, &replay, span.last), (sums(at, false), sums(at, true), at.reserved()));
        let mut by_class = vec![0; classes.classes.len()];
        for number in replay.active_at(span.last) {
            let class = usize::from(classes.class_of[number as usize]);
            by_class[class] += replay.allocations.requested.get(number as usize).unwrap();
        }
        prop_assert_eq!(pyramid.composition(&run.trace, &replay, &classes, span.last), by_class);
    }
}

#[test]
fn an_overview_column_holds_the_largest_of_its_time() {
    let ops: Vec<Op> = (0..600)
        .map(|i| if i % 5 == 4 { Op::Free(i) } else { Op::Alloc { size: 700 * (i as u64 + 1), stream: 0 } })
        .collect();
    let mut run = run(&ops, 50);
    let replay = Replay::build(&run.trace, &mut run.tags, &run.settings);
    let totals = RunningTotals::build(Replayed { trace: &run.trace, tags: &run.tags, replay: &replay });
    for axis in [Axis::Time, Axis::Event] {
        let answer = overview(&run.trace, &replay, &totals, axis, 37, &[], |_| String::new());
        let window = extent(&run.trace, &replay, axis);
        assert_eq!(spans(&run.trace, &replay, axis, window, 37).flatten().count(), 37);
        for (c, positions) in columns(&run, axis, window, 37).into_iter().enumerate() {
            assert_eq!(answer.reserved[c], positions.iter().map(|&p| run.moments[p].reserved()).max().unwrap());
            let allocated = |p: usize| {
                run.moments[p].active().iter().filter(|block| block.is_allocated).map(|block| block.size).sum::<u64>()
            };
            assert_eq!(answer.least[c], positions.iter().map(|&p| allocated(p)).min().unwrap());
        }
    }
}
