//! A server's tracker, fed chunk by chunk with payloads of any contents, which a few bytes of input repeat many times.
//! Whatever it reads, what it counts stays below its bound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use format::{ChunkReader, Header, Writer, encode_segments, seal};
use trace::limits::ImportLimits;
use tracker::Tracker;

/// How far the count may exceed the bound: what 256 events between two checks add.
const SLACK_BYTES: usize = 256 << 10;

/// Low limits, so that the fuzzer reaches each of them.
fn limits() -> ImportLimits {
    ImportLimits {
        chunk_bytes: 1 << 18,
        lost_symbols: 1 << 10,
        devices: 16,
        tags: 1 << 12,
        tracked_bytes: 1 << 20,
        ..ImportLimits::default()
    }
}

/// Returns the chunks of a recording: for each a kind, how often its column repeats, a length, and so many bytes.
fn chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::new(&Header::default(), &mut bytes);
    while let [kind, times, length, after @ ..] = rest {
        let (payload, more) = after.split_at(usize::from(*length).min(after.len()));
        let payload = match kind / 16 {
            // As it is.
            0 => payload.to_vec(),
            // One key, whose column is repeated.
            key => column(usize::from(key), payload, 1 << (times % 16)),
        };
        bytes.extend(seal(kind % 16, &payload));
        rest = more;
    }
    bytes
}

/// Returns a map with the numbers and the columns of a kind, all of them the same bytes repeated.
fn column(key: usize, bytes: &[u8], times: usize) -> Vec<u8> {
    const COLUMNS: [&[&str]; 3] = [
        &["action", "address", "size", "time", "tag", "stack"],
        &["segments", "blocks"],
        &["string_lengths", "strings", "frames", "stacks", "tags"],
    ];
    const NUMBERS: [&str; 8] = ["device", "at", "of", "from", "first", "tags_from", "start_us", "to"];
    let columns = COLUMNS[key % COLUMNS.len()];
    let (numbers, bytes) = bytes.split_at(bytes.len().min(NUMBERS.len()));
    let mut map = vec![0x80 | (columns.len() + numbers.len()) as u8];
    for (name, number) in NUMBERS.iter().zip(numbers) {
        map.push(0xa0 | name.len() as u8);
        map.extend(name.as_bytes());
        // The high half of the byte shifts the low half, so that numbers of every size occur.
        map.push(0xcf);
        map.extend((u64::from(number & 15) << (number / 16 * 4)).to_be_bytes());
    }
    for (i, name) in columns.iter().enumerate() {
        let bytes = bytes.get(i..).unwrap_or(&[]).repeat(times);
        let bytes = &bytes[..bytes.len().min(1 << 15)];
        map.push(0xa0 | name.len() as u8);
        map.extend(name.as_bytes());
        map.push(0xc6);
        map.extend((bytes.len() as u32).to_be_bytes());
        map.extend(bytes);
    }
    map
}

fuzz_target!(|data: &[u8]| {
    let limits = limits();
    let mut tracker = Tracker::new(limits);
    let mut reader = ChunkReader::at_start(&limits);
    let read = reader.push(&chunks(data), &mut |chunk| {
        let before = tracker.overflow().is_some();
        tracker.add(chunk);
        assert!(tracker.bytes() <= limits.tracked_bytes + SLACK_BYTES, "{} bytes", tracker.bytes());
        assert!(!before || tracker.overflow().is_some(), "an overflow is final");
    });
    assert!(read.is_ok());
    assert!(tracker.devices.iter().count() <= limits.devices);
    // What it holds can be read again by a tracker with the same bound, unless it gave up.
    let mut again = Tracker::new(limits);
    let mut head = Vec::new();
    Writer::new(&Header::default(), &mut head);
    for (number, device) in tracker.devices.iter() {
        let Some(next) = device.next() else { continue };
        for payload in encode_segments(number, next, &device.now.segments()) {
            head.extend(seal(format::Kind::Segments as u8, &payload));
        }
    }
    assert!(ChunkReader::at_start(&limits).push(&head, &mut |chunk| again.add(chunk)).is_ok());
    if tracker.overflow().is_none() && tracker.bytes() <= limits.tracked_bytes / 2 {
        assert_eq!(again.overflow(), None);
    }
});
