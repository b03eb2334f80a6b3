use super::*;
use crate::{Ack, Ask, Batch, Code, Goodbye, Hello, PROTOCOL, Refused, SessionState, Skipped, Status, Watch, Welcome};

/// One of each kind, with every field filled: what the golden file of protocol 1 holds.
fn all() -> Vec<Message<'static>> {
    let hello = Hello {
        protocol: PROTOCOL,
        session: "abcdefghijklmnopqrstuvwxyz".to_owned(),
        key: "zyxwvutsrqponmlkjihgfedcba".to_owned(),
        token: "open sesame".to_owned(),
        mode: "every event".to_owned(),
        header: vec![0x81, 0xa4, b'n', b'a', b'm', b'e', 0xa1, b'x'],
        first: 70_000,
    };
    let status = Status {
        state: SessionState::Lost,
        last: 9,
        now_us: 1_700_000_000_000_000,
        events: 1_234_567,
        lost_events: 89,
        behind_us: 400_000,
    };
    vec![
        Message::Hello(hello),
        Message::Batch(Batch { seq: 1, sent_us: 1_700_000_000_000_001, chunks: b"chunks" }),
        Message::Goodbye(Goodbye { seq: u64::MAX }),
        Message::Welcome(Welcome { protocol: PROTOCOL, next: 1 }),
        Message::Ack(Ack { seq: 300 }),
        Message::Refused(Refused { code: Code::Full, message: "The disk is full.".to_owned(), retry: true }),
        Message::Ask(Ask { what: "history".to_owned() }),
        Message::Watch(Watch { protocol: PROTOCOL, after: 70_000, events: 4_000_000, ..Watch::default() }),
        Message::Status(status),
        Message::Skipped(Skipped { from: 2, to: 5, reason: "kept no longer".to_owned() }),
    ]
}

fn bytes(messages: &[Message<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    messages.iter().for_each(|message| message.encode(&mut out));
    out
}

/// Decodes bytes in pieces of a size. Returns each message, encoded again, and the error.
fn read(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<WireError>) {
    let mut decoder = Decoder::new(&WireLimits::default());
    let mut messages = Vec::new();
    for piece in bytes.chunks(piece) {
        if let Err(error) = decoder.push(piece, &mut |message| messages.push(message.to_bytes())) {
            assert_eq!(decoder.push(b"", &mut |_| {}), Err(error.clone()), "an error stays");
            return (messages, Some(error));
        }
    }
    (messages, None)
}

#[test]
fn messages_survive_a_round_trip_whatever_the_pieces() {
    let mut messages = all();
    messages.push(Message::Watch(Watch { protocol: PROTOCOL, ..Watch::default() }));
    messages.push(Message::Hello(Hello { protocol: PROTOCOL, ..Hello::default() }));
    let want: Vec<Vec<u8>> = messages.iter().map(Message::to_bytes).collect();
    for piece in [1, 2, 7, 8, 9, 64, 4096] {
        assert_eq!(read(&bytes(&messages), piece), (want.clone(), None), "pieces of {piece}");
    }
}

#[test]
fn the_golden_stream_of_protocol_1_reads_and_is_what_is_written() {
    let golden = include_bytes!("../../../tests/fixtures/wire_1.bin");
    assert_eq!(bytes(&all()), golden);
    assert_eq!(read(golden, 5).0.len(), all().len());
}

#[test]
fn no_bit_may_change() {
    let whole = bytes(&all());
    for bit in 0..whole.len() * 8 {
        let mut broken = whole.clone();
        broken[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&broken, 4096).0.len() < all().len(), "{bit}");
    }
}

#[test]
fn malformed_messages_end_the_stream_and_unknown_kinds_do_not() {
    let message = |body: &[u8]| {
        let mut out = (body.len() as u32).to_le_bytes().to_vec();
        out.extend(crc32fast::hash(body).to_le_bytes());
        out.extend_from_slice(body);
        out
    };
    let limit = WireLimits::default().frame_bytes;
    let too_long = (limit as u32 + 1).to_le_bytes();
    let ack = |rest: &[u8]| message(&[&[0x92, 5], rest].concat());
    let cases: [(&str, Vec<u8>, Result<usize, WireError>); 9] = [
        ("a kind that is not known", message(&[0x92, 77, 0x80]), Ok(1)),
        ("a name that is not known", ack(&[0x82, 0xa1, b'x', 0x91, 0xc0, 0xa3, b's', b'e', b'q', 3]), Ok(1)),
        ("a name that is missing", ack(&[0x80]), Ok(1)),
        ("no body", message(&[]), Err(WireError::Malformed)),
        ("no pair", message(&[0x91, 5]), Err(WireError::Malformed)),
        ("a kind that is no small number", message(&[0x92, 0xcc, 200, 0x80]), Err(WireError::Malformed)),
        ("text for a number", ack(&[0x81, 0xa3, b's', b'e', b'q', 0xa1, b'3']), Err(WireError::Malformed)),
        ("deep", ack(&[&[0x81, 0xa1, b'x'][..], &[0x91; 5000], &[0xc0]].concat()), Ok(1)),
        (
            "a length beyond the bound",
            [&too_long[..], &[0; 4]].concat(),
            Err(WireError::TooLong { found: limit as u64 + 1, limit }),
        ),
    ];
    for (name, bytes, want) in cases {
        let (messages, error) = read(&bytes, 4096);
        assert_eq!(error.map_or(Ok(messages.len()), Err), want, "{name}");
    }
}

#[test]
fn a_code_of_a_later_build_is_read_as_one_that_is_known() {
    let body = [&[0x92, 6, 0x81, 0xa4][..], b"code", &[0xa3], b"new"].concat();
    assert_eq!(Message::decode(&body), Some(Message::Refused(Refused::default())));
}

#[test]
fn messages_are_read_one_at_a_time_and_a_limit_can_be_raised_between_them() {
    let hello = Message::Hello(Hello::default()).to_bytes();
    let batch = Message::Batch(Batch { seq: 1, sent_us: 2, chunks: &[7; 10_000] }).to_bytes();
    let stream = [&hello[..], &batch, &hello].concat();
    let small = WireLimits { frame_bytes: 1_000, ..WireLimits::default() };
    for (raised, want) in [
        (None, Err(WireError::TooLong { found: batch.len() as u64 - HEAD_BYTES as u64, limit: 1_000 })),
        (Some(20_000), Ok(vec![hello.clone(), batch.clone(), hello.clone()])),
    ] {
        for piece in [1, 9, 500, 40_000] {
            let (mut decoder, mut read) = (Decoder::new(&small), Vec::new());
            let mut all = || {
                for mut bytes in stream.chunks(piece) {
                    while let Some(message) = decoder.read(&mut bytes)? {
                        read.push(message.to_bytes());
                        if let Some(limit) = raised {
                            decoder.set_limit(limit);
                        }
                    }
                    assert_eq!(bytes, b"", "all was taken");
                }
                Ok(())
            };
            let done = all();
            assert_eq!(done.map(|()| read), want, "{raised:?}, pieces of {piece}");
        }
    }
}

#[test]
fn nothing_is_held_of_a_message_beyond_the_limit() {
    let mut decoder = Decoder::new(&WireLimits { frame_bytes: 1_000, ..WireLimits::default() });
    let head = [&1_001_u32.to_le_bytes()[..], &[0; 4]].concat();
    let [first, last] = [&head[..7], &[&head[7..], &[0; 900][..]].concat()];
    assert_eq!(decoder.push(first, &mut |_| panic!("a message")), Ok(()));
    assert!(decoder.push(last, &mut |_| panic!("a message")).is_err());
    assert!(decoder.unfinished() <= HEAD_BYTES, "{} bytes are held", decoder.unfinished());
}
