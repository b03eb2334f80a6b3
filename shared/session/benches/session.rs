//! Measures opening a file, and its answers at many positions and zooms.
//!
//! `cargo bench -p session --bench session -- FILE...` prints a line for each stage and kind of query: the median and the
//! longest time.

mod support;

use std::time::Instant;

use format::import::Imported;
use query::{
    Axis, ColorBy, EventFilter, EventOrder, EventsQuery, FlameQuery, OverviewQuery, Query, SearchQuery, SegmentLayout,
    SegmentsQuery, StateQuery, TimelineQuery, Window,
};
use session::Session;

/// The number of positions, spread over the trace.
const POSITIONS: u32 = 200;

fn main() {
    for file in support::files() {
        println!("{file}");
        match import(&file) {
            Ok(imported) => measure(imported),
            Err(error) => println!("  {error}"),
        }
    }
}

fn import(path: &str) -> Result<Imported, Box<dyn std::error::Error>> {
    let start = Instant::now();
    let imported = support::import(path)?;
    println!("  {:<28} {:>9.1} ms", "import", start.elapsed().as_secs_f64() * 1e3);
    Ok(imported)
}

fn measure(imported: Imported) {
    let start = Instant::now();
    let mut session = Session::build(imported, &mut |_| {});
    println!("  {:<28} {:>9.1} ms", "session", start.elapsed().as_secs_f64() * 1e3);
    let Some(device) = (0..session.summary().devices.len()).max_by_key(|&i| session.summary().devices[i].events) else {
        return;
    };
    let (end, event, time) = {
        let summary = &session.summary().devices[device];
        (summary.events, summary.event, summary.time)
    };
    let tallest = session.summary().devices[device].peak_reserved as f64;
    let timeline = |axis, window, color_by| {
        Query::Timeline(TimelineQuery {
            axis,
            window,
            columns: 1600,
            bytes: Window { start: 0.0, end: tallest },
            rows: 800,
            color_by,
            filter: Vec::new(),
            highlight: None,
        })
    };
    let mut ask = |name: &str, queries: Vec<Query>| {
        let mut times: Vec<f64> = queries
            .iter()
            .map(|query| {
                let start = Instant::now();
                std::hint::black_box(session.answer(device, query));
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        let worst = times.last().copied().unwrap_or_default();
        println!("  {name:<28} {median:>9.2} ms, at worst {worst:>9.2} ms of {}", times.len());
    };
    // Far apart and in any order, so that nothing is answered from the caches.
    let positions: Vec<u32> = (0..POSITIONS)
        .map(|i| (u64::from(i * 7919 % POSITIONS) * u64::from(end) / u64::from(POSITIONS)) as u32)
        .collect();
    ask("first overview", vec![Query::Overview(OverviewQuery { axis: Axis::Time, columns: 1600 })]);
    ask("first timeline", vec![timeline(Axis::Time, time, ColorBy::Site)]);
    ask("first timeline by size", vec![timeline(Axis::Time, time, ColorBy::Size)]);
    ask("state", positions.iter().map(|&position| Query::State(StateQuery { position })).collect());
    let steps = (0..POSITIONS).map(|i| Query::State(StateQuery { position: (end / 2).saturating_add(i).min(end) }));
    ask("state, step by step", steps.collect());
    let segments = |position, layout| {
        let visible = Window { start: 0.0, end: 700.0 };
        Query::Segments(SegmentsQuery {
            position,
            layout,
            width: 1100.0,
            height: 700.0,
            visible,
            zoom: 1.0,
            color_by: ColorBy::Site,
            filter: Vec::new(),
            highlight: None,
            line: None,
            ..SegmentsQuery::default()
        })
    };
    ask("segments to scale", positions.iter().map(|&p| segments(p, SegmentLayout::ToScale)).collect());
    ask("segments packed", positions.iter().map(|&p| segments(p, SegmentLayout::Packed)).collect());
    let rows = |first| {
        Query::Events(EventsQuery {
            order: EventOrder::default(),
            filter: EventFilter::default(),
            first,
            count: 60,
            locate: first,
        })
    };
    ask("event rows", positions.iter().map(|&p| rows(p)).collect());
    let flame = |position| {
        let (zoom, filter) = (Vec::new(), Vec::new());
        let query = FlameQuery {
            position,
            since: None,
            bottom_up: false,
            folds: true,
            by_category: false,
            zoom,
            width: 1100.0,
            filter,
            highlight: None,
            ..FlameQuery::default()
        };
        Query::Flame(query)
    };
    ask("flame", positions.iter().map(|&p| flame(p)).collect());
    for share in [1.0, 0.3, 0.1, 0.03, 0.01, 0.001, 0.0001] {
        let windows = (0..20).map(|i| {
            let start = event.end * (1.0 - share) * f64::from(i) / 19.0;
            timeline(Axis::Event, Window { start, end: start + event.end * share }, ColorBy::Site)
        });
        ask(&format!("timeline of {share} of it"), windows.collect());
    }
    ask("search by frame", vec![Query::Search(SearchQuery { term: "forward".to_owned() })]);
    ask("search by size", vec![Query::Search(SearchQuery { term: ">100MiB".to_owned() })]);
}
