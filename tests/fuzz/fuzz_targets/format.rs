//! Recordings: arbitrary bytes, and arbitrary payloads of well-formed chunks. The outcome must not depend on the
//! pieces. Their previews are read as well, and what is accepted as an upload is written anew.
#![no_main]

use libfuzzer_sys::fuzz_target;
use format::{Header, Writer, prelude, seal};
use trace::limits::ImportLimits;
use format::recording::{Decoder, Transcriber};

/// Returns the number of events, segments and findings of a recording; `None` if it is refused.
fn outcome(bytes: &[u8], piece: usize) -> Option<(usize, usize, usize)> {
    // Low limits, so that the fuzzer reaches each.
    let limits = ImportLimits {
        items: 1 << 14,
        string_bytes: 1 << 10,
        strings_total_bytes: 1 << 16,
        stack_frames: 64,
        stacks_total_frames: 1 << 12,
        chunk_bytes: 1 << 16,
        lost_symbols: 1 << 10,
        ..ImportLimits::default()
    };
    let mut decoder = Decoder::new(limits);
    for piece in bytes.chunks(piece) {
        decoder.push(piece).ok()?;
    }
    let (snapshot, findings, _) = decoder.finish().ok()?;
    let events = snapshot.devices.iter().map(|device| device.events.len()).sum();
    let segments = snapshot.devices.iter().map(|device| device.segments.len()).sum();
    Some((events, segments, findings.len()))
}

/// Returns chunks with these payloads: a kind, a length, and so many bytes, repeatedly.
fn sealed(mut rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::new(&Header::default(), &mut bytes);
    while let [kind, low, high, after @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (payload, more) = after.split_at(length);
        bytes.extend(seal(*kind, payload));
        rest = more;
    }
    bytes
}

/// Reads the previews of a recording, and asks all that they answer.
fn preview(bytes: &[u8]) {
    let Some(mut preview) = session::preview::read(bytes) else { return };
    let missing: Vec<_> = preview.missing().collect();
    for range in missing {
        let (from, to) = (usize::try_from(range.start), usize::try_from(range.end));
        if let (Ok(from), Ok(to)) = (from, to) {
            preview.add(&range, bytes.get(from..to).unwrap_or_default());
        }
    }
    assert_eq!(preview.missing().count(), 0);
    preview.headline();
    for (device, query, answer) in preview.answers() {
        assert_eq!(preview.wanted(device, query).is_some(), false, "{query:?} {answer:?}");
        assert!(preview.answer(device, query).is_some());
    }
}

/// Writes an upload anew; `None` if it is refused.
fn transcribed(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut transcriber, mut out) = (Transcriber::new(ImportLimits::default()), Vec::new());
    for piece in bytes.chunks(1 << 10) {
        transcriber.push(piece, &mut out).ok()?;
    }
    transcriber.finish(&mut out).ok()?;
    Some(out)
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let bytes = match choice % 3 {
        0 => rest.to_vec(),
        1 => [&prelude()[..], rest].concat(),
        _ => sealed(rest),
    };
    preview(&bytes);
    if let Some(new) = transcribed(&bytes) {
        assert!(transcribed(&new).as_ref() == Some(&new), "what was written anew is not its own form");
    }
    let whole = outcome(&bytes, usize::MAX);
    assert_eq!(outcome(&bytes, 1), whole);
    assert_eq!(outcome(&bytes, 1 + usize::from(choice)), whole);
});
