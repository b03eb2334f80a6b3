//! Edits of small streams of requests, and properties of any.

use std::collections::BTreeMap;

use allocator::{AllocatorConfig, Profile};
use proptest::prelude::*;
use replay::Replay;
use trace::units::Address;

use super::*;
use crate::Terms;
use EditAct::{Again, Copy, Free, FreeCopy, Keep};

const MIB: u64 = 1 << 20;

fn ample() -> Terms {
    Terms::ample(Profile::ALL[0], AllocatorConfig::default())
}

fn requests(lines: &str) -> Requests {
    let mut snapshot = trace::testing::snapshot(lines);
    let trace = snapshot.devices.remove(0);
    let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
    Requests::of(&trace, (&snapshot.symbols, &snapshot.tags), &replay, &snapshot.settings)
}

/// The most bytes in live allocations, and in segments, in MiB.
fn peaks(requests: &Requests) -> (u64, u64) {
    let outcome = requests.run(&ample()).unwrap();
    (outcome.peak_allocated / MIB, outcome.peak_reserved / MIB)
}

fn edits(edits: &[(u32, EditAct)]) -> Vec<Edit> {
    edits.iter().map(|&(position, act)| Edit { position, act }).collect()
}

/// Three tensors of 20, 60 and 40 MiB, each made by two events, and freed by two in the opposite order.
fn three() -> Requests {
    let size = |mib: u64| mib * MIB;
    let begin: String = [(0x1000_0000_u64, 20), (0x2000_0000, 60), (0x3000_0000, 40)]
        .iter()
        .map(|&(at, mib)| format!("segment_alloc {at:#x} {0}\nalloc {at:#x} {0} f@m.py:1\n", size(mib)))
        .collect();
    requests(&(begin + "free 0x30000000\nfree 0x20000000\nfree 0x10000000"))
}

#[test]
fn what_is_freed_earlier_or_asked_for_again_is_counted_to_the_byte() {
    type Case<'a> = (&'a [(u32, EditAct)], (u64, u64));
    let cases: [Case<'_>; 8] = [
        (&[], (120, 120)),
        // The third takes the memory of the second.
        (&[(4, Free(1))], (80, 80)),
        // So does the second, once the third is freed. Before that, it needs memory of its own.
        (&[(4, Free(1)), (8, Again(1))], (80, 80)),
        (&[(4, Free(1)), (6, Again(1))], (120, 140)),
        // After the recording freed it, nothing comes back.
        (&[(4, Free(1)), (99, Again(1))], (80, 80)),
        // A copy is there beside it, until it is freed.
        (&[(6, Copy(2))], (160, 160)),
        (&[(6, Copy(2)), (6, FreeCopy(2)), (6, Copy(2))], (160, 160)),
        // The third is kept while the second, which is freed, has a copy.
        (&[(6, Keep(2)), (10, Copy(1)), (12, Free(2)), (12, FreeCopy(1))], (120, 120)),
    ];
    for (list, want) in cases {
        assert_eq!(peaks(&three().edited(&edits(list))), want, "{list:?}");
    }
}

#[test]
fn edits_that_are_not_possible_change_nothing() {
    let whole = three();
    for list in [&[(0, Free(0)), (0, Again(0)), (1, FreeCopy(1)), (3, Again(0))][..], &[(4, Free(99)), (4, Copy(99))]] {
        assert_eq!(whole.edited(&edits(list)).steps, whole.steps, "{list:?}");
    }
}

/// Neither what was cached at the start nor what an edit frees there counts, and it needs no room.
#[test]
fn what_was_cached_at_the_start_is_released() {
    // The first event is a request. Before it, one segment was in use, and one was cached.
    let mut snapshot =
        trace::testing::snapshot("segment_alloc 0x10000000 41943040\nalloc 0x10000000 41943040 f@m.py:1");
    let trace = &mut snapshot.devices[0];
    let mut used = trace.segments[0].clone();
    used.address = Address(0x2000_0000);
    used.blocks[0].address = used.address;
    let cached = trace::Segment { address: Address(0x3000_0000), blocks: Vec::new(), ..used.clone() };
    trace.segments.extend([used, cached]);
    let trace = snapshot.devices.remove(0);
    let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
    let whole = Requests::of(&trace, (&snapshot.symbols, &snapshot.tags), &replay, &snapshot.settings);
    let fails = |requests: &Requests, room: u64| requests.run(&ample().on(room * MIB)).unwrap().fails();
    assert_eq!((whole.reserved_at_start() / MIB, peaks(&whole)), (80, (80, 80)));
    let released = whole.without_cache_at_start();
    assert_eq!((released.run(&ample()).unwrap().device_frees, peaks(&released)), (1, (80, 80)));
    // A request is served from new memory: there is nothing cached.
    let offloaded = released.edited(&edits(&[(0, Free(replay.active_at(0)[0]))]));
    assert_eq!((offloaded.run(&ample()).unwrap().device_frees, peaks(&offloaded)), (2, (40, 40)));
    assert_eq!([79, 80].map(|room| fails(&released, room)), [true, false]);
    assert_eq!([39, 40, 79].map(|room| fails(&offloaded, room)), [true, false, false]);
    assert!(fails(&whole, 79), "it began with more");
    let kept = released.run(&ample().on(39 * MIB)).unwrap();
    assert_eq!((kept.stopped_at, kept.stopped_why), (Some(0), Some(query::whatif::Why::AtStart)));
}

/// Asserts that nothing is freed that isn't live, and returns the bytes that stay live.
fn walk(requests: &Requests) -> u64 {
    let mut live: BTreeMap<u32, u64> = BTreeMap::new();
    let size = |number: u32| requests.asked[number as usize].size;
    live.extend(requests.live.iter().map(|live| (live.number, size(live.number))));
    for step in &requests.steps {
        match step.act {
            Act::Malloc(number) => assert_eq!(live.insert(number, size(number)), None),
            Act::Free(number) | Act::FreeLater(number) => assert!(live.remove(&number).is_some()),
            _ => {}
        }
    }
    live.values().sum()
}

proptest! {
    #[test]
    fn an_edited_stream_is_balanced(
        list in proptest::collection::vec((0_u32..14, 0_u32..4, 0_u8..5), 0..40),
    ) {
        let act = |of: u32, kind: u8| match kind {
            0 => Free(of),
            1 => Again(of),
            2 => Keep(of),
            3 => Copy(of),
            _ => FreeCopy(of),
        };
        let list: Vec<Edit> =
            list.into_iter().map(|(position, of, kind)| Edit { position, act: act(of, kind) }).collect();
        let edited = three().edited(&list);
        let left = walk(&edited);
        let needs_care = |edit: &Edit| matches!(edit.act, Keep(_) | Copy(_));
        prop_assert!(left == 0 || list.iter().any(needs_care), "{left} bytes stay");
        prop_assert!(edited.run(&ample()).is_ok());
    }
}
