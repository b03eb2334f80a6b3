//! A run that is repeated under its own terms comes out as it was; under others it obeys what holds for every allocator.

mod hostile;

use allocator::sim::{Placement, SimDriver};
use allocator::{AllocatorConfig, DeviceAllocator, Filter, Profile, Request, TORCH_2_11, TraceEntry};
use format::recording;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use replay::Replay;
use trace::event::Action;
use trace::frames::{Frame, StackId, Symbols};
use trace::limits::ImportLimits;
use trace::units::{Address, PoolId, Stream};
use trace::{DeviceTrace, Event, Loss, Settings, Snapshot, Tag, Tags};
use whatif::{AMPLE, Requests, RunTrace, SelfCheck, Terms, Why};

const NO_STACK: StackId = StackId(0);
const POOL: PoolId = PoolId(0, 1);
const MIB: u64 = 1 << 20;
const CONFS: [&str; 6] = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:32",
    "roundup_power2_divisions:4",
    "expandable_segments:True,roundup_power2_divisions:8",
    "max_split_size_mb:64,roundup_power2_divisions:[64:2,>:1]",
];

/// What a program does.
#[derive(Clone, Debug)]
enum Op {
    Malloc(u64, i64),
    Free(usize),
    /// Another stream uses an allocation, which is then freed.
    FreeUsed(usize),
    /// That stream gets there.
    Reach,
    EmptyCache,
    /// As `Malloc` on the first stream, from a private pool.
    MallocInPool(u64),
    /// The private pool is given up, with what is cached in it.
    EndPool,
}

fn op() -> impl Strategy<Value = Op> {
    let size = prop_oneof![1..4_000_u64, 1..3 * MIB, 1..40 * MIB];
    prop_oneof![
        8 => (size, 0..2_i64).prop_map(|(size, stream)| Op::Malloc(size, stream)),
        6 => any::<usize>().prop_map(Op::Free),
        2 => any::<usize>().prop_map(Op::FreeUsed),
        1 => Just(Op::Reach),
        1 => Just(Op::EmptyCache),
    ]
}

/// A trace with the settings that it was recorded under, and the peaks that the allocator counted.
struct Recorded {
    trace: DeviceTrace,
    tags: Tags,
    symbols: Symbols,
    settings: Settings,
    terms: Terms,
    peak_reserved: u64,
    peak_active: u64,
}

/// Records a program from its start, or from the operation `from` on, with stacks.
fn record(profile: &'static Profile, conf: &str, capacity: u64, ops: &[Op], from: usize) -> Recorded {
    let mut symbols = Symbols::default();
    let mut stack = |name: &[u8]| {
        let (name, filename) = (symbols.intern(name), symbols.intern(b"train.py"));
        let frame = symbols.intern_frame(Frame { name, filename, line: 1 });
        symbols.intern_stack(&[frame])
    };
    let stacks = [stack(b"step"), stack(b"empty_cache"), stack(b"finish")];
    Recorded { symbols, ..record_with(stacks, profile, conf, capacity, ops, from) }
}

/// Records a program with these stacks of requests, of `empty_cache`, and of the end of a pool.
fn record_with(
    [step, call, end]: [StackId; 3],
    profile: &'static Profile,
    conf: &str,
    capacity: u64,
    ops: &[Op],
    from: usize,
) -> Recorded {
    let config = AllocatorConfig::from_conf(conf, profile).unwrap();
    let driver = SimDriver::new(capacity, Placement::Bump);
    let mut allocator: DeviceAllocator<_, Vec<TraceEntry>> =
        DeviceAllocator::new(driver, Vec::new(), profile, config.clone());
    let mut live: Vec<Address> = Vec::new();
    const OTHER: Stream = Stream(7);
    for (n, op) in ops.iter().enumerate() {
        if n == from {
            allocator.sink_mut().clear();
            allocator.reset_peak_stats();
        }
        match op {
            Op::Malloc(size, stream) => {
                let request = Request { size: *size, stream: Stream(*stream), thread: 0, stack: step };
                live.extend(allocator.malloc(request).ok());
            }
            Op::MallocInPool(size) => {
                let request = Request { size: *size, stream: Stream(0), thread: 1, stack: step };
                if allocator.pool_use_count(POOL) == 0 {
                    allocator.create_pool(POOL, Default::default());
                }
                allocator.begin_allocate_to_pool(POOL, Filter::Thread(1)).unwrap();
                live.extend(allocator.malloc(request).ok());
                allocator.end_allocate_to_pool(POOL).unwrap();
                allocator.release_pool(POOL).unwrap();
            }
            Op::EndPool => {
                allocator.release_pool(POOL).unwrap();
                allocator.empty_pool_cache(POOL, end).unwrap();
            }
            Op::Free(pick) | Op::FreeUsed(pick) if !live.is_empty() => {
                let address = live.swap_remove(pick % live.len());
                if matches!(op, Op::FreeUsed(_)) {
                    allocator.driver_mut().hold(OTHER);
                    allocator.record_stream(address, OTHER).unwrap();
                }
                allocator.free(address, NO_STACK).unwrap();
            }
            Op::Free(_) | Op::FreeUsed(_) => {}
            Op::Reach => allocator.driver_mut().release(OTHER),
            Op::EmptyCache => allocator.empty_cache(call).unwrap(),
        }
    }
    let (mut tags, mut trace) = (Tags::default(), DeviceTrace::default());
    for (time, entry) in (0..).zip(allocator.sink().iter()) {
        let TraceEntry { action, address, size, stream, stack, .. } = *entry;
        let tag = tags.intern(Tag { stream, ..Tag::default() });
        trace.events.push(Event { action, address: Address(address), size, time_us: time, tag, stack });
    }
    trace.segments = allocator.snapshot();
    let stats = allocator.stats();
    let settings = Settings {
        conf: conf.to_owned(),
        expandable_segments: config.expandable_segments,
        max_split_size: (config.max_split_size != u64::MAX).then_some(config.max_split_size),
        roundup_power2_divisions: config.roundup_power2_divisions,
        ..Settings::default()
    };
    Recorded {
        trace,
        tags,
        symbols: Symbols::default(),
        settings,
        terms: Terms { capacity, ..Terms::ample(profile, config) },
        peak_reserved: stats.reserved_bytes.all.peak as u64,
        peak_active: stats.active_bytes.all.peak as u64,
    }
}

impl Recorded {
    fn ask<T>(&mut self, ask: impl FnOnce(&Requests, &Terms) -> T) -> T {
        let replay = Replay::build(&self.trace, &mut self.tags, &self.settings);
        let requests = Requests::of(&self.trace, (&self.symbols, &self.tags), &replay, &self.settings);
        ask(&requests, &self.terms)
    }
}

#[test]
fn a_changed_address_is_found() {
    let ops = [Op::Malloc(30 * MIB, 0), Op::Malloc(3 * MIB, 0), Op::Free(0), Op::Malloc(2 * MIB, 0)];
    let mut recorded = record(&TORCH_2_11, "", AMPLE, &ops, 0);
    let all = SelfCheck { requests: 3, equal: 3, ..SelfCheck::default() };
    assert_eq!(recorded.ask(|requests, terms| requests.check(terms).unwrap()), all);
    let last = recorded.trace.events.len() - 1;
    let mut event = recorded.trace.events.get(last).unwrap();
    assert_eq!(event.action, Action::Alloc);
    event.address.0 += 1 << 20;
    recorded.trace.events.set(last, event);
    let check = recorded.ask(|requests, terms| requests.check(terms).unwrap());
    let difference = check.first_difference.unwrap();
    assert_eq!((check.requests, difference.event as usize), (3, last));
    assert!(check.equal < 3 && difference.why.contains("recorded: alloc 0x"), "{}", difference.why);
    // What comes out as recorded is not the whole run if events are missing.
    let mut partial = record(&TORCH_2_11, "", AMPLE, &ops, 0);
    partial.trace.losses.push(Loss { position: 1, events: 7, ..Loss::default() });
    let check = partial.ask(|requests, terms| requests.check(terms).unwrap());
    assert_eq!((check.lost, check.equal, check.is_exact()), (7, 3, false));
    // Other settings than those of the recording are found too.
    let mut other = record(&TORCH_2_11, "expandable_segments:True", AMPLE / 16, &ops, 0);
    let config = AllocatorConfig::default();
    let check = other.ask(|requests, terms| requests.check(&Terms { config, ..terms.clone() }).unwrap());
    assert!(!check.is_exact());
}

#[test]
fn a_request_that_failed_is_served_on_a_larger_device() {
    let ops = [Op::Malloc(60 * MIB, 0), Op::Malloc(60 * MIB, 0), Op::Malloc(2 * MIB, 0)];
    let mut recorded = record(&TORCH_2_11, "", 100 * MIB, &ops, 0);
    recorded.ask(|requests, terms| {
        assert_eq!(requests.capacity(), Some(100 * MIB));
        let same = requests.run(terms).unwrap();
        assert_eq!((same.ooms, same.stopped_at, requests.len()), (1, None, 3));
        let larger = requests.run(&terms.on(200 * MIB)).unwrap();
        assert_eq!((larger.ooms, larger.stopped_why), (0, Some(Why::Served)));
        let smaller = requests.run(&terms.on(50 * MIB)).unwrap();
        assert_eq!((smaller.stopped_at, smaller.stopped_why), (Some(1), Some(Why::Failed)));
        assert_eq!(requests.smallest_capacity(terms).unwrap(), 120 * MIB);
    });
}

#[test]
fn the_smallest_capacity_is_no_more_than_what_the_run_fits_on() {
    // More memory is not always better here.
    let ops = [
        Op::Malloc(30 * MIB, 0),
        Op::Free(0),
        Op::Malloc(32 * MIB, 0),
        Op::Malloc(4 * MIB, 0),
        Op::Free(0),
        Op::Malloc(37 * MIB, 0),
    ];
    let mut recorded = record(&TORCH_2_11, "", AMPLE / 16, &ops, 0);
    recorded.ask(|requests, terms| {
        let fits = |mib: u64| !requests.run(&terms.on(mib * MIB)).unwrap().fails();
        assert_eq!([56, 58, 60, 62, 66, 68].map(fits), [false, true, true, false, false, true]);
        let smallest = |terms: &Terms| requests.smallest_capacity(terms).unwrap();
        assert_eq!(smallest(terms), 68 * MIB);
        assert_eq!(smallest(&terms.on(60 * MIB)), 58 * MIB);
        let held = Terms { held_by_others: 20 * MIB, ..terms.on(80 * MIB) };
        assert_eq!(smallest(&held), 58 * MIB);
        assert_eq!(smallest(&terms.on(62 * MIB)), 68 * MIB, "it does not fit on that");
    });
}

#[test]
fn what_others_hold_and_a_fraction_count() {
    let ops = [Op::Malloc(60 * MIB, 0), Op::Malloc(60 * MIB, 0)];
    let mut recorded = record(&TORCH_2_11, "", 400 * MIB, &ops, 0);
    recorded.ask(|requests, terms| {
        let run = |terms: Terms| requests.run(&terms).map(|outcome| outcome.stopped_why);
        assert_eq!(run(terms.clone()), Ok(None));
        assert_eq!(run(Terms { held_by_others: 280 * MIB, ..terms.clone() }), Ok(None));
        assert_eq!(run(Terms { held_by_others: 282 * MIB, ..terms.clone() }), Ok(Some(Why::Failed)));
        assert_eq!(run(Terms { fraction: Some(0.3), ..terms.clone() }), Ok(None));
        assert_eq!(run(Terms { fraction: Some(0.29), ..terms.clone() }), Ok(Some(Why::Failed)));
        assert!(run(Terms { fraction: Some(1.5), ..terms.clone() }).is_err());
    });
}

/// Records a program without stacks.
fn record_bare(conf: &str, capacity: u64, ops: &[Op]) -> Recorded {
    record_with([NO_STACK; 3], &TORCH_2_11, conf, capacity, ops, 0)
}

#[test]
fn a_retry_without_stacks_is_told_from_empty_cache() {
    // The device has no room for the second block beside the first, and nothing else was ever released.
    let retried = [Op::Malloc(60 * MIB, 0), Op::Free(0), Op::Malloc(70 * MIB, 0)];
    record_bare("", 100 * MIB, &retried).ask(|requests, terms| {
        assert!(requests.check(terms).unwrap().is_exact());
        assert_eq!(requests.capacity(), Some(128 * MIB), "130 MiB would have been enough for both");
        let same = requests.run(terms).unwrap();
        assert_eq!((same.retries, same.peak_reserved), (1, 70 * MIB));
        let larger = requests.run(&terms.on(200 * MIB)).unwrap();
        assert_eq!((larger.retries, larger.peak_reserved), (0, 130 * MIB));
    });
    // What was released could have served the request, so the request didn't release it.
    let emptied = [Op::Malloc(60 * MIB, 0), Op::Free(0), Op::EmptyCache, Op::Malloc(50 * MIB, 0)];
    record_bare("", 100 * MIB, &emptied).ask(|requests, terms| {
        assert!(requests.check(terms).unwrap().is_exact());
        assert_eq!(requests.capacity(), None);
        assert_eq!(requests.run(&terms.on(200 * MIB)).unwrap().peak_reserved, 60 * MIB);
    });
    // Where a program calls it once, it does so again.
    let grows = [Op::Malloc(80 * MIB, 0), Op::Free(0), Op::EmptyCache, Op::Malloc(90 * MIB, 0)];
    record_bare("", 100 * MIB, &[&emptied[..], &[Op::Free(0)], &grows].concat()).ask(|requests, terms| {
        assert_eq!(requests.run(&terms.on(AMPLE)).unwrap().peak_reserved, 90 * MIB);
    });
}

#[test]
fn pools_that_a_trace_does_not_name_are_inferred_and_end() {
    let ops = [
        Op::Malloc(30 * MIB, 0),
        Op::Malloc(24 * MIB, 0),
        Op::Free(0),
        // The free block of the default pool is passed over, twice.
        Op::MallocInPool(22 * MIB),
        Op::MallocInPool(26 * MIB),
        Op::MallocInPool(4 * MIB),
        Op::Free(1),
        Op::MallocInPool(18 * MIB),
        Op::Malloc(28 * MIB, 0),
        Op::Free(1),
        Op::Free(1),
        Op::Free(1),
        // Only the pool's memory goes.
        Op::EndPool,
        Op::Malloc(5 * MIB, 0),
    ];
    for bare in [false, true] {
        let record = |conf: &str| match bare {
            true => record_bare(conf, AMPLE / 16, &ops),
            false => record(&TORCH_2_11, conf, AMPLE / 16, &ops, 0),
        };
        for conf in CONFS {
            let truth = record(conf);
            record("").ask(|requests, terms| {
                assert_eq!(requests.check(terms).unwrap().first_difference, None, "{bare}");
                let config = AllocatorConfig::from_conf(conf, terms.profile).unwrap();
                let found = requests.run(&Terms { config, ..terms.clone() }).unwrap();
                assert_eq!(found.peak_reserved, truth.peak_reserved, "{conf} {bare}");
                assert_eq!(found.reserved_end, truth.trace.segments.iter().map(|segment| segment.size).sum::<u64>());
            });
        }
    }
}

#[test]
fn a_block_that_a_request_waited_for_did_not_serve_it() {
    // The second request has no room, and waits for the first block's stream. PyTorch then doesn't look at that block again.
    let ops = [
        Op::Malloc(40 * MIB, 0),
        Op::Malloc(30 * MIB, 0),
        Op::FreeUsed(0),
        Op::Free(0),
        Op::Malloc(34 * MIB, 0),
        Op::Malloc(2 * MIB, 0),
    ];
    record_bare("", 100 * MIB, &ops).ask(|requests, terms| {
        assert_eq!(requests.check(terms).unwrap().first_difference, None);
        let same = requests.run(terms).unwrap();
        assert_eq!((same.retries, same.stopped_at), (1, None));
    });
}

proptest! {
    #[test]
    fn events_that_no_allocator_made_are_repeated_without_harm(
        data in prop::collection::vec(any::<u8>(), 4..400),
    ) {
        hostile::repeat(&data);
    }
}

#[test]
fn a_request_of_an_impossible_size_on_growing_segments_takes_no_time() {
    // A tensor and a segment of 102 PiB, and a request that fails after them: the device seems to have had as much.
    let events =
        [[0, 0, 37, 213, 32], [213, 32, 0, 0, 37], [0, 4, 51, 51, 51], [51, 51, 51, 51, 245], [247, 150, 58, 2, 36]];
    hostile::repeat(&[&[0, 37, 213, 32][..], events.as_flattened()].concat());
}

#[test]
fn segments_of_impossible_sizes_and_a_failure_after_them_do_not_overflow() {
    let unmapped =
        [[246, 246, 129, 153, 102], [34, 102, 102, 102, 102], [102, 102, 129, 153, 102], [34, 0, 255, 255, 255]];
    // Segments of 8 EiB each.
    let mapped = [[255; 5]; 10];
    let failed = [[7, 102, 102, 102, 102], [102, 102, 102, 255, 255]];
    let events = [&unmapped[..], &mapped, &failed, &mapped[..6]].concat();
    hostile::repeat(&[&[43, 13, 246, 246][..], events.as_flattened()].concat());
}

proptest! {
    // A trace doesn't always tell who released memory, and about one program in some thousands comes out otherwise: WHATIF.md
    // has what is taken as given. The programs are the same each time, so that a change that makes it worse shows.
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn nothing_fits_below_the_start_or_the_largest_moment(
        ops in prop::collection::vec(op(), 1..80),
        conf in 0..CONFS.len(),
        asked in 0..CONFS.len(),
        release in 0..Profile::ALL.len(),
        from in 0..60_usize,
        part in 0.0..1.0_f64,
    ) {
        let mut recorded = record(Profile::ALL[release], CONFS[conf], AMPLE / 16, &ops, from);
        let (start, outcome, smallest, least) = recorded.ask(|requests, terms| {
            let config = AllocatorConfig::from_conf(CONFS[asked], Profile::ALL[release]).unwrap();
            let terms = Terms { config, ..terms.clone() };
            let start = requests.reserved_at_start();
            let least = start.max(requests.run(&terms).unwrap().peak_allocated);
            let smaller = terms.on((least as f64 * part) as u64);
            (start, requests.run(&smaller).unwrap(), requests.smallest_capacity(&terms).unwrap(), least)
        });
        prop_assert!(least == 0 || outcome.fails(), "{:?} fits below {}, and the start is {}", outcome, least, start);
        prop_assert!(smallest >= least, "{} is enough, below {}", smallest, least);
    }

    #[test]
    fn under_its_own_terms_a_run_comes_out_as_it_was(
        ops in prop::collection::vec(op(), 1..120),
        conf in 0..CONFS.len(),
        release in 0..Profile::ALL.len(),
        from in prop_oneof![Just(0_usize), 0..60_usize],
    ) {
        let mut recorded = record(Profile::ALL[release], CONFS[conf], AMPLE / 16, &ops, from);
        let (peak_reserved, peak_active) = (recorded.peak_reserved, recorded.peak_active);
        let (check, outcome) = recorded.ask(|requests, terms| {
            (requests.check(terms).unwrap(), requests.run(terms).unwrap())
        });
        // A trace that begins in the middle doesn't tell which of two equal blocks is older. Nor does one in which pages of
        // expandable segments were released: from torch 2.12 on, the older part is taken first.
        let has_released_pages = CONFS[conf].contains("expandable") && ops.iter().any(|op| matches!(op, Op::EmptyCache));
        let orders_by_age = Profile::ALL[release].version >= (2, 12);
        if from == 0 && !(has_released_pages && orders_by_age) {
            prop_assert_eq!(&check.first_difference, &None);
            prop_assert_eq!(check.equal, check.requests);
            prop_assert_eq!((outcome.peak_reserved, outcome.peak_active), (peak_reserved, peak_active));
        }
        prop_assert!(outcome.stopped_at.is_none());
    }

    #[test]
    fn what_was_retried_is_retried(
        ops in prop::collection::vec(op(), 1..120),
        conf in 0..CONFS.len(),
        capacity in 20..120_u64,
    ) {
        // Under other settings a request that fails or is repeated releases memory in steps that a trace doesn't tell apart.
        // The self-check says where.
        let conf = if conf % 2 == 0 { 0 } else { 3 };
        // A block that waited until the next request failed looks in a trace as if it had been free before.
        let at_once = |op| if let Op::FreeUsed(pick) = op { Op::Free(pick) } else { op };
        let ops: Vec<Op> = ops.into_iter().map(at_once).collect();
        let mut recorded = record(&TORCH_2_11, CONFS[conf], capacity * MIB, &ops, 0);
        let (check, outcome) = recorded.ask(|requests, terms| {
            (requests.check(terms).unwrap(), requests.run(terms).unwrap())
        });
        prop_assert_eq!(&check.first_difference, &None);
        prop_assert_eq!(outcome.stopped_at, None);
        prop_assert_eq!(outcome.peak_reserved, recorded.peak_reserved);
    }

    #[test]
    fn no_setting_does_with_less_than_what_is_live(
        ops in prop::collection::vec(op(), 1..80),
        conf in 0..CONFS.len(),
        other in 0..CONFS.len(),
    ) {
        let mut recorded = record(&TORCH_2_11, CONFS[conf], AMPLE / 16, &ops, 0);
        recorded.ask(|requests, terms| {
            let config = AllocatorConfig::from_conf(CONFS[other], terms.profile).unwrap();
            let terms = Terms { config, ..terms.clone() };
            let outcome = requests.run(&terms).unwrap();
            assert!(outcome.peak_reserved >= outcome.peak_active && outcome.peak_active >= outcome.peak_allocated);
            let bounds = requests.bounds();
            assert!(outcome.peak_allocated >= bounds.exact_fit && bounds.exact_fit >= bounds.requested);
            let smallest = requests.smallest_capacity(&terms).unwrap();
            assert!(smallest >= bounds.exact_fit);
            let (same, course) = requests.run_with_curve(&terms).unwrap();
            assert_eq!(same, outcome);
            assert_eq!(course.reserved.iter().copied().max(), Some(outcome.peak_reserved));
            let (last, end) = (course.reserved.last().copied(), outcome.reserved_end);
            assert!(outcome.stopped_at.is_some() || last == Some(end));
            let fails = |capacity| requests.run(&terms.on(capacity)).unwrap().fails();
            if smallest > 0 {
                assert!(!fails(smallest));
                assert!(fails(smallest - (2 << 20)), "{smallest}");
            }
        });
    }

    #[test]
    fn a_run_that_is_recorded_runs_again_as_itself(
        ops in prop::collection::vec(op(), 1..100),
        conf in 0..CONFS.len(),
        other in 0..CONFS.len(),
        capacity in prop_oneof![Just(AMPLE / 16), (30..200_u64).prop_map(|mib| mib * MIB)],
    ) {
        let mut recorded = record(&TORCH_2_11, CONFS[conf], AMPLE / 16, &ops, 0);
        prop_assume!(!recorded.trace.events.is_empty());
        let (terms, outcome, run) = recorded.ask(|requests, terms| {
            let config = AllocatorConfig::from_conf(CONFS[other], terms.profile).unwrap();
            let terms = Terms { config, ..terms.on(capacity) };
            let (outcome, run) = requests.run_trace(&terms).unwrap();
            assert_eq!(requests.run(&terms).unwrap(), outcome);
            (terms, outcome, RunTrace::from_bytes(&run.to_bytes()).unwrap())
        });
        let Recorded { trace, tags, symbols, settings, .. } = recorded;
        let mut of = Snapshot { devices: vec![trace], tags, symbols, settings, ..Snapshot::default() };
        let strings = of.symbols.string_count();
        let bytes = run.record("run", (&mut of, None, 0), format::write).unwrap();
        prop_assert_eq!(of.symbols.string_count(), strings, "what was lent came back");
        let mut decoder = recording::Decoder::new(ImportLimits::default());
        decoder.push(&bytes).unwrap();
        let (mut again, findings, header) = decoder.finish().unwrap();
        prop_assert!(findings.is_empty(), "{:?}", findings);
        let header = header.unwrap();
        prop_assert_eq!((&*header.torch, &*header.settings.conf), ("2.11", CONFS[other]));
        let trace = &again.devices[0];
        for event in trace.events.iter() {
            let names: Vec<_> = again.symbols.stack(event.stack).iter().map(|frame| again.symbols.text(again.symbols.frame(*frame).name)).collect();
            match event.action {
                Action::Alloc => prop_assert_eq!(names, ["step"]),
                Action::SegmentFree => prop_assert!(names == ["step"] || names == ["empty_cache"], "{:?}", names),
                _ => {}
            }
        }
        let replay = Replay::build(trace, &mut again.tags, &again.settings);
        let requests = Requests::of(trace, (&again.symbols, &again.tags), &replay, &again.settings);
        // No trace tells exactly which blocks waited for streams, or who released memory. This one doesn't either.
        if !ops.iter().any(|op| matches!(op, Op::FreeUsed(_) | Op::EmptyCache)) {
            let check = requests.check(&terms).unwrap();
            prop_assert_eq!(check.first_difference, None);
            let same = requests.run(&terms).unwrap();
            prop_assert_eq!((same.peak_reserved, same.ooms, same.reserved_end), (outcome.peak_reserved, outcome.ooms, outcome.reserved_end));
        }
    }
}
