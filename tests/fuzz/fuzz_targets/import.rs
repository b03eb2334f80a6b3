//! Imports arbitrary bytes in pieces of any size. The outcome must not depend on the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shared::import::Importer;
use shared::limits::ImportLimits;

/// Returns the number of entries and findings of an import; `None` if it is refused.
fn outcome(bytes: &[u8], sizes: &[u8]) -> Option<(usize, usize, usize)> {
    // Low limits, so that the fuzzer reaches each. Only the limit of the compression ratio depends on the pieces.
    let limits = ImportLimits {
        plain_bytes: 4 << 20,
        ratio_grace_bytes: 4 << 20,
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

fuzz_target!(|data: &[u8]| {
    let Some((&count, rest)) = data.split_first() else { return };
    let (sizes, bytes) = rest.split_at(usize::from(count % 8).min(rest.len()));
    let one_by_one = outcome(bytes, &[0]);
    let whole = outcome(bytes, &[u8::MAX]);
    assert_eq!(one_by_one, whole);
    if !sizes.is_empty() {
        assert_eq!(outcome(bytes, sizes), whole);
    }
});
