//! One POST request and its answer over HTTP/1.1, and no more of the protocol than that needs.
//!
//! Written by hand because it goes into training jobs. With ureq 3.5.1 (`default-features = false`) in its place,
//! `cargo build --release -p pluggable` and `strip --strip-unneeded` make a library of 2,264,752 bytes instead of
//! 1,816,432: a quarter more (1,007,848 instead of 820,198 with `gzip -9`), and six more crates. Also, ureq does not hand
//! out its socket, but at the end of a job another thread must be able to shut it down
//! ([`super::state::PublisherState::shut_down`]).
//!
//! What it guarantees: no redirects, no proxy from the environment, a bound on the answer's size, and a deadline for
//! the whole answer, not only for each read.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use super::stream::Stream;

/// The most bytes of an answer. The server sends a few hundred; a proxy's error page has a few thousand.
const ANSWER_BYTES: usize = 1 << 20;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Sends `body` and reads the answer, which must be complete `answer_time` after the body was sent. The connection
/// serves this one request.
pub(super) fn post(
    stream: &mut Stream,
    authority: &str,
    path: &str,
    body: &[u8],
    answer_time: Duration,
) -> io::Result<Answer> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // A server that refuses may answer and close before it has read everything, so a failed write is not the end.
    let written = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    read_answer(stream, answer_time).map_err(|error| written.err().unwrap_or(error))
}

fn read_answer(stream: &mut Stream, answer_time: Duration) -> io::Result<Answer> {
    let deadline = Instant::now() + answer_time;
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the answer took too long"));
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut buffer)?;
        bytes.extend_from_slice(buffer.get(..read).unwrap_or(&[]));
        if let Some(answer) = parse(&bytes, read == 0).map_err(io::Error::other)? {
            return Ok(answer);
        }
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer is incomplete"));
        }
        if bytes.len() > ANSWER_BYTES {
            return Err(io::Error::other(TOO_LONG));
        }
    }
}

const TOO_LONG: &str = "the answer is too long";

/// Parses an answer. Returns `None` while it is incomplete; `is_all` says that no more bytes will follow.
fn parse(mut bytes: &[u8], is_all: bool) -> Result<Option<Answer>, &'static str> {
    loop {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
        let (head, rest) = (String::from_utf8_lossy(&bytes[..end]), &bytes[end + 4..]);
        let mut lines = head.split("\r\n");
        let line = lines.next().unwrap_or_default();
        let status =
            line.strip_prefix("HTTP/1.").and_then(|line| line.split(' ').nth(1)).and_then(|text| text.parse().ok());
        let Some(status) = status else { return Err("the answer is not HTTP") };
        if (100..200).contains(&status) {
            // An interim answer; the real one follows.
            bytes = rest;
            continue;
        }
        let value = |name: &str| {
            let mut fields = lines.clone().filter_map(|line| line.split_once(':'));
            fields.find(|(field, _)| field.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        };
        if value("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            return Ok(decode_chunks(rest)?.map(|body| Answer { status, body }));
        }
        let length = match value("content-length") {
            Some(text) => Some(text.parse::<usize>().map_err(|_| "the answer's length is not a number")?),
            None if status == 204 || status == 304 => Some(0),
            None => None,
        };
        let body = match length {
            Some(length) => rest.get(..length),
            None => is_all.then_some(rest),
        };
        return Ok(body.map(|body| Answer { status, body: body.to_vec() }));
    }
}

/// Decodes a chunked body (RFC 9112, 7.1). Returns `None` while it is incomplete.
fn decode_chunks(mut rest: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else { return Ok(None) };
        let line = String::from_utf8_lossy(&rest[..end]);
        let size = line.split(';').next().unwrap_or_default().trim();
        let Ok(size) = usize::from_str_radix(size, 16) else { return Err("the answer's chunks are malformed") };
        let data = &rest[end + 2..];
        if size == 0 {
            // Trailers may follow; they are not needed.
            return Ok(Some(body));
        }
        if size > ANSWER_BYTES {
            return Err(TOO_LONG);
        }
        let Some(chunk) = data.get(..size) else { return Ok(None) };
        body.extend_from_slice(chunk);
        let Some(after) = data.get(size + 2..) else { return Ok(None) };
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn answers_of_servers_and_proxies_are_parsed() {
        let ok = |status, body: &str| Ok(Some(Answer { status, body: body.as_bytes().to_vec() }));
        type Read = Result<Option<Answer>, &'static str>;
        let cases: [(&str, bool, Read); 12] = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", false, ok(200, "abc")),
            ("HTTP/1.1 200 OK\r\ncontent-length:3\r\n\r\nabcd", false, ok(200, "abc")),
            ("HTTP/1.0 200 OK\r\n\r\nabc", true, ok(200, "abc")),
            ("HTTP/1.0 200 OK\r\n\r\nabc", false, Ok(None)),
            ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", false, ok(403, "")),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", false, ok(204, "")),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
                false,
                ok(200, "abc"),
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", false, Ok(None)),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
                false,
                Err("the answer's chunks are malformed"),
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n", false, Err("the answer's length is not a number")),
            ("HTTP/1.1 200 OK\r\nContent-Len", true, Ok(None)),
            ("SSH-2.0-OpenSSH_9.6\r\n\r\n", false, Err("the answer is not HTTP")),
        ];
        for (text, is_all, want) in cases {
            assert_eq!(parse(text.as_bytes(), is_all), want, "{text:?}");
            for cut in 0..text.len() {
                // However it is cut, a prefix is the complete answer or none.
                if let Ok(Some(answer)) = parse(&text.as_bytes()[..cut], false) {
                    assert_eq!(Ok(Some(answer)), want, "{text:?} cut at {cut}");
                }
            }
        }
    }

    #[test]
    fn many_interim_answers_need_no_stack() {
        let flood = "HTTP/1.1 100 -\r\n\r\n".repeat(ANSWER_BYTES / 18);
        assert_eq!(parse(flood.as_bytes(), false), Ok(None));
        let answer = parse(format!("{flood}HTTP/1.1 204 -\r\n\r\n").as_bytes(), false);
        assert_eq!(answer, Ok(Some(Answer { status: 204, body: Vec::new() })));
    }

    /// Makes a request to a server that sends `bytes` again and again, with pauses.
    fn post_to(bytes: &'static [u8], pause: Duration, answer_time: Duration) -> io::Error {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = Stream::plain(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(bytes).is_ok() {
                std::thread::sleep(pause);
            }
        });
        let error = post(&mut stream, "host", "/", b"body", answer_time).unwrap_err();
        drop(stream);
        server.join().unwrap();
        error
    }

    #[test]
    fn an_answer_that_never_ends_is_bounded_in_size_and_time() {
        let endless = post_to(&[b'x'; 4096], Duration::ZERO, Duration::from_secs(60));
        assert_eq!(endless.to_string(), TOO_LONG);
        let start = Instant::now();
        let slow = post_to(b"x", Duration::from_millis(20), Duration::from_millis(300));
        assert!(matches!(slow.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{slow}");
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
