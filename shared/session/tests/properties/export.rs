//! Exports survive a round trip: every fixture, and cases that no fixture covers.

use crate::common::{describe, fixtures, import};
use allocator::sim::{Placement, SimDriver};
use allocator::{AllocatorConfig, DeviceAllocator, Request, TORCH_2_6, TORCH_2_11, TraceEntry};
use format::export;
use trace::event::Action;
use trace::frames::{Frame, StackId};
use trace::units::{Address, PoolId, Stream};
use trace::{Annotation, Block, BlockState, DeviceTrace, Event, Segment, Snapshot, Stage, Tag};

fn written(snapshot: &Snapshot) -> Vec<u8> {
    let mut bytes = Vec::new();
    export::pickle(snapshot, &mut |piece| bytes.extend_from_slice(piece));
    bytes
}

/// Exports a snapshot, imports it again and compares the two.
fn check(snapshot: Snapshot) {
    let mut read = import(&written(&snapshot)).unwrap();
    read.findings.clear();
    let told = describe(&read);
    read.snapshot = snapshot;
    assert_eq!(told, describe(&read));
}

#[test]
fn every_fixture_survives() {
    for fixture in fixtures() {
        let first = import(&fixture.bytes).unwrap();
        let bytes = written(&first.snapshot);
        let mut again = import(&bytes).unwrap_or_else(|error| panic!("{}: {error}", fixture.name));
        assert!(again.findings.iter().all(|f| f.code.name() != "malformed"), "{}: {:?}", fixture.name, again.findings);
        again.findings = first.findings.clone();
        assert_eq!(describe(&again), describe(&first), "{}", fixture.name);
        assert_eq!(written(&again.snapshot), bytes, "{}", fixture.name);
    }
}

#[test]
fn extremes_survive() {
    let mut snapshot = Snapshot::default();
    let name = snapshot.symbols.intern("forward_with_ünïcode".repeat(40).as_bytes());
    let filename = snapshot.symbols.intern(b"model.py");
    let frame = snapshot.symbols.intern_frame(Frame { name, filename, line: u32::MAX });
    let stack = snapshot.symbols.intern_stack(&[frame, frame]);
    let other = Tag { other_action: snapshot.symbols.intern(b"frobnicate"), ..Tag::default() };
    let far = Tag { stream: Stream(i64::MIN), pool: Some(PoolId(u64::MAX >> 1, 3)), ..Tag::default() };
    let mut trace = DeviceTrace { device: 3, ..DeviceTrace::default() };
    let kinds = Action::ALL.into_iter().map(|action| (action, if action == Action::Other { other } else { far }));
    // More entries than one batch, so that a list is filled in several steps.
    for (i, (action, tag)) in kinds.cycle().take(2_500).enumerate() {
        let tag = snapshot.tags.intern(tag);
        let address = Address([0, 255, 256, 65_536, 1 << 31, u64::MAX][i % 6]);
        let size = [1, 255, 65_535, 1 << 40, i64::MAX as u64, u64::MAX][i % 6];
        let stack = if i % 3 == 0 { StackId(0) } else { stack };
        trace.events.push(Event { action, address, size, time_us: i as i64 % 7 - 3, tag, stack });
    }
    let states = [BlockState::Allocated, BlockState::Pending, BlockState::Inactive];
    let blocks = (0..3).zip(states).map(|(i, state)| Block {
        address: Address((1 << 63) + (i << 20)),
        size: 1 << 20,
        requested: 7,
        state,
        stack,
    });
    trace.segments.push(Segment {
        address: Address(1 << 63),
        size: 3 << 20,
        stream: Stream(-1),
        is_small: false,
        is_expandable: true,
        pool: PoolId(0, 9),
        stack: StackId(0),
        blocks: blocks.collect(),
    });
    let stages = [Stage::Start, Stage::Instant, Stage::End];
    trace.annotations.extend(stages.map(|stage| Annotation { name, stage, time_us: -5 }));
    snapshot.devices.push(trace);
    let odd =
        [("PYTORCH_CUDA_ALLOC_CONF", "7"), ("a", "007"), ("b", "infinity"), ("c", "None"), ("d", "1e3"), ("e", "0")];
    snapshot.settings.as_written = odd.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    snapshot.settings.conf = "7".to_owned();
    check(snapshot);
}

#[test]
fn a_simulated_allocator_is_a_snapshot() {
    for (profile, names) in [(&TORCH_2_6, 8), (&TORCH_2_11, 9)] {
        let device = SimDriver::new(1 << 30, Placement::FirstFit);
        let mut allocator = DeviceAllocator::new(device, Vec::<TraceEntry>::new(), profile, AllocatorConfig::default());
        for i in 1..40 {
            let size = i * 700_000;
            let got = allocator.malloc(Request { size, ..Request::default() }).unwrap();
            if i % 3 == 0 {
                allocator.free(got, StackId(0)).unwrap();
            }
        }
        let mut snapshot = Snapshot { settings: export::settings(allocator.config(), profile), ..Snapshot::default() };
        assert_eq!(snapshot.settings.as_written.len(), names);
        let segments = allocator.segments();
        snapshot.devices.push(DeviceTrace { segments, ..DeviceTrace::default() });
        check(snapshot);
    }
}

#[test]
fn stacks_are_written_once() {
    let mut snapshot = Snapshot::default();
    let text = snapshot.symbols.intern(&[b'x'; 1_000]);
    let frame = snapshot.symbols.intern_frame(Frame { name: text, filename: text, line: 1 });
    let mut trace = DeviceTrace::default();
    let tag = snapshot.tags.intern(Tag::default());
    for _ in 0..1_000 {
        let stack = snapshot.symbols.intern_stack(&[frame]);
        trace.events.push(Event { action: Action::Alloc, address: Address(1), size: 1, time_us: 1, tag, stack });
    }
    snapshot.devices.push(trace);
    assert!(written(&snapshot).len() < 60_000);
}
