//! Measures following the gaps of a trace, and all measures of fragmentation at every event.
//!
//! `cargo bench -p session --bench measures -- [FILE...]` prints a line for each device, or for a made trace of five
//! million events if no file is given.

mod support;

use std::collections::BTreeSet;
use std::time::Instant;

use analysis::lod::RunningMeasures;
use analysis::measures::Measuring;
use format::import::Imported;
use query::{Axis, CurvesQuery, Measure, Window};
use replay::index::Index;
use replay::{Change, Gap, Replay, Replayed, ReservedRange, Space, SpaceVisitor};
use trace::event::Action;
use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};
use trace::{Block, BlockState, DeviceTrace, Event, Segment, Settings, Tag, Tags};

/// Events of the made trace.
const EVENTS: usize = 5_000_000;

fn main() {
    let files: Vec<String> = support::files().collect();
    println!("{:>10} {:>9} {:>9} {:>9} {:>9} {:>8}  device", "events", "follow", "measures", "curves", "MiB", "gaps");
    if files.is_empty() {
        let (trace, mut tags) = made();
        let replay = Replay::build(&trace, &mut tags, &Settings::default());
        measure(&trace, &tags, &replay, "made");
    }
    for file in files {
        match support::import(&file) {
            Ok(Imported { mut snapshot, .. }) => {
                for trace in std::mem::take(&mut snapshot.devices) {
                    let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
                    measure(&trace, &snapshot.tags, &replay, &format!("{file} {}", trace.device));
                }
            }
            Err(error) => println!("{file}: {error}"),
        }
    }
}

/// Visits nothing: what is measured is following alone.
struct Nothing;

impl SpaceVisitor for Nothing {
    fn gap(&mut self, _: &ReservedRange, _: Option<Gap>, _: Option<Gap>) {}

    fn change(&mut self, _: u32, _: Change, _: &Space) {}
}

fn seconds<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = std::hint::black_box(run());
    (start.elapsed().as_secs_f64(), result)
}

fn measure(trace: &DeviceTrace, tags: &Tags, replay: &Replay, name: &str) {
    let (follow, _) = seconds(|| {
        let mut space = replay.space_at(0);
        replay.follow(trace, 0, u32::MAX, &mut space, &mut Nothing);
        space.gap_count()
    });
    let (all, gaps) = seconds(|| {
        let mut measuring = Measuring::at(replay, 0);
        let mut most = 0;
        measuring.advance(trace, replay, u32::MAX, |_, now| most = now.gaps.max(most));
        most
    });
    let (built, index) = seconds(|| RunningMeasures::build(Replayed { trace, tags, replay }));
    let mib = index.bytes() as f64 / f64::from(1 << 20);
    println!("{:>10} {follow:>7.3} s {all:>7.3} s {built:>7.3} s {mib:>9.1} {gaps:>8}  {name}", replay.positions());
    for share in [1.0, 0.1, 0.01, 0.001] {
        let whole = f64::from(replay.positions());
        let window = Window { start: whole * (1.0 - share) / 2.0, end: whole * (1.0 + share) / 2.0 };
        let (axis, columns, measures) = (Axis::Event, 1_600, Measure::ALL.to_vec());
        let query = CurvesQuery { axis, window, columns, measures };
        let (asked, _) = seconds(|| index.curves(trace, replay, &query));
        println!("{:>10} {:>6.2} ms for all curves of {share} of it", "", asked * 1e3);
    }
}

/// A number from a small generator: the same in each run.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn free_segment(address: u64, size: u64) -> Segment {
    let (address, stack) = (Address(address), StackId(0));
    Segment {
        address,
        size,
        stream: Stream(0),
        is_small: size == 2 << 20,
        is_expandable: false,
        pool: PoolId::default(),
        stack,
        blocks: vec![Block { address, size, requested: 0, state: BlockState::Inactive, stack }],
    }
}

/// Makes a trace with some ten thousand live blocks of all sizes: small ones in segments of 2 MiB, larger ones in
/// segments of 20 MiB, each block in a place of its own size, freed in any order.
fn made() -> (DeviceTrace, Tags) {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let (mut tags, mut trace) = (Tags::default(), DeviceTrace::default());
    let tag = tags.intern(Tag::default());
    let push = |trace: &mut DeviceTrace, action, address, size| {
        let (address, time_us) = (Address(address), trace.events.len() as i64);
        trace.events.push(Event { action, address, size, time_us, tag, stack: StackId(0) });
    };
    // The free places of each of these sizes, by address.
    let sizes: [u64; 6] = [512, 4_096, 65_536, 1 << 20, 2 << 20, 5 << 20];
    let mut free: [BTreeSet<u64>; 6] = Default::default();
    let mut live: Vec<(u64, usize)> = Vec::new();
    let mut next = 0x7f00_0000_0000_u64;
    while trace.events.len() < EVENTS {
        if live.len() < 6_000 || random(&mut state).is_multiple_of(2) && live.len() < 12_000 {
            let class = (random(&mut state) % 6) as usize;
            let address = match free[class].pop_first() {
                Some(address) => address,
                None => {
                    let segment = if sizes[class] > 1 << 20 { 20 << 20 } else { 2 << 20 };
                    push(&mut trace, Action::SegmentAlloc, next, segment);
                    trace.segments.push(free_segment(next, segment));
                    free[class].extend((next + sizes[class]..next + segment).step_by(sizes[class] as usize));
                    next += segment;
                    next - segment
                }
            };
            push(&mut trace, Action::Alloc, address, sizes[class] - random(&mut state) % 512);
            live.push((address, class));
        } else {
            let at = random(&mut state) as usize % live.len();
            let (address, class) = live.swap_remove(at);
            push(&mut trace, Action::FreeRequested, address, sizes[class]);
            push(&mut trace, Action::FreeCompleted, address, sizes[class]);
            free[class].insert(address);
        }
    }
    // At the end all is free.
    for (address, class) in live {
        push(&mut trace, Action::FreeRequested, address, sizes[class]);
        push(&mut trace, Action::FreeCompleted, address, sizes[class]);
    }
    (trace, tags)
}
