//! Pickles, with and without recognition of repeated frame lists: it must never change what is read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use format::import::Importer;
use trace::limits::ImportLimits;
use trace::Event;

/// Returns all entries of a snapshot; `None` if it is refused.
fn entries(bytes: &[u8], remembered_bytes: usize) -> Option<Vec<Event>> {
    let limits = ImportLimits { remembered_bytes, items: 1 << 16, stack_items: 1 << 14, ..ImportLimits::default() };
    let mut importer = Importer::new(limits);
    importer.push(b"\x80\x04").ok()?;
    importer.push(bytes).ok()?;
    let snapshot = importer.finish().ok()?.snapshot;
    Some(snapshot.devices.iter().flat_map(|device| device.events.iter()).collect())
}

fuzz_target!(|data: &[u8]| {
    assert_eq!(entries(data, 1 << 12), entries(data, 0));
});
