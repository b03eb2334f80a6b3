//! Clients that have not shown a token, and clients that are slow: what they can hold, and for how long.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::http;
use tests::peer::Peer;
use tests::stream::Stream;
use trace::limits::ServerLimits;
use vramscope::access::Access;
use vramscope::ingest::Retention;
use vramscope::store::SegmentStore;
use wire::{Ack, Batch, Code, HEAD_BYTES, Hello, Message, PROTOCOL, Watch};

use crate::inside::{Inside, small};

const TOKEN: &str = "correct-horse-battery-staple";

/// Starts a server that requires the token.
fn guarded(limits: ServerLimits) -> Result<Inside> {
    let keep = Retention::default();
    let access = Arc::new(Access::with_token(TOKEN).map_err(anyhow::Error::msg)?);
    Inside::guarded(Arc::new(SegmentStore::in_memory(keep.bytes)), limits, keep, access)
}

/// The ways to send a first message.
#[derive(Clone, Copy, Debug)]
enum Transport {
    Socket,
    Post,
    Viewer,
}

/// Sends the beginning of a POST request.
fn begin_post(server: SocketAddr, length: usize, body: &[u8]) -> Result<TcpStream> {
    let head = format!("POST /api/v1/ingest HTTP/1.1\r\nHost: {server}\r\nContent-Length: {length}\r\n\r\n");
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(head.as_bytes())?;
    let _ = stream.write_all(body);
    Ok(stream)
}

/// Sends bytes and more of them to follow, and returns the code of the refusal.
fn first(server: &Inside, transport: Transport, bytes: &[u8]) -> Result<Code> {
    let path = format!("/api/v1/sessions/{}/live", "a".repeat(26));
    let mut peer = match transport {
        Transport::Socket => Peer::collector(server.address)?,
        Transport::Viewer => {
            Peer::connect(server.address, &path, &[])?.map_err(|status| anyhow::anyhow!("{status}"))?
        }
        Transport::Post => {
            let mut stream = begin_post(server.address, 60 << 20, bytes)?;
            let mut answer = Vec::new();
            // The connection is reset after the answer, as the rest of the body is not read.
            let _ = stream.read_to_end(&mut answer);
            let at = answer.windows(4).position(|four| four == b"\r\n\r\n").context("no answer")?;
            let mut code = None;
            let mut decoder = wire::Decoder::new(&trace::limits::WireLimits::default());
            decoder.push(&answer[at + 4..], &mut |message| {
                if let Message::Refused(refused) = message {
                    code = Some(refused.code);
                }
            })?;
            return code.context("no refusal");
        }
    };
    let _ = peer.send(bytes.to_vec());
    Ok(peer.refused()?.0)
}

#[test]
fn only_one_small_message_is_read_before_the_answer_to_a_hello() -> Result<()> {
    // Far more than the test takes: whatever is refused is refused at once.
    let limits = ServerLimits { hello_seconds: 60, ..ServerLimits::default() };
    let server = guarded(limits)?;
    let ack = Message::Ack(Ack::default()).to_bytes();
    let later = Message::Unknown(99).to_bytes();
    let hello = Message::Hello(Hello { token: TOKEN.to_owned(), ..Hello::default() }).to_bytes();
    let stranger = Message::Hello(Stream::new(70, 1, 10).hello).to_bytes();
    let declared = |bytes: usize| [&(bytes as u32).to_le_bytes()[..], &[0; 4], &[7; 100][..]].concat();
    let long = |bytes: usize| Message::Hello(Hello { header: vec![0; bytes], ..Hello::default() }).to_bytes();
    for (what, bytes, transport, want) in [
        ("a long frame", declared(limits.hello_bytes + 1), Transport::Socket, Code::Malformed),
        ("a long frame", declared(limits.hello_bytes + 1), Transport::Post, Code::Malformed),
        ("a long frame", declared(limits.hello_bytes + 1), Transport::Viewer, Code::Malformed),
        ("a whole long hello", long(limits.hello_bytes), Transport::Socket, Code::Malformed),
        ("a hello of another protocol", hello.repeat(2), Transport::Socket, Code::Protocol),
        ("many messages", ack.repeat(10_000), Transport::Socket, Code::Malformed),
        ("many messages", ack.repeat(10_000), Transport::Post, Code::Malformed),
        ("a message of a later version", later.repeat(10_000), Transport::Socket, Code::Malformed),
        ("a message of a later version", later.repeat(10_000), Transport::Post, Code::Malformed),
        ("many messages", ack.repeat(1_000), Transport::Viewer, Code::Malformed),
        ("no token, and batches", [&stranger[..], &ack.repeat(10_000)].concat(), Transport::Socket, Code::Token),
        ("no token, and batches", [&stranger[..], &ack.repeat(10_000)].concat(), Transport::Post, Code::Token),
    ] {
        let begun = Instant::now();
        let code = first(&server, transport, &bytes).with_context(|| format!("{what} by {transport:?}"))?;
        assert_eq!(code, want, "{what} by {transport:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{what} by {transport:?}: {:?}", begun.elapsed());
    }
    Ok(())
}

#[test]
fn a_websocket_message_of_a_stranger_is_limited_and_one_with_a_token_is_not() -> Result<()> {
    let server = guarded(ServerLimits::default())?;
    let most = ServerLimits::default().socket_bytes;
    let bearer = format!("Bearer {TOKEN}");
    let header = [("Authorization", &*bearer)];
    let watch = |session: &str| format!("/api/v1/sessions/{session}/live");
    let mut stream = Stream::new(71, 1, 60_000);
    ensure!(stream.batch(1).len() > most, "the batch is longer than a message may be");
    stream.hello.token = TOKEN.to_owned();
    for (is_shown, want) in [(false, false), (true, true)] {
        let headers = if is_shown { &header[..] } else { &[] };
        let mut peer = Peer::connect(server.address, "/api/v1/ingest", headers)?.expect("a socket");
        peer.say(&Message::Hello(stream.hello.clone()))?;
        assert!(matches!(peer.frame()?, Message::Welcome(_)));
        let batch = Message::Batch(Batch { seq: 1, sent_us: 0, chunks: stream.batch(1) }).to_bytes();
        let acked = peer.send_whole(batch).and_then(|()| peer.acked(1));
        assert_eq!(acked.is_ok(), want, "the token was in the header: {is_shown}; {acked:?}");
    }
    let mut viewer = Peer::connect(server.address, &watch(stream.session()), &[])?.expect("a socket");
    let _ = viewer.send_whole(vec![0; ServerLimits::default().hello_bytes + HEAD_BYTES + 1]);
    assert!(viewer.receive().is_err(), "it was read");
    Ok(())
}

#[test]
fn strangers_take_no_place_of_collectors_and_viewers() -> Result<()> {
    let limits = ServerLimits { live_sessions: 1, viewers: 1, hello_seconds: 60, ..small() };
    let server = guarded(limits)?;
    let mut stream = Stream::new(72, 2, 100);
    stream.hello.token = TOKEN.to_owned();
    let path = format!("/api/v1/sessions/{}/live", stream.session());
    let mut strangers = Vec::new();
    for _ in 0..10 {
        strangers.push(Peer::collector(server.address)?);
        strangers.push(Peer::connect(server.address, &path, &[])?.expect("a socket"));
    }
    let mut posts = Vec::new();
    for _ in 0..10 {
        posts.push(begin_post(server.address, 1_000_000, b"\0")?);
    }
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    let mut viewer = Peer::viewer_with(server.address, stream.session(), TOKEN)?;
    assert_eq!(viewer.batches(1)?.0.len(), 1);
    Ok(())
}

#[test]
fn a_refused_hello_takes_no_place_either() -> Result<()> {
    let server = Inside::start(ServerLimits { live_sessions: 1, ..small() }, Retention::default())?;
    for seed in 73..83 {
        let mut hello = Stream::new(seed, 1, 10).hello;
        hello.key.clear();
        let mut peer = Peer::collector(server.address)?;
        peer.say(&Message::Hello(hello))?;
        // Its place would be kept for a moment, until it has read why.
        assert_eq!(peer.refused()?, (Code::Session, false), "{seed}");
    }
    Peer::hello(server.address, &Stream::new(83, 1, 10).hello)?;
    Ok(())
}

/// Sends a body piece by piece until the server answers. Returns the status and the seconds that it took.
fn drip(server: &Inside, begin: &[u8], piece: &[u8]) -> Result<(u16, f64)> {
    let begun = Instant::now();
    let mut stream = begin_post(server.address, 1_000_000, begin)?;
    stream.set_read_timeout(Some(Duration::from_millis(50)))?;
    let mut answer = Vec::new();
    while begun.elapsed() < Duration::from_secs(20) {
        let _ = stream.write_all(piece);
        let mut bytes = [0; 1_000];
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&bytes[..read]),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let status = text.split(' ').nth(1).context("no answer")?.parse()?;
    Ok((status, begun.elapsed().as_secs_f64()))
}

#[test]
fn a_body_that_drips_ends_early() -> Result<()> {
    let limits = ServerLimits { hello_seconds: 1, idle_seconds: 2, least_bytes_per_second: 1_000, ..small() };
    let server = Inside::start(limits, Retention::default())?;
    let stream = Stream::new(84, 1, 100);
    let hello = Message::Hello(stream.hello.clone()).to_bytes();
    let half = (1_000_000_u32.to_le_bytes().to_vec(), vec![0; 4]);
    let admitted = [&hello[..], &half.0, &half.1].concat();
    for (what, begin, piece, within) in [
        ("nothing", &b""[..], &b""[..], 1.0..1.9),
        ("a hello byte by byte", &hello[..20], &hello[20..21], 1.0..1.9),
        ("silence after the hello", &admitted, b"", 2.0..3.9),
        ("bytes after the hello", &admitted, b"a", 2.0..3.9),
    ] {
        let (status, seconds) = drip(&server, begin, piece)?;
        assert_eq!(status, 408, "{what}");
        assert!(seconds >= within.start && seconds < within.end + 5.0, "{what}: {seconds} s");
    }
    Ok(())
}

#[test]
fn a_viewer_without_a_token_learns_nothing_of_the_sessions() -> Result<()> {
    let server = guarded(small())?;
    let mut stream = Stream::new(85, 1, 50);
    stream.hello.token = TOKEN.to_owned();
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    let unknown = "b".repeat(26);
    let answer = |session: &str, token: Option<&str>, watch: &str| -> Result<String> {
        let bearer = format!("Bearer {}", token.unwrap_or_default());
        let headers = [("Authorization", &*bearer)];
        let path = format!("/api/v1/sessions/{session}/live");
        let headers = if token.is_some() { &headers[..] } else { &[] };
        let mut viewer = match Peer::connect(server.address, &path, headers)? {
            Ok(viewer) => viewer,
            Err(status) => return Ok(status.to_string()),
        };
        viewer.say(&Message::Watch(Watch { protocol: PROTOCOL, token: watch.to_owned(), ..Watch::default() }))?;
        Ok(match viewer.frame()? {
            Message::Refused(refused) => format!("{:?} {}", refused.code, refused.message),
            Message::Status(_) => "a status".to_owned(),
            other => format!("{other:?}"),
        })
    };
    let stranger = answer(stream.session(), None, "wrong")?;
    assert!(stranger.starts_with("Token "), "{stranger}");
    for session in [&unknown, "no-name", stream.session()] {
        assert_eq!(answer(session, None, "")?, stranger, "{session}");
        assert_eq!(answer(session, Some("wrong"), "")?, "401", "{session}");
    }
    assert!(answer(&unknown, None, TOKEN)?.starts_with("Session "));
    assert_eq!(answer(&unknown, Some(TOKEN), "")?, "404");
    assert_eq!(answer(stream.session(), None, TOKEN)?, "a status");
    assert_eq!(answer(stream.session(), Some(TOKEN), "")?, "a status");
    Ok(())
}

#[test]
fn no_answer_of_the_api_is_kept_by_a_cache() -> Result<()> {
    let server = guarded(small())?;
    let session = format!("/api/v1/sessions/{}", "a".repeat(26));
    for path in [
        "/api/v1/sessions",
        &session,
        &format!("{session}/trace"),
        &format!("{session}/stats"),
        &format!("{session}/live"),
        "/api/v1/health/ready",
        "/api/v1/nowhere",
        "/metrics",
    ] {
        for token in [TOKEN, "wrong"] {
            let response = http::get(server.address, path, &[("Authorization", &format!("Bearer {token}"))])?;
            assert_eq!(response.header("cache-control"), "no-store", "{path} {}", response.status);
        }
    }
    // What does not depend on who asks may be kept.
    assert_eq!(http::get(server.address, "/sample.pickle", &[])?.header("cache-control"), "no-cache");
    Ok(())
}

#[test]
fn concurrent_checks_of_the_store_share_one() -> Result<()> {
    let server = tests::server::Server::start()?;
    let address = server.address();
    let checks: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || -> Result<Vec<u16>> {
                (0..25).map(|_| Ok(http::get(address, "/api/v1/health/ready", &[])?.status)).collect()
            })
        })
        .collect();
    for check in checks {
        assert_eq!(check.join().expect("a thread")?, [200; 25]);
    }
    assert!(server.get("/metrics")?.text().contains("vramscope_store_full 0"));
    Ok(())
}

#[test]
fn no_connection_of_a_burst_has_to_be_tried_again() -> Result<()> {
    let server = tests::server::Server::start()?;
    let (mut open, mut late) = (Vec::new(), 0);
    for _ in 0..1_000 {
        let begun = Instant::now();
        open.push(TcpStream::connect(server.address())?);
        // A system whose queue is full drops the attempt, and the client's system tries again after a second.
        late += usize::from(begun.elapsed() > Duration::from_millis(900));
    }
    assert!(late < 2, "{late} of 1,000 connections had to be tried again");
    Ok(())
}
