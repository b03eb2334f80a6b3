//! The events and stacks of a job, for benchmarks.

use allocator::TraceEntry;
use format::{Device, Header};
use recorder::RecorderHandle;
use trace::event::Action;
use trace::frames::StackId;
use trace::units::{PoolId, Stream};

/// The number of stacks. Entries have stacks from 1 on.
const STACKS: u32 = 2_000;

/// Returns the header of a recording of one device.
pub(crate) fn header() -> Header {
    Header { devices: vec![Device { number: 0, ..Device::default() }], ..Header::default() }
}

/// Numbers the stacks, of 20 frames each, in a recorder.
pub(crate) fn name_stacks(recorder: &RecorderHandle) {
    for line in 0..STACKS {
        let frames: Vec<(String, u32)> = (0..20).map(|depth| (format!("layer_{depth}"), line + depth)).collect();
        let frames: Vec<_> = frames.iter().map(|(name, line)| (name.as_str(), "/home/me/model.py", *line)).collect();
        recorder.stacks().intern(&frames);
    }
}

/// Returns the events of training steps, with sizes and addresses as from an allocator.
pub(crate) fn entries(count: usize) -> Vec<TraceEntry> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let entry = |action, address, size, stack| TraceEntry {
        action,
        address,
        size,
        stream: Stream(0),
        pool: PoolId(0, 0),
        stack: StackId(stack),
    };
    let mut live: Vec<(u64, u64, u32)> = Vec::new();
    let mut entries = Vec::with_capacity(count + 2);
    while entries.len() < count {
        if live.len() < 1_000 || next(2) == 0 {
            let size = 1 << next(26);
            let size = size + next(size);
            let place = (0x7f00_0000_0000 + next(1 << 36) / 512 * 512, size, 1 + next(STACKS.into()) as u32);
            live.push(place);
            entries.push(entry(Action::Alloc, place.0, place.1, place.2));
        } else {
            let (address, size, stack) = live.swap_remove(next(live.len() as u64) as usize);
            entries.push(entry(Action::FreeRequested, address, size, stack));
            entries.push(entry(Action::FreeCompleted, address, size, stack));
        }
    }
    entries
}
