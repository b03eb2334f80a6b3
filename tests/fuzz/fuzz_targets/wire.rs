//! The wire: arbitrary bytes, and arbitrary bodies of well-formed messages. The outcome must not depend on the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::limits::WireLimits;
use wire::{Decoder, WireError};

/// Returns the messages of a stream, encoded again, and the error.
fn outcome(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<WireError>) {
    // Low, so that the fuzzer reaches the limit.
    let limits = WireLimits { frame_bytes: 1 << 12, ..WireLimits::default() };
    let mut decoder = Decoder::new(&limits);
    let mut messages = Vec::new();
    for piece in bytes.chunks(piece) {
        if let Err(error) = decoder.push(piece, &mut |message| messages.push(message.to_bytes())) {
            return (messages, Some(error));
        }
        assert!(decoder.unfinished() <= limits.frame_bytes + 8 + piece.len());
    }
    (messages, None)
}

/// Returns messages with these bodies: a kind, a length, and so many bytes, repeatedly.
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
    // Messages must survive a round trip.
    let again = whole.0.concat();
    assert_eq!(outcome(&again, usize::MAX), (whole.0, None));
});
