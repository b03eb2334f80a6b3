//! Hostile clients: limited, refused, and harmless to others.

use std::time::{Duration, Instant};

use anyhow::Result;
use format::{BatchEnd, Kind, seal};
use tests::peer::Peer;
use tests::server::Server;
use tests::stream::{Random, Stream};
use vramscope::ingest::Retention;
use wire::{Batch, Code, Hello, Message, Watch};

use crate::inside::{Inside, small};

/// Returns a message with this body and the right checksum.
fn frame(body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend(crc32fast::hash(body).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

#[test]
fn messages_that_collectors_must_not_send_are_refused() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(50, 3, 100);
    let hello = || Message::Hello(stream.hello.clone()).to_bytes();
    let with = |change: &dyn Fn(&mut Hello)| {
        let mut hello = stream.hello.clone();
        change(&mut hello);
        Message::Hello(hello).to_bytes()
    };
    let batch = |chunks: &[u8]| [hello(), Message::Batch(Batch { seq: 1, sent_us: 0, chunks }).to_bytes()].concat();
    let first = stream.batch(1);
    let mut flipped = first.to_vec();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let cases: Vec<(&str, Vec<u8>, Code)> = vec![
        ("nothing that is a frame", vec![0x41; 1_000], Code::Malformed),
        ("a huge length", [u32::MAX.to_le_bytes(), [0; 4]].concat(), Code::Malformed),
        (
            "a wrong sum",
            {
                let mut bytes = hello();
                bytes[5] ^= 1;
                bytes
            },
            Code::Malformed,
        ),
        ("an invalid body", frame(b"\x92\x01\xc1"), Code::Malformed),
        ("a body that is deep", frame(&[&[0x92, 1][..], &[0x81, 0xa1, b'x'].repeat(5_000)].concat()), Code::Malformed),
        ("another protocol", with(&|hello| hello.protocol = 2), Code::Protocol),
        ("no session's name", with(&|hello| hello.session = "../../etc/passwd".to_owned()), Code::Session),
        ("no key", with(&|hello| hello.key = String::new()), Code::Session),
        ("an invalid header", with(&|hello| hello.header = vec![0xc1; 50]), Code::Malformed),
        (
            "a batch before the hello",
            Message::Batch(Batch { seq: 1, sent_us: 0, chunks: first }).to_bytes(),
            Code::Malformed,
        ),
        ("two hellos", [hello(), hello()].concat(), Code::Malformed),
        ("a viewer's frame", [hello(), Message::Watch(Watch::default()).to_bytes()].concat(), Code::Malformed),
        ("an empty first batch", batch(b""), Code::Malformed),
        ("a batch of anything", batch(&[7; 5_000]), Code::Malformed),
        ("a batch that is cut", batch(&first[..first.len() - 1]), Code::Malformed),
        ("a batch with a changed bit", batch(&flipped), Code::Malformed),
        ("a batch without a header", batch(stream.batch(2)), Code::Malformed),
        ("two headers", batch(&[first, first].concat()), Code::Malformed),
        (
            "a mark of the store",
            batch(&[first, &BatchEnd { seq: 1, sent_us: 0 }.to_chunk()[..]].concat()),
            Code::Malformed,
        ),
        (
            "a chunk that holds nothing",
            batch(&[first, &seal(Kind::Events as u8, b"\xc1")[..]].concat()),
            Code::Malformed,
        ),
    ];
    for (what, bytes, code) in cases {
        let mut peer = Peer::collector(server.address)?;
        peer.send(bytes)?;
        let refused = loop {
            match peer.frame()? {
                Message::Welcome(_) => {}
                Message::Refused(refused) => break refused,
                other => panic!("{what}: {other:?}"),
            }
        };
        assert_eq!((refused.code, refused.retry), (code, false), "{what}: {}", refused.message);
    }
    // None of it was stored, and the session still works.
    let (mut peer, next) = Peer::hello(server.address, &stream.hello)?;
    assert_eq!(next, 1);
    for seq in 1..=3 {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.acked(3)?;
    Ok(())
}

#[test]
fn random_bytes_break_nothing() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(51, 3, 100);
    let mut random = Random::new(7);
    let mut whole = Message::Hello(stream.hello.clone()).to_bytes();
    Message::Batch(Batch { seq: 1, sent_us: 0, chunks: stream.batch(1) }).encode(&mut whole);
    for _ in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(8) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        bytes.truncate(1 + random.below(bytes.len() as u64) as usize);
        let mut peer = Peer::collector(server.address)?;
        peer.send(bytes)?;
        peer.close();
    }
    let other = Stream::new(52, 2, 100);
    let (mut peer, _) = Peer::hello(server.address, &other.hello)?;
    peer.batch(1, other.batch(1))?;
    peer.acked(1)
}

#[test]
fn silent_and_slow_clients_time_out() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let begun = Instant::now();
    let mut silent = Peer::collector(server.address)?;
    assert_eq!(silent.refused()?, (Code::Malformed, false));
    let mut slow = Peer::collector(server.address)?;
    let hello = Message::Hello(Stream::new(53, 1, 10).hello).to_bytes();
    for byte in hello {
        if slow.send(vec![byte]).is_err() || begun.elapsed() > Duration::from_secs(20) {
            break;
        }
        std::thread::sleep(Duration::from_millis(40));
    }
    assert!(begun.elapsed() < Duration::from_secs(15), "it was waited for: {:?}", begun.elapsed());
    Ok(())
}

// Other systems have no second address of this machine's own.
#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_connections_of_one_address_do_not_block_new_ones() -> Result<()> {
    use std::io::{ErrorKind, Read, Write};
    let hostile = std::net::Ipv4Addr::new(127, 0, 0, 2);
    let server = Server::start()?;
    let stream = Stream::new(54, 40, 100);
    let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    let mut open = Vec::new();
    for i in 0..10_000 {
        // The process's limit of open files may be lower; then a client can't open more.
        let Ok(mut socket) = tests::connect_from(hostile, server.address(), Duration::from_secs(10)) else { break };
        if i % 3 == 0 {
            let _ = socket.write_all(b"GET /api/v1/sess");
        }
        open.push(socket);
        if i % 1_000 == 999 {
            let seq = 2 + i / 1_000;
            peer.batch(seq, stream.batch(seq))?;
            peer.acked(seq)?;
            assert_eq!(server.get("/healthz")?.status, 200, "after {i}");
        }
    }
    assert!(open.len() > 500, "only {} connections were made", open.len());
    let mut held = 0;
    for socket in &mut open {
        socket.set_nonblocking(true)?;
        held += usize::from(socket.read(&mut [0; 1]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
    }
    let most = trace::limits::ServerLimits::default().connections_of_address;
    assert!(held <= most, "{held} of {} connections were held", open.len());
    drop(open);
    let (_, next) = Peer::hello(server.address(), &stream.hello)?;
    assert!(next > 1);
    Ok(())
}

#[test]
fn collectors_and_viewers_beyond_the_limit_are_refused_with_retry() -> Result<()> {
    let limits = trace::limits::ServerLimits { live_sessions: 2, viewers: 1, ..small() };
    let server = Inside::start(limits, Retention::default())?;
    let streams: Vec<Stream> = (55..58).map(|seed| Stream::new(seed, 1, 10)).collect();
    let (one, _) = Peer::hello(server.address, &streams[0].hello)?;
    let (two, _) = Peer::hello(server.address, &streams[1].hello)?;
    assert_eq!(Peer::connect(server.address, "/api/v1/ingest", &[])?.err(), Some(503));
    let mut viewer = Peer::viewer(server.address, streams[0].session(), 0)?;
    // It has its place once its watch was accepted.
    viewer.status(|_| true)?;
    let path = format!("/api/v1/sessions/{}/live", streams[0].session());
    assert_eq!(Peer::connect(server.address, &path, &[])?.err(), Some(503));
    drop((one, two, viewer));
    std::thread::sleep(Duration::from_millis(300));
    drop(Peer::hello(server.address, &streams[2].hello)?);
    Ok(())
}
