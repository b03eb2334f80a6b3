//! Invalid calls: the error says what is wrong, and nothing is changed.

use allocator::sim::{Placement, SimDriver};
use allocator::{AllocatorConfig, DeviceAllocator, Filter, FreeError, PoolOptions, Profile, Request};
use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};

type Allocator = DeviceAllocator<SimDriver, ()>;

const NO_STACK: StackId = StackId(0);
const POOL: PoolId = PoolId(0, 1);

fn free(allocator: &mut Allocator, address: u64) -> String {
    allocator.free(Address(address), NO_STACK).unwrap_err().to_string()
}

/// Creates two live blocks of 512 and 1024 bytes, a freed one between them, a pool that is not open, and one that is.
fn allocator(profile: &'static Profile) -> (Allocator, [u64; 3]) {
    let driver = SimDriver::new(1 << 30, Placement::FirstFit);
    let mut allocator = DeviceAllocator::new(driver, (), profile, AllocatorConfig::default());
    let blocks = [512, 2048, 1024].map(|size| {
        let request = Request { size, stream: Stream(1), ..Request::default() };
        allocator.malloc(request).unwrap().0
    });
    allocator.free(Address(blocks[1]), NO_STACK).unwrap();
    allocator.create_pool(POOL, PoolOptions::default());
    allocator.begin_allocate_to_pool(PoolId(0, 2), Filter::Thread(9)).unwrap();
    (allocator, blocks)
}

#[test]
fn invalid_calls_are_errors_and_change_nothing() {
    type Call = fn(&mut Allocator, [u64; 3]) -> String;
    let cases: [(Call, &str); 13] = [
        (|a, [_, freed, _]| free(a, freed), "0x7c0000000200 is free already"),
        (|a, [live, ..]| free(a, live + 8), "0x7c0000000008 is not the address of an allocation"),
        (|a, _| free(a, 512), "0x200 is not the address of an allocation"),
        (|a, _| free(a, u64::MAX), "0xffffffffffffffff is not the address of an allocation"),
        (
            |a, [live, ..]| {
                let error = a.free_on(Address(live), Stream(2), NO_STACK).unwrap_err();
                assert!(matches!(error, FreeError::Misuse(_)));
                error.to_string()
            },
            "0x7c0000000000 was allocated on stream 1, not on stream 2",
        ),
        (
            |a, [_, freed, _]| a.record_stream(Address(freed), Stream(2)).unwrap_err().to_string(),
            "0x7c0000000200 is free already",
        ),
        (
            |a, _| a.record_stream(Address(7), Stream(2)).unwrap_err().to_string(),
            "0x7 is not the address of an allocation",
        ),
        (
            |a, _| a.begin_allocate_to_pool(PoolId(0, 2), Filter::Thread(1)).unwrap_err().to_string(),
            "allocations go to pool (0, 2) already",
        ),
        (|a, _| a.end_allocate_to_pool(POOL).unwrap_err().to_string(), "allocations do not go to pool (0, 1)"),
        (|a, _| a.release_pool(PoolId(0, 3)).unwrap_err().to_string(), "there is no pool (0, 3)"),
        (
            |a, _| a.set_pool_options(PoolId(3, 0), PoolOptions::default()).unwrap_err().to_string(),
            "there is no pool (3, 0)",
        ),
        (|a, _| a.set_memory_fraction(1.5).unwrap_err().to_string(), "a memory fraction is between 0 and 1, not 1.5"),
        (
            |a, _| a.set_memory_fraction(f64::NAN).unwrap_err().to_string(),
            "a memory fraction is between 0 and 1, not NaN",
        ),
    ];
    for profile in Profile::ALL {
        for (call, want) in cases {
            let (mut allocator, blocks) = allocator(profile);
            let state = |a: &Allocator| (a.stats(), a.segments(), a.limit(), a.pool_use_count(POOL), a.driver().used());
            let before = state(&allocator);
            assert_eq!(call(&mut allocator, blocks), want);
            assert_eq!(state(&allocator), before, "{want}");
            allocator.check().unwrap();
        }
    }
}
