//! Limits on everything that clients can make grow: what exceeds them is cut or refused.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use format::recording::Decoder;
use format::{EventColumns, Header, PRELUDE_BYTES, Writer};
use serde_json::Value;
use tests::http;
use tests::peer::Peer;
use tests::stream::Stream;
use trace::limits::{ImportLimits, ServerLimits};
use trace::units::Address;
use trace::{Event, TagId};
use vramscope::access::Caller;
use vramscope::ingest::{Conversation, Retention};
use wire::{Batch, Code, Message};

use crate::inside::{Inside, small};

fn json(server: &Inside, path: &str) -> Result<Value> {
    let response = http::get(server.address, path, &[])?;
    ensure!(response.status == 200, "{path}: {}", response.status);
    Ok(serde_json::from_slice(&response.body)?)
}

#[test]
fn a_list_of_thousands_is_limited() -> Result<()> {
    const SESSIONS: u64 = 1_200;
    let server = Inside::start(small(), Retention::default())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        for seed in 0..SESSIONS {
            let hello = Stream::new(1_000 + seed, 1, 1).hello;
            let mut conversation = Conversation::new(server.sessions.clone(), Caller::default());
            conversation.push(&Message::Hello(hello).to_bytes(), &mut Vec::new()).await?;
            conversation.finish().await;
        }
        anyhow::Ok(())
    })?;
    assert_eq!(server.sessions.all().len() as u64, SESSIONS);
    for (query, want) in [("", 1_000), ("?limit=5", 5), ("?limit=0", 0), ("?limit=99999999", 1_000)] {
        let begun = Instant::now();
        let listed = json(&server, &format!("/api/v1/sessions{query}"))?;
        assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(want), "{query}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{query}: {:?}", begun.elapsed());
    }
    for query in ["?limit=-1", "?limit=many", "?limit=99999999999999999999999"] {
        assert_eq!(http::get(server.address, &format!("/api/v1/sessions{query}"), &[])?.status, 400, "{query}");
    }
    Ok(())
}

#[test]
fn a_name_of_a_megabyte_is_cut_in_lists_and_whole_in_the_recording() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let name = "\u{1b}]0;owned\u{7}\0\u{202e}é".repeat(60_000);
    let mut stream = Stream::named(80, &name, 2, 50);
    // In the hello, which has a limit of its own, and in the header of the first batch.
    let part: String = name.chars().take(20_000).collect();
    stream.hello.header = Stream::named(80, &part, 1, 50).hello.header;
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    for seq in 0..=stream.last() {
        if seq > 0 {
            peer.batch(seq, stream.batch(seq))?;
            peer.acked(seq)?;
        }
        let response = http::get(server.address, "/api/v1/sessions", &[])?;
        ensure!(response.body.len() < 50_000, "{} bytes after {seq}", response.body.len());
        // As text: terminal control characters are escaped.
        ensure!(!response.body.iter().any(|byte| *byte < b' '), "a control character");
        let listed: Value = serde_json::from_slice(&response.body)?;
        let cut: String = name.chars().take(ServerLimits::default().text_chars).collect();
        assert_eq!((&listed["sessions"][0]["name"], &listed["sessions"][0]["job"]), (&cut.clone().into(), &cut.into()));
    }
    let file = http::get(server.address, &format!("/api/v1/sessions/{}/trace", stream.session()), &[])?;
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(&file.body)?;
    assert!(decoder.finish()?.2.context("a header")?.name == name, "the recording's own name was cut");
    Ok(())
}

#[test]
fn a_session_of_a_thousand_devices_is_refused() -> Result<()> {
    let limits = ServerLimits { devices: 20, ..small() };
    let server = Inside::start(limits, Retention::default())?;
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&Header::default(), &mut bytes);
    let mut batches = vec![bytes.split_off(PRELUDE_BYTES)];
    for devices in [0..20, 20..1_000] {
        let mut chunks = Vec::new();
        for device in devices {
            let mut columns = EventColumns::default();
            let stack = trace::frames::StackId(0);
            let (action, address) = (trace::event::Action::Alloc, Address(512));
            columns.push(Event { action, address, size: 1, time_us: 5, tag: TagId(0), stack });
            writer.events(device, 0, &columns, &mut chunks);
        }
        batches.push(chunks);
    }
    let hello = Stream::new(81, 1, 1).hello;
    let (mut peer, _) = Peer::hello(server.address, &hello)?;
    for (seq, chunks) in (1..).zip(&batches) {
        peer.batch(seq, chunks)?;
    }
    assert_eq!(peer.refused()?, (Code::Full, false));
    // Earlier batches are kept.
    assert_eq!(Peer::hello(server.address, &hello)?.1, 3);
    let stats = json(&server, &format!("/api/v1/sessions/{}/stats", hello.session))?;
    assert_eq!(stats["devices"].as_array().map(Vec::len), Some(20));
    Ok(())
}

#[test]
fn names_cannot_escape_the_store() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let long = "a".repeat(10_000);
    for name in ["..", "../..", "..%2f..%2fetc%2fpasswd", "%2e%2e", "%00", "a%0d%0aX-Evil:%201", "%ff%fe", &long] {
        for path in ["", "/stats", "/trace", "/live", "/ask"] {
            let method = if path == "/ask" { "POST" } else { "GET" };
            let request = format!(
                "{method} /api/v1/sessions/{name}{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                server.address
            );
            let response = http::send(server.address, &request)?;
            // The parent path is the list of sessions.
            ensure!((400..500).contains(&response.status), "{name}{path}: {}", response.status);
            assert_eq!(response.header("x-evil"), "", "{name}{path}");
        }
    }
    assert!(server.sessions.all().is_empty());
    Ok(())
}

#[test]
fn a_slow_body_times_out_and_what_was_received_is_kept() -> Result<()> {
    let server = Inside::start(ServerLimits { body_seconds: 2, ..small() }, Retention::default())?;
    let stream = Stream::new(82, 2, 50);
    let mut whole = Message::Hello(stream.hello.clone()).to_bytes();
    Message::Batch(Batch { seq: 1, sent_us: 1, chunks: stream.batch(1) }).encode(&mut whole);
    // And the head of a message that is never completed.
    whole.extend(500_000_u32.to_le_bytes());
    whole.extend([0; 4]);
    let mut socket = TcpStream::connect(server.address)?;
    let head = format!("POST /api/v1/ingest HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000000\r\n\r\n", server.address);
    socket.write_all(head.as_bytes())?;
    socket.write_all(&whole)?;
    let begun = Instant::now();
    let mut drip = socket.try_clone()?;
    let dripper = std::thread::spawn(move || {
        // Until the server closes the connection.
        while begun.elapsed() < Duration::from_secs(20) && drip.write_all(&[0]).is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let mut answer = [0; 12];
    socket.read_exact(&mut answer)?;
    assert_eq!((&answer[..], begun.elapsed() < Duration::from_secs(15)), (&b"HTTP/1.1 408"[..], true));
    drop(socket);
    dripper.join().expect("the dripper");
    assert_eq!(Peer::hello(server.address, &stream.hello)?.1, 2);
    Ok(())
}

#[test]
fn a_message_that_arrives_byte_by_byte_counts_as_silence() -> Result<()> {
    let limits = ServerLimits { ping_seconds: 1, idle_seconds: 2, ..small() };
    let server = Inside::start(limits, Retention::default())?;
    let stream = Stream::new(83, 2, 50);
    let (peer, _) = Peer::hello(server.address, &stream.hello)?;
    let mut socket = peer.stream().try_clone()?;
    // The head of a masked binary message of 60,000 bytes, followed by single bytes now and then.
    socket.write_all(&[0x82, 0xfe, 0xea, 0x60, 0, 0, 0, 0])?;
    let begun = Instant::now();
    while socket.write_all(&[0]).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it was waited for");
        std::thread::sleep(Duration::from_millis(100));
    }
    // The session still works.
    let (mut peer, next) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(next, stream.batch(next))?;
    peer.acked(next)
}

#[test]
fn a_viewer_that_waits_for_batches_far_ahead_breaks_nothing() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(84, 2, 50);
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    for after in [2, u64::MAX - 1, u64::MAX] {
        let mut viewer = Peer::viewer(server.address, stream.session(), after)?;
        // One status at the start and more later: it is still served.
        for _ in 0..2 {
            assert_eq!(viewer.status(|_| true)?.last, 1, "{after}");
        }
    }
    peer.goodbye(u64::MAX)?;
    assert_eq!(peer.refused()?, (Code::Order, true));
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(u64::MAX, stream.batch(2))?;
    assert_eq!(peer.refused()?, (Code::Order, true));
    let (mut peer, next) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(0, stream.batch(2))?;
    peer.batch(next, stream.batch(2))?;
    peer.acked(2)
}
