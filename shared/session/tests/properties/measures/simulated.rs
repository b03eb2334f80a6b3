//! Traces of the real allocator on a simulated device: streams, private pools, expandable segments, and retries.

use allocator::sim::{Placement, SimDriver};
use allocator::{AllocatorConfig, DeviceAllocator, Filter, PoolOptions, Profile, Request, TraceEntry};
use proptest::prelude::*;
use replay::Replay;
use trace::event::Action;
use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};
use trace::{DeviceTrace, Event, Segment, Settings, Tag, Tags};

use super::ops::{Op, operations};
use super::{check_pools, counted, followed};

const NO_STACK: StackId = StackId(0);

const CONFS: [&str; 7] = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:21",
    "max_split_size_mb:40,expandable_segments:True",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:2,64:16,>:1],garbage_collection_threshold:0.3",
    "large_segment_size_mb:40",
];

/// An allocator that records its events, and its own segments after each operation.
pub(super) struct Simulated {
    pub(super) allocator: DeviceAllocator<SimDriver, Vec<TraceEntry>>,
    live: Vec<u64>,
    tags: Tags,
    trace: DeviceTrace,
    /// Positions, and the segments there.
    truth: Vec<(u32, Vec<Segment>)>,
}

impl Simulated {
    pub(super) fn new(profile: &'static Profile, capacity: u64, conf: &str) -> Self {
        let driver = SimDriver::new(capacity, Placement::FirstFit);
        let mut allocator = DeviceAllocator::new(driver, Vec::new(), profile, AllocatorConfig::default());
        // Some releases do not have some settings; those that they have are in force.
        drop(allocator.set_config(conf));
        let (live, tags, trace) = (Vec::new(), Tags::default(), DeviceTrace::default());
        Self { allocator, live, tags, trace, truth: vec![(0, Vec::new())] }
    }

    /// Requests bytes on stream 0. Returns the address, if there was memory.
    pub(super) fn malloc(&mut self, size: u64) -> Option<u64> {
        self.malloc_on(size, 0, 0)
    }

    fn malloc_on(&mut self, size: u64, stream: i64, thread: u64) -> Option<u64> {
        let request = Request { size, stream: Stream(stream), thread, stack: NO_STACK };
        let found = self.allocator.malloc(request).ok().map(|address| address.0).filter(|address| *address != 0);
        self.live.extend(found);
        self.settle();
        found
    }

    pub(super) fn free(&mut self, address: u64) {
        self.live.retain(|live| *live != address);
        self.allocator.free(Address(address), NO_STACK).unwrap();
        self.settle();
    }

    fn step(&mut self, op: Op) {
        let id = |id: u64| PoolId(0, id + 1);
        match op {
            Op::Malloc { size, stream, thread } => drop(self.malloc_on(size, stream, thread)),
            Op::Free { pick } | Op::FreeOn { pick, .. } if !self.live.is_empty() => {
                self.free(self.live[pick % self.live.len()]);
            }
            Op::RecordStream { pick, stream } if !self.live.is_empty() => {
                let address = Address(self.live[pick % self.live.len()]);
                self.allocator.record_stream(address, Stream(stream)).unwrap();
            }
            Op::Hold { stream } => self.allocator.driver_mut().hold(Stream(stream)),
            Op::Release { stream } => self.allocator.driver_mut().release(Stream(stream)),
            Op::Synchronize => self.allocator.driver_mut().synchronize(),
            Op::EmptyCache => drop(self.allocator.empty_cache(NO_STACK)),
            Op::FailNext { calls } => self.allocator.driver_mut().fail_next(calls),
            Op::CreatePool { id: pool, .. } => self.allocator.create_pool(id(pool), PoolOptions::default()),
            Op::ReleasePool { id: pool } => {
                let _ = self.allocator.release_pool(id(pool));
            }
            Op::BeginPool { id: pool, thread } => {
                let _ = self.allocator.begin_allocate_to_pool(id(pool), Filter::Thread(thread));
            }
            Op::EndPool { id: pool } => {
                let _ = self.allocator.end_allocate_to_pool(id(pool));
            }
            // The rest changes what a trace does not show.
            _ => {}
        }
        self.settle();
    }

    /// Takes over the events of an operation.
    fn settle(&mut self) {
        for entry in self.allocator.sink_mut().drain(..) {
            let tag = self.tags.intern(Tag { stream: entry.stream, pool: Some(entry.pool), ..Tag::default() });
            let (address, time_us) = (Address(entry.address), self.trace.events.len() as i64);
            let TraceEntry { action, size, stack, .. } = entry;
            self.trace.events.push(Event { action, address, size, time_us, tag, stack });
        }
        let truth = (self.trace.events.len() as u32, self.allocator.segments());
        match self.truth.last_mut() {
            Some(last) if last.0 == truth.0 => *last = truth,
            _ => self.truth.push(truth),
        }
    }

    /// Returns the number of events of an action.
    pub(super) fn count(&self, action: Action) -> usize {
        self.trace.events.iter().filter(|event| event.action == action).count()
    }

    /// Returns the trace with its replay and the known segments.
    pub(super) fn end(mut self) -> (DeviceTrace, Replay, Vec<(u32, Vec<Segment>)>) {
        let config = self.allocator.config();
        let settings = Settings {
            max_split_size: (config.max_split_size != u64::MAX).then_some(config.max_split_size),
            roundup_power2_divisions: config.roundup_power2_divisions,
            ..Settings::default()
        };
        self.trace.segments = self.allocator.segments();
        let replay = Replay::build(&self.trace, &mut self.tags, &settings);
        assert_eq!(replay.mismatches.total(), 0);
        (self.trace, replay, self.truth)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_measures_are_those_of_the_allocators_own_segments(
        release in 0..Profile::ALL.len(),
        conf in prop::sample::select(CONFS.to_vec()),
        capacity in prop::sample::select(vec![64_u64 << 20, 200 << 20, 4 << 30]),
        bytes in prop::collection::vec(any::<u8>(), 0..1200),
    ) {
        // There, private pools have segments that are not expandable, but are split as if they were.
        prop_assume!(!Profile::ALL[release].private_segments_are_native || !conf.contains("expandable"));
        let mut simulated = Simulated::new(Profile::ALL[release], capacity, conf);
        operations(&bytes).for_each(|op| simulated.step(op));
        let (trace, replay, truth) = simulated.end();
        let measures = followed(&trace, &replay, 0);
        for (position, segments) in &truth {
            prop_assert_eq!(measures[*position as usize], counted(segments), "at {} with {}", position, conf);
        }
        if let Some((position, segments)) = truth.last() {
            check_pools(&replay, *position, segments);
        }
        // Between two operations: each event against the state that is found for it alone.
        for (position, now) in (0..).zip(&measures) {
            prop_assert_eq!(now, &counted(&replay.segments_at(position)), "at {} with {}", position, conf);
        }
    }
}
