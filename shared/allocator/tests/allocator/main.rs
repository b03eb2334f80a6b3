//! The allocator under random operations: its invariants after each, and the addresses of a naive allocator.

mod capture;
mod forward;
mod limits;
mod misuse;
mod naive;
mod ops;
mod settings;
mod world;

use allocator::sim::{Placement, SimDriver};
use allocator::{AllocatorConfig, DeviceAllocator, Profile, Request};
use proptest::prelude::*;
use trace::frames::StackId;
use trace::units::{Address, Stream};

use naive::Naive;
use world::World;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_tables_agree_after_every_operation(
        release in 0..Profile::ALL.len(),
        capacity in prop::sample::select(vec![0_u64, 20 << 20, 64 << 20, 200 << 20, 4 << 30]),
        bytes in prop::collection::vec(any::<u8>(), 0..1200),
    ) {
        let mut world = World::new(Profile::ALL[release], capacity);
        for op in ops::operations(&bytes) {
            world.step(op);
            world.check();
        }
        world.end();
    }

    #[test]
    fn addresses_are_those_of_a_naive_allocator(
        release in 0..Profile::ALL.len(),
        capacity in prop::sample::select(vec![30_u64 << 20, 64 << 20, 200 << 20, 4 << 30]),
        steps in prop::collection::vec((0..24_u8, 0..14_u8, any::<u8>(), 0..3_i64), 0..400),
    ) {
        let profile = Profile::ALL[release];
        let driver = SimDriver::new(capacity, Placement::FirstFit);
        let mut allocator = DeviceAllocator::new(driver, (), profile, AllocatorConfig::default());
        let mut naive = Naive::new(profile, capacity);
        let mut live: Vec<Address> = Vec::new();
        for (kind, class, value, stream) in steps {
            match kind {
                0..13 => {
                    let size = ops::size(class, value).max(1);
                    let request = Request { size, stream: Stream(stream), ..Request::default() };
                    let address = allocator.malloc(request).ok();
                    prop_assert_eq!(address.map(|address| address.0), naive.malloc(size, stream));
                    live.extend(address);
                }
                13..23 if !live.is_empty() => {
                    let address = live.swap_remove(usize::from(value) % live.len());
                    allocator.free(address, StackId(0)).unwrap();
                    naive.free(address.0);
                }
                23 => {
                    allocator.empty_cache(StackId(0)).unwrap();
                    naive.empty_cache();
                }
                _ => {}
            }
            prop_assert_eq!(allocator.reserved(), naive.reserved());
        }
    }
}
