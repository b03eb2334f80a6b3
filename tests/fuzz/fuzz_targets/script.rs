//! Random operations on the allocator of any release, on a device of any size. Its tables have to agree after each
//! operation, and nothing may be left after everything is freed.
#![no_main]

#[path = "../../../shared/allocator/tests/allocator/ops.rs"]
mod ops;
#[path = "../../../shared/allocator/tests/allocator/world.rs"]
mod world;

use libfuzzer_sys::fuzz_target;
use allocator::Profile;

use world::World;

/// Number of operations in a run. The tables are checked after each, and longer runs show nothing new.
const OPERATIONS: usize = 512;

fuzz_target!(|data: &[u8]| {
    let Some((&[release, capacity], rest)) = data.split_first_chunk() else { return };
    let profile = Profile::ALL[usize::from(release) % Profile::ALL.len()];
    let mut world = World::new(profile, u64::from(capacity) << 21);
    for op in ops::operations(rest).take(OPERATIONS) {
        world.step(op);
        world.check();
    }
    world.end();
});
