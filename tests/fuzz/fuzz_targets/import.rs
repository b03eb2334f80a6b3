//! Imports arbitrary bytes in pieces of any size, as they are and compressed. The outcome must not depend on the pieces, and
//! of compressed bytes whose checksum is wrong nothing may be read without a word.
#![no_main]

use libfuzzer_sys::fuzz_target;
use format::import::Importer;
use trace::limits::ImportLimits;

/// Returns the number of entries and findings of an import; `None` if it is refused.
fn outcome(bytes: &[u8], sizes: &[u8]) -> Option<(usize, usize, usize)> {
    // Low limits, so that the fuzzer reaches each. Only those of compression, in bytes and in memory, depend on the pieces.
    let limits = ImportLimits {
        plain_bytes: 4 << 20,
        ratio_grace_bytes: 4 << 20,
        memory_grace_bytes: u64::MAX,
        string_bytes: 1 << 10,
        strings_total_bytes: 1 << 16,
        items: 1 << 14,
        stack_items: 1 << 12,
        depth: 50,
        kept_values: 1 << 14,
        stack_frames: 64,
        stacks_total_frames: 1 << 12,
        remembered_bytes: 1 << 10,
        ..ImportLimits::default()
    };
    let mut importer = Importer::new(limits);
    let mut rest = bytes;
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((usize::from(size) + 1).min(rest.len()));
        importer.push(piece).ok()?;
        rest = after;
    }
    let imported = importer.finish().ok()?;
    let entries = imported.snapshot.devices.iter().map(|device| device.events.len()).sum();
    Some((entries, imported.findings.len(), imported.snapshot.symbols.stack_count()))
}

/// Returns bytes as a gzip member of stored blocks, with a checksum that is off by so much.
fn gzip(bytes: &[u8], off: u32) -> Vec<u8> {
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let mut blocks = bytes.chunks(1 << 12).peekable();
    if bytes.is_empty() {
        packed.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        packed.push(u8::from(blocks.peek().is_none()));
        packed.extend(length.to_le_bytes());
        packed.extend((!length).to_le_bytes());
        packed.extend(block);
    }
    packed.extend((crc32fast::hash(bytes) ^ off).to_le_bytes());
    packed.extend((bytes.len() as u32).to_le_bytes());
    packed
}

/// Checks that a member is read like what it holds, and that a wrong checksum is said or an error.
fn check_packed(bytes: &[u8], off: u8) {
    let whole = outcome(&gzip(bytes, 0), &[u8::MAX]);
    let damaged = outcome(&gzip(bytes, 1 << (off % 32)), &[off]);
    match (whole, damaged) {
        (_, None) => {}
        (Some((entries, findings, stacks)), Some(damaged)) => {
            assert_eq!((damaged.0, damaged.2), (entries, stacks));
            // What follows the end of the snapshot is no second finding.
            assert!(damaged.1 >= findings.max(1));
        }
        (None, Some(damaged)) => panic!("only the damaged file is read: {damaged:?}"),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&count, rest)) = data.split_first() else { return };
    let (sizes, bytes) = rest.split_at(usize::from(count % 8).min(rest.len()));
    check_packed(bytes, count);
    let one_by_one = outcome(bytes, &[0]);
    let whole = outcome(bytes, &[u8::MAX]);
    assert_eq!(one_by_one, whole);
    if !sizes.is_empty() {
        assert_eq!(outcome(bytes, sizes), whole);
    }
});
