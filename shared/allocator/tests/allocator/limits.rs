//! The limits of memory: sizes that nothing can hold, empty devices and limits, garbage collection, rejections,
//! addresses.

use allocator::sim::{Placement, RANGE_BASE, SimDriver};
use allocator::{
    AllocError, AllocatorConfig, DeviceAllocator, Profile, Request, TORCH_2_6, TORCH_2_11, TORCH_2_15, TraceEntry,
};
use trace::event::Action;
use trace::frames::StackId;
use trace::units::{Address, Stream};

type Allocator = DeviceAllocator<SimDriver, Vec<TraceEntry>>;

const MIB: u64 = 1 << 20;
const NO_STACK: StackId = StackId(0);

fn allocator(profile: &'static Profile, capacity: u64, conf: &str) -> Allocator {
    let config = AllocatorConfig::from_conf(conf, profile).unwrap();
    DeviceAllocator::new(SimDriver::new(capacity, Placement::FirstFit), Vec::new(), profile, config)
}

fn malloc(allocator: &mut Allocator, size: u64, stream: i64) -> Result<Address, AllocError> {
    allocator.malloc(Request { size, stream: Stream(stream), ..Request::default() })
}

/// Returns the outcome of a request in one or two words.
fn outcome(result: &Result<Address, AllocError>) -> &'static str {
    match result {
        Ok(_) => "served",
        Err(AllocError::OutOfMemory(_)) => "no memory",
        Err(AllocError::Rejected(_)) => "rejected",
        Err(AllocError::TooLarge) => "too large",
        Err(AllocError::Driver(_)) => "driver",
    }
}

#[test]
fn sizes_that_nothing_can_hold_are_refused_at_every_magnitude() {
    let confs = [
        "",
        "expandable_segments:True",
        "max_split_size_mb:30",
        "roundup_power2_divisions:8",
        "garbage_collection_threshold:0.5",
    ];
    for (profile, conf) in Profile::ALL.into_iter().flat_map(|profile| confs.map(|conf| (profile, conf))) {
        let mut allocator = allocator(profile, 1 << 30, conf);
        allocator.set_memory_fraction(0.9).unwrap();
        let kept = malloc(&mut allocator, 1, 0).unwrap();
        for bits in 31..64 {
            for size in [1_u64 << bits, (1 << bits) - 511, (1 << bits) + 1, u64::MAX >> (63 - bits)] {
                let want = if size >= 1 << 60 { "too large" } else { "no memory" };
                assert_eq!(outcome(&malloc(&mut allocator, size, 0)), want, "torch {} {conf} {size}", profile.torch);
                allocator.check().unwrap();
            }
        }
        allocator.free(kept, NO_STACK).unwrap();
        assert_eq!(outcome(&malloc(&mut allocator, MIB, 0)), "served");
    }
}

#[test]
fn an_empty_device_or_limit_serves_only_requests_for_nothing() {
    for profile in Profile::ALL {
        for conf in ["", "expandable_segments:True"] {
            let mut empty = allocator(profile, 0, conf);
            let mut limited = allocator(profile, 1 << 30, conf);
            limited.set_memory_fraction(0.0).unwrap();
            assert_eq!(limited.limit(), Some(0));
            for allocator in [&mut empty, &mut limited] {
                assert_eq!(malloc(allocator, 0, 0), Ok(Address(0)));
                for size in [1, MIB, 30 * MIB] {
                    assert_eq!(outcome(&malloc(allocator, size, 0)), "no memory");
                }
                let stats = allocator.stats();
                assert_eq!((stats.num_ooms, stats.num_alloc_retries), (3, 3));
                assert_eq!((allocator.reserved(), allocator.driver().used()), (0, 0));
                allocator.check().unwrap();
            }
        }
    }
}

#[test]
fn a_limit_is_a_share_of_memory_as_each_release_rounds_it() {
    // Fraction, capacity at the start and later; limits in torch 2.6, 2.11 and 2.15.
    let cases = [
        (0.5, 100 * MIB, 100 * MIB, [Some(50 * MIB); 3]),
        (0.5, 100 * MIB, 60 * MIB, [Some(30 * MIB), Some(50 * MIB), Some(50 * MIB)]),
        (1.0, 100 * MIB, 100 * MIB, [Some(100 * MIB), None, None]),
        (0.25, 1026, 1026, [Some(256), Some(256), Some(257)]),
    ];
    for (fraction, start, now, want) in cases {
        for (profile, want) in [TORCH_2_6, TORCH_2_11, TORCH_2_15].iter().zip(want) {
            let profile = Profile::of(profile.torch).unwrap();
            let mut allocator = allocator(profile, start, "");
            allocator.driver_mut().set_capacity(now);
            allocator.set_memory_fraction(fraction).unwrap();
            assert_eq!(allocator.limit(), want, "torch {} {fraction}", profile.torch);
        }
    }
}

#[test]
fn garbage_goes_oldest_first_until_the_threshold_is_met() {
    let mut allocator = allocator(&TORCH_2_11, 400 * MIB, "garbage_collection_threshold:0.5");
    allocator.set_memory_fraction(0.5).unwrap();
    malloc(&mut allocator, 2 * MIB, 7).unwrap();
    let blocks: Vec<Address> =
        [30, 40, 50].into_iter().map(|mib| malloc(&mut allocator, mib * MIB, 0).unwrap()).collect();
    for address in &blocks {
        allocator.free(*address, NO_STACK).unwrap();
        // Each search makes cached blocks older by one, even if it finds something.
        malloc(&mut allocator, 2 * MIB, 7).unwrap();
    }
    allocator.sink_mut().clear();
    // 140 MiB are reserved and the threshold is 100: releasing the oldest half is enough, and the rest stays.
    malloc(&mut allocator, 60 * MIB, 0).unwrap();
    let freed: Vec<u64> = allocator
        .sink_mut()
        .drain(..)
        .filter(|entry| entry.action == Action::SegmentFree)
        .map(|entry| entry.size / MIB)
        .collect();
    assert_eq!(freed, [30, 40]);
    allocator.check().unwrap();
}

#[test]
fn hopeless_requests_are_rejected_before_the_device_is_asked() {
    // Fraction in force, fraction in the settings; outcomes of 100 and of 60 MiB beside 200 MiB on 256 MiB.
    let cases = [
        ("", None, "no memory", "no memory"),
        ("throw_on_cudamalloc_oom:True", None, "rejected", "rejected"),
        ("throw_on_cudamalloc_oom:True", Some(0.9), "no memory", "no memory"),
        ("throw_on_cudamalloc_oom:True", Some(1.0), "rejected", "rejected"),
        ("throw_on_cudamalloc_oom:True,expandable_segments:True", None, "rejected", "rejected"),
    ];
    for (conf, fraction, first, second) in cases {
        let mut allocator = allocator(&TORCH_2_15, 256 * MIB, conf);
        if let Some(fraction) = fraction {
            allocator.set_memory_fraction(fraction).unwrap();
        }
        let kept = malloc(&mut allocator, 200 * MIB, 0).unwrap();
        let got = [100, 60].map(|mib| outcome(&malloc(&mut allocator, mib * MIB, 0)));
        assert_eq!(got, [first, second], "{conf} {fraction:?}");
        let (rejections, ooms) = (allocator.stats().num_oom_rejections, allocator.stats().num_ooms);
        assert_eq!((rejections, ooms), if first == "rejected" { (2, 0) } else { (0, 2) });
        // Cached memory serves requests as before.
        allocator.free(kept, NO_STACK).unwrap();
        assert_eq!(outcome(&malloc(&mut allocator, 190 * MIB, 0)), "served");
        allocator.check().unwrap();
    }
}

#[test]
fn expandable_segments_reserve_the_addresses_that_the_settings_say() {
    // Settings; the range of the first stream's segment in MiB, as seen from where the second one's begins.
    let cases = [
        ("", 1160),
        ("expandable_segments_reserve:0.5", 520),
        ("expandable_segments_reserve:1G", 1040),
        ("expandable_segments_reserve:.25g", 260),
        ("expandable_segments_reserve:40G", 1160),
        ("expandable_segments_reserve:0", 1160),
        ("expandable_segments_reserve:-1", 1160),
        ("expandable_segments_reserve:nan", 1160),
        ("expandable_segments_reserve:0x1p-1", 1160),
        ("expandable_segments_reserve:0.5,expandable_segments_reserve:none", 520),
        ("expandable_segments_reserve_by_class:[default:0.5]", 1160),
    ];
    for (conf, mib) in cases {
        let conf = format!("expandable_segments:True,{conf}");
        let mut allocator = allocator(&TORCH_2_15, 1 << 30, &conf);
        assert_eq!(malloc(&mut allocator, 3 * MIB, 0), Ok(Address(RANGE_BASE)));
        assert_eq!(malloc(&mut allocator, 3 * MIB, 1), Ok(Address(RANGE_BASE + mib * MIB)), "{conf}");
    }
}

#[test]
fn a_large_device_has_addresses_for_the_expandable_segments_of_many_streams() {
    // A range for each stream and size of block, of 1.125 times the device's 180 GB.
    let mut allocator = allocator(&TORCH_2_15, 180_000_000_000, "expandable_segments:True");
    for stream in 0..20 {
        for size in [MIB / 2, 3 * MIB] {
            assert!(malloc(&mut allocator, size, stream).is_ok(), "stream {stream}, {size} bytes");
        }
    }
    allocator.check().unwrap();
}

#[test]
fn a_request_beyond_the_reserve_fails_with_a_message_about_it() {
    let mut allocator = allocator(&TORCH_2_15, 1 << 30, "expandable_segments:True,expandable_segments_reserve:0.1");
    for (mib, short_reserve) in [(110, None), (200, Some(107_374_182)), (1200, None)] {
        match malloc(&mut allocator, mib * MIB, 0) {
            Ok(_) => assert_eq!(mib, 110),
            Err(AllocError::OutOfMemory(oom)) => assert_eq!(oom.short_reserve, short_reserve, "{mib}"),
            Err(error) => panic!("{mib}: {error}"),
        }
        allocator.check().unwrap();
    }
}

#[test]
fn a_pool_lives_as_long_as_there_is_memory_in_it() {
    use allocator::{Filter, PoolOptions};
    use trace::units::PoolId;
    let pool = PoolId(0, 1);
    for profile in Profile::ALL {
        let mut allocator = allocator(profile, 1 << 30, "expandable_segments:True");
        allocator.create_pool(pool, PoolOptions::default());
        allocator.begin_allocate_to_pool(pool, Filter::Thread(0)).unwrap();
        // A segment that grew twice: two of its pieces are released and something stays, so PyTorch counts to zero.
        let sizes = [18, 38, 18, 18, 18];
        let blocks: Vec<Address> = sizes.into_iter().map(|mib| malloc(&mut allocator, mib * MIB, 0).unwrap()).collect();
        allocator.end_allocate_to_pool(pool).unwrap();
        allocator.release_pool(pool).unwrap();
        allocator.release_pool(pool).unwrap();
        for address in blocks.iter().skip(1).step_by(2).chain(&blocks[..1]) {
            allocator.free(*address, NO_STACK).unwrap();
            allocator.empty_cache(NO_STACK).unwrap();
            allocator.check().unwrap();
        }
        for address in [blocks[2], blocks[4]] {
            allocator.free(address, NO_STACK).unwrap();
        }
        allocator.empty_cache(NO_STACK).unwrap();
        allocator.check().unwrap();
        assert_eq!((allocator.reserved(), allocator.driver().used()), (0, 0));
    }
}
