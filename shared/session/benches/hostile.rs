//! Measures traces that no allocator makes: very many segments or gaps at once, in the order that is worst for sorted
//! lists, and segments that overlap.
//!
//! `cargo bench -p session --bench hostile -- [COUNT...]` prints for each trace, at a quarter of the count and at the whole,
//! how long each stage takes, and by what factor. Work that is proportional to the count has a factor of 4; a bit more is
//! the logarithm and the cache.

use std::hint::black_box;
use std::time::Instant;

use analysis::lod::RunningMeasures;
use analysis::measures::Measuring;
use query::diagnosis::DiagnosisQuery;
use query::{Axis, ColorBy, HeatmapPart, HeatmapQuery, HeatmapRows, Query, SegmentLayout, SegmentsQuery, Window};
use replay::index::Index;
use replay::{Replay, Replayed};
use session::Session;
use trace::event::Action;
use trace::frames::StackId;
use trace::units::Address;
use trace::{DeviceTrace, Event, Settings, Snapshot, Tag, Tags};

const MIB: u64 = 1 << 20;
/// The first address.
const BASE: u64 = 0x7000_0000_0000;

/// The events of a trace, of about `count` segments or gaps.
type Make = fn(count: u64, push: &mut dyn FnMut(Action, u64, u64));

/// Segments that are taken one below the other, with a block in each; every other is given back from the top.
fn falling(count: u64, push: &mut dyn FnMut(Action, u64, u64)) {
    let address = |i: u64| BASE + (count - i) * 4 * MIB;
    for i in 0..count {
        push(Action::SegmentAlloc, address(i), 2 * MIB);
        push(Action::Alloc, address(i), MIB);
    }
    for i in (0..count).step_by(2) {
        push(Action::FreeRequested, address(i), MIB);
        push(Action::FreeCompleted, address(i), MIB);
        push(Action::SegmentFree, address(i), 2 * MIB);
    }
}

/// Segments of which each overlaps the next half, with blocks across the borders.
fn overlapping(count: u64, push: &mut dyn FnMut(Action, u64, u64)) {
    let address = |i: u64| BASE + (count - i) * MIB;
    for i in 0..count {
        push(Action::SegmentAlloc, address(i), 2 * MIB);
        push(Action::Alloc, address(i) + MIB / 2, MIB);
    }
    for i in (0..count).step_by(2) {
        push(Action::FreeRequested, address(i) + MIB / 2, MIB);
        push(Action::FreeCompleted, address(i) + MIB / 2, MIB);
    }
}

/// One segment, in which every other block is freed from the end.
fn gaps(count: u64, push: &mut dyn FnMut(Action, u64, u64)) {
    push(Action::SegmentMap, BASE, (2 * count * 512).next_multiple_of(2 * MIB));
    for i in 0..2 * count {
        push(Action::Alloc, BASE + i * 512, 512);
    }
    for i in (0..count).rev() {
        push(Action::FreeRequested, BASE + 2 * i * 512, 512);
        push(Action::FreeCompleted, BASE + 2 * i * 512, 512);
    }
}

/// One segment whose pages are unmapped from the end, every other one.
fn pages(count: u64, push: &mut dyn FnMut(Action, u64, u64)) {
    push(Action::SegmentMap, BASE, 4 * count * MIB);
    for i in 0..count {
        push(Action::Alloc, BASE + i * 4 * MIB, 2 * MIB);
    }
    for i in (0..count).rev() {
        push(Action::SegmentUnmap, BASE + i * 4 * MIB + 2 * MIB, 2 * MIB);
    }
}

/// Blocks that all claim the same bytes, freed in the order in which they were made.
fn claims(count: u64, push: &mut dyn FnMut(Action, u64, u64)) {
    push(Action::SegmentAlloc, BASE, count.next_multiple_of(2 * MIB) * 512);
    for i in 0..count {
        push(Action::Alloc, BASE + i * 512, (count - i) * 512);
    }
    for i in 0..count {
        push(Action::FreeRequested, BASE + i * 512, (count - i) * 512);
        push(Action::FreeCompleted, BASE + i * 512, (count - i) * 512);
    }
}

const TRACES: [(&str, Make); 5] =
    [("falling", falling), ("overlapping", overlapping), ("gaps", gaps), ("pages", pages), ("claims", claims)];

fn made(make: Make, count: u64) -> (DeviceTrace, Tags) {
    let (mut tags, mut trace) = (Tags::default(), DeviceTrace::default());
    let tag = tags.intern(Tag::default());
    make(count, &mut |action, address, size| {
        let (address, time_us) = (Address(address), trace.events.len() as i64);
        trace.events.push(Event { action, address, size, time_us, tag, stack: StackId(0) });
    });
    replay::end(&mut trace, &mut tags, &Settings::default(), &[], 0);
    (trace, tags)
}

/// The stages, with their time in milliseconds.
fn stages(make: Make, count: u64) -> Vec<(&'static str, f64)> {
    let mut found = Vec::new();
    let mut start = Instant::now();
    let mut lap = |name, start: &mut Instant| {
        found.push((name, start.elapsed().as_secs_f64() * 1e3));
        *start = Instant::now();
    };
    let (trace, mut tags) = made(make, count);
    lap("end", &mut start);
    let replay = Replay::build(&trace, &mut tags, &Settings::default());
    lap("replay", &mut start);
    let middle = replay.positions() / 2;
    black_box((replay.state_at(middle), replay.state_at(u32::MAX)));
    lap("states", &mut start);
    let mut measuring = Measuring::at(&replay, 0);
    measuring.advance(&trace, &replay, u32::MAX, |_, now| {
        black_box(now);
    });
    lap("measures", &mut start);
    black_box(RunningMeasures::build(Replayed { trace: &trace, tags: &tags, replay: &replay }).bytes());
    lap("curves", &mut start);
    drop(replay);
    start = Instant::now();
    let snapshot = Snapshot { devices: vec![trace], tags, ..Snapshot::default() };
    let mut session = Session::new(snapshot, String::new(), Vec::new(), &mut |_| {});
    lap("session", &mut start);
    let events = session.summary().devices[0].event;
    let rows = HeatmapRows::Addresses { rows: 350, offsets: None };
    let map = SegmentsQuery {
        position: middle,
        layout: SegmentLayout::ToScale,
        width: 1400.0,
        height: 800.0,
        visible: Window { start: 0.0, end: 800.0 },
        zoom: 1.0,
        color_by: ColorBy::Site,
        filter: Vec::new(),
        highlight: None,
        line: None,
        ..SegmentsQuery::default()
    };
    for (name, query) in [
        ("diagnosis", Query::Diagnosis(DiagnosisQuery)),
        ("map", Query::Segments(map)),
        (
            "heatmap",
            Query::Heatmap(HeatmapQuery {
                axis: Axis::Event,
                window: events,
                columns: 1400,
                rows,
                part: HeatmapPart::All,
                needed: None,
            }),
        ),
        (
            "sizes",
            Query::Heatmap(HeatmapQuery {
                axis: Axis::Event,
                window: Window { ..events },
                columns: 1400,
                rows: HeatmapRows::Sizes,
                part: HeatmapPart::All,
                needed: None,
            }),
        ),
    ] {
        black_box(session.answer(0, &query));
        lap(name, &mut start);
    }
    found
}

fn main() {
    let counts: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let counts = if counts.is_empty() { vec![100_000] } else { counts };
    for count in counts {
        for (name, make) in TRACES {
            let (few, all) = (stages(make, count / 4), stages(make, count));
            print!("{name:>12} {count:>9}:");
            for ((stage, few), (_, all)) in few.iter().zip(&all) {
                print!("  {stage} {all:.0} ms (× {:.1})", all / few);
            }
            println!();
        }
    }
}
