//! The examples that fragmentation is taught with, and their known numbers.

use allocator::Profile;
use analysis::measures::Measures;
use trace::event::Action;

use super::followed;
use super::simulated::Simulated;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn device(capacity: u64) -> Simulated {
    let newest = Profile::ALL.len() - 1;
    Simulated::new(Profile::ALL[newest], capacity, "")
}

/// Frees every other of some allocations, beginning with the first.
fn free_every_other(device: &mut Simulated, addresses: &[u64]) {
    addresses.iter().step_by(2).for_each(|&address| device.free(address));
}

/// Returns the measures at the end.
fn end(device: Simulated) -> Measures {
    let (trace, replay, _) = device.end();
    followed(&trace, &replay, replay.positions())[0]
}

#[test]
fn four_megabytes_fail_with_six_free_between_six_blocks_of_two() {
    let mut device = device(12 * MIB);
    // One segment for all six blocks.
    let whole = device.malloc(12 * MIB).unwrap();
    device.free(whole);
    let blocks: Vec<u64> = (0..6).map(|_| device.malloc(2 * MIB).unwrap()).collect();
    free_every_other(&mut device, &blocks);
    assert_eq!(device.malloc(4 * MIB), None);
    assert_eq!(device.count(Action::Oom), 1);
    let now = end(device);
    assert_eq!((now.reserved, now.allocated, now.inactive_split), (12 * MIB, 6 * MIB, 6 * MIB));
    assert_eq!((now.cached_whole, now.gaps, now.largest_gap()), (0, 3, 2 * MIB));
    assert_eq!((now.largest_servable_small(), now.largest_servable_large()), (0, 2 * MIB));
    assert_eq!(now.unusable_share(), 1.0 - 2.0 / 6.0);
    assert_eq!(now.fragmentation_index(), 1.0 - 3.0 * 4.0 / 36.0);
}

#[test]
fn three_gigabytes_go_to_the_driver_with_two_free_between_one_and_one() {
    let mut device = device(8 * GIB);
    let [_, middle, _] = [1, 2, 1].map(|size| device.malloc(size * GIB).unwrap());
    device.free(middle);
    device.malloc(3 * GIB).unwrap();
    assert_eq!((device.count(Action::SegmentAlloc), device.count(Action::SegmentFree)), (4, 0));
    let now = end(device);
    assert_eq!((now.reserved, now.allocated), (7 * GIB, 5 * GIB));
    // A whole segment is free: the allocator could give it back.
    assert_eq!((now.cached_whole, now.inactive_split), (2 * GIB, 0));
    assert_eq!((now.largest_servable(), now.unusable_share()), (2 * GIB, 0.0));
}

#[test]
fn a_hundred_megabytes_need_the_driver_with_two_hundred_free() {
    let mut device = device(GIB);
    let tensors: Vec<u64> = (0..100).map(|_| device.malloc(4 * MIB).unwrap()).collect();
    // Five of them in each segment.
    assert_eq!(device.count(Action::SegmentAlloc), 20);
    free_every_other(&mut device, &tensors);
    let (trace, replay, _) = {
        device.malloc(100 * MIB).unwrap();
        assert_eq!(device.count(Action::SegmentAlloc), 21);
        device.end()
    };
    // Before the last request, which is a segment and an allocation.
    let before = followed(&trace, &replay, replay.positions() - 2);
    let (before, after) = (before[0], before[2]);
    assert_eq!((before.reserved, before.allocated, before.inactive_split), (400 * MIB, 200 * MIB, 200 * MIB));
    assert_eq!((before.gaps, before.largest_gap()), (50, 4 * MIB));
    assert_eq!(before.unusable_share(), 1.0 - 4.0 / 200.0);
    assert_eq!(before.fragmentation_index(), 1.0 - 50.0 * 16.0 / 40_000.0);
    assert_eq!((after.reserved, after.allocated, after.inactive_split), (500 * MIB, 300 * MIB, 200 * MIB));
}

#[test]
fn eighteen_gigabytes_of_cache_beside_a_model_of_thirty_eight_come_back_in_a_retry() {
    let mut device = device(60 * GIB);
    let model: Vec<u64> = (0..38).filter_map(|_| device.malloc(GIB)).collect();
    assert_eq!(model.len(), 38);
    let temporary: Vec<u64> = (0..9).map(|_| device.malloc(2 * GIB).unwrap()).collect();
    temporary.into_iter().for_each(|address| device.free(address));
    device.malloc(10 * GIB).unwrap();
    assert_eq!((device.count(Action::SegmentFree), device.count(Action::Oom)), (9, 0));
    let (trace, replay, _) = device.end();
    // Nine releases, a segment and an allocation.
    let last = followed(&trace, &replay, replay.positions() - 11);
    let (before, after) = (last[0], last[11]);
    assert_eq!((before.reserved, before.allocated), (56 * GIB, 38 * GIB));
    assert_eq!((before.cached_whole, before.inactive_split), (18 * GIB, 0));
    assert_eq!((before.largest_servable(), before.unusable_share()), (2 * GIB, 1.0 - 2.0 / 18.0));
    assert_eq!((after.reserved, after.allocated, after.cached()), (48 * GIB, 48 * GIB, 0));
}
