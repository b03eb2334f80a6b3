//! Collectors that send HTTP requests instead of using a WebSocket.

use std::io::Write;
use std::net::TcpStream;

use anyhow::Result;
use tests::stream::Stream;
use trace::limits::WireLimits;
use vramscope::ingest::Retention;
use wire::{Ack, Batch, Code, Decoder, Goodbye, Message, Refused, Welcome};

use crate::check_same;
use crate::inside::{Inside, small};

/// Posts messages. Returns the status and the answer.
fn post(server: &Inside, body: &[u8]) -> Result<(u16, Vec<String>)> {
    let head = format!(
        "POST /api/v1/ingest HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        server.address,
        body.len()
    );
    let mut stream = TcpStream::connect(server.address)?;
    stream.write_all(head.as_bytes())?;
    // The server may refuse it before all of it was sent.
    let _ = stream.write_all(body);
    let response = tests::http::receive(stream)?;
    let mut frames = Vec::new();
    if response.status == 200 {
        Decoder::new(&WireLimits::default()).push(&response.body, &mut |frame| frames.push(said(&frame)))?;
    }
    Ok((response.status, frames))
}

fn said(frame: &Message<'_>) -> String {
    match frame {
        Message::Welcome(Welcome { next, .. }) => format!("welcome {next}"),
        Message::Ack(Ack { seq }) => format!("ack {seq}"),
        Message::Ask(ask) => format!("ask {}", ask.what),
        Message::Refused(Refused { code, retry, .. }) => format!("refused {code:?} {retry}"),
        other => format!("{other:?}"),
    }
}

fn body(stream: &Stream, batches: impl IntoIterator<Item = u64>, goodbye: Option<u64>) -> Vec<u8> {
    let mut body = Message::Hello(stream.hello.clone()).to_bytes();
    for seq in batches {
        Message::Batch(Batch { seq, sent_us: 1, chunks: stream.batch(seq) }).encode(&mut body);
    }
    if let Some(seq) = goodbye {
        Message::Goodbye(Goodbye { seq }).encode(&mut body);
    }
    body
}

#[test]
fn a_session_is_received_by_requests() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(40, 6, 200);
    let session = |words: &[&str]| (200, words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    assert_eq!(post(&server, &body(&stream, [], None))?, session(&["welcome 1"]));
    assert_eq!(post(&server, &body(&stream, 1..=3, None))?, session(&["welcome 1", "ack 3"]));
    server.sessions.get(stream.session()).expect("the session").ask("state");
    assert_eq!(post(&server, &body(&stream, 2..=4, None))?, session(&["welcome 4", "ask state", "ack 4"]));
    let refused = format!("refused {:?} true", Code::Order);
    assert_eq!(post(&server, &body(&stream, [6], None))?, session(&["welcome 5", "ack 4", &refused]));
    assert_eq!(post(&server, &body(&stream, 5..=6, Some(6)))?, session(&["welcome 5", "ack 6"]));
    let file = tests::http::get(server.address, &format!("/api/v1/sessions/{}/trace", stream.session()), &[])?;
    check_same("the download", &file.body, &stream.file);
    Ok(())
}

#[test]
fn a_malformed_body_is_refused_and_whole_messages_before_it_are_kept() -> Result<()> {
    let server = Inside::start(trace::limits::ServerLimits { body_bytes: 200_000, ..small() }, Retention::default())?;
    let stream = Stream::new(41, 6, 200);
    let malformed = format!("refused {:?} false", Code::Malformed);
    assert_eq!(post(&server, b"")?, (200, vec![malformed.clone()]));
    assert_eq!(post(&server, b"this is no frame at all")?, (200, vec![malformed.clone()]));
    let mut broken = body(&stream, 1..=2, None);
    broken.extend(Message::Welcome(Welcome::default()).to_bytes());
    assert_eq!(post(&server, &broken)?, (200, vec!["welcome 1".to_owned(), "ack 2".to_owned(), malformed]));
    let long = [body(&stream, [], None), vec![0; 300_000]].concat();
    assert!(matches!(post(&server, &long)?.0, 413 | 200));
    assert_eq!(post(&server, &body(&stream, [], None))?.1, ["welcome 3"]);
    Ok(())
}
