//! The wire: any bytes, and any bodies of frames that are whole. Frames or an error, and the same whatever the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shared::limits::WireLimits;
use shared::wire::{Decoder, WireError};

/// The frames of a stream, each as bytes again, and how it ended.
fn outcome(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<WireError>) {
    // Low, so that the fuzzer finds the way to it.
    let limits = WireLimits { frame_bytes: 1 << 12, ..WireLimits::default() };
    let mut decoder = Decoder::new(&limits);
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece) {
        if let Err(error) = decoder.push(piece, &mut |frame| frames.push(frame.to_bytes())) {
            return (frames, Some(error));
        }
        assert!(decoder.unfinished() <= limits.frame_bytes + 8 + piece.len());
    }
    (frames, None)
}

/// Frames with these bodies: a kind, a length, and so many bytes, over and over.
fn framed(mut rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let [kind, low, high, after @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (map, more) = after.split_at(length);
        let body = [&[0x92, kind % 16], map].concat();
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(crc32fast::hash(&body).to_le_bytes());
        bytes.extend(body);
        rest = more;
    }
    bytes
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let bytes = if choice % 4 == 0 { rest.to_vec() } else { framed(rest) };
    let whole = outcome(&bytes, usize::MAX);
    assert_eq!(outcome(&bytes, 1), whole);
    assert_eq!(outcome(&bytes, 1 + usize::from(choice)), whole);
    // What was read is written as it is read.
    let again = whole.0.concat();
    assert_eq!(outcome(&again, usize::MAX), (whole.0, None));
});
