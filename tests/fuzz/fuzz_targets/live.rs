//! Running jobs: any bytes, and valid chunks with any contents, through a live session and the server's tracker. Each
//! query gets an answer or a sentence.
#![no_main]

use libfuzzer_sys::fuzz_target;
use format::{ChunkReader, Header, Writer, seal};
use trace::limits::{ImportLimits, LiveLimits};
use query::{Axis, Query, AllocationQuery, OverviewQuery, StateQuery};
use tracker::Tracker;
use session::LiveSession;

/// Low limits, so that the fuzzer reaches each of them.
fn limits() -> LiveLimits {
    let import = ImportLimits {
        items: 1 << 14,
        string_bytes: 1 << 10,
        strings_total_bytes: 1 << 16,
        stack_frames: 64,
        stacks_total_frames: 1 << 12,
        chunk_bytes: 1 << 16,
        lost_symbols: 1 << 10,
        ..ImportLimits::default()
    };
    LiveLimits { events: 64, marks: 16, pending_bytes: 1 << 14, bytes: 16 << 20, import }
}

/// Makes chunks from a kind, a length and that many bytes, repeatedly.
fn sealed(mut rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::new(&Header::default(), &mut bytes);
    while let [kind, low, high, after @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (payload, more) = after.split_at(length);
        bytes.extend(seal(*kind % 12, payload));
        rest = more;
    }
    bytes
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let bytes = if choice % 4 == 0 { rest.to_vec() } else { sealed(rest) };

    let mut live = LiveSession::new(limits());
    for piece in bytes.chunks(1 + usize::from(choice) * 8) {
        if live.push(piece).is_err() {
            break;
        }
        let Some(update) = live.refresh() else { continue };
        let devices = live.summary().devices.len();
        assert!(update.oom.is_none_or(|(device, _)| device < devices));
        for device in 0..devices.min(3) {
            let end = live.summary().devices[device].events;
            for query in [
                Query::State(StateQuery { position: end }),
                Query::State(StateQuery { position: end / 2 }),
                Query::Overview(OverviewQuery { axis: Axis::Time, columns: 16 }),
                Query::Overview(OverviewQuery { axis: Axis::Event, columns: 16 }),
                Query::Allocation(AllocationQuery { id: 0 }),
            ] {
                live.answer(device, &query);
            }
        }
    }

    let mut tracker = Tracker::new(limits().import);
    let mut chunks = ChunkReader::at_start(&limits().import);
    if chunks.push(&bytes, &mut |chunk| tracker.add(chunk)).is_ok() {
        for (_, device) in tracker.devices.iter() {
            let sums = device.now.sums();
            let reserved = device.now.segments().iter().fold(0_u64, |sum, segment| sum.saturating_add(segment.size));
            assert_eq!(sums.reserved, reserved);
        }
    }
});
