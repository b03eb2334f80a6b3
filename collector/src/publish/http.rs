//! One request and its answer over HTTP/1.1: as much of it as a POST needs.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Bytes of an answer. A server's has some hundred; a proxy's page about an error has some thousand.
const ANSWER_BYTES: usize = 1 << 20;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Sends a body, and reads the answer. The connection serves this one request.
pub(super) fn post(mut stream: &TcpStream, authority: &str, path: &str, body: &[u8]) -> io::Result<Answer> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // A server that refuses may answer before it has read all, and close.
    let written = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = match stream.read(&mut piece) {
            Ok(read) => read,
            Err(error) => return Err(written.err().unwrap_or(error)),
        };
        bytes.extend_from_slice(piece.get(..read).unwrap_or(&[]));
        if let Some(answer) = parse(&bytes, read == 0).map_err(io::Error::other)? {
            return Ok(answer);
        }
        if read == 0 || bytes.len() > ANSWER_BYTES {
            let error = io::Error::new(io::ErrorKind::UnexpectedEof, "the answer is no whole one");
            return Err(written.err().unwrap_or(error));
        }
    }
}

/// The answer that `bytes` are, once it is whole; `is_all` says that no more will come.
fn parse(bytes: &[u8], is_all: bool) -> Result<Option<Answer>, &'static str> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let (head, rest) = (String::from_utf8_lossy(&bytes[..end]), &bytes[end + 4..]);
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let status =
        line.strip_prefix("HTTP/1.").and_then(|line| line.split(' ').nth(1)).and_then(|text| text.parse().ok());
    let Some(status) = status else { return Err("what answers is no HTTP server") };
    if (100..200).contains(&status) {
        return parse(rest, is_all);
    }
    let value = |name: &str| {
        let mut found = lines.clone().filter_map(|line| line.split_once(':'));
        found.find(|(have, _)| have.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    if value("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        return Ok(unchunk(rest)?.map(|body| Answer { status, body }));
    }
    let length = match value("content-length") {
        Some(text) => Some(text.parse::<usize>().map_err(|_| "the answer's length is no number")?),
        None if status == 204 || status == 304 => Some(0),
        None => None,
    };
    let body = match length {
        Some(length) => rest.get(..length),
        None => is_all.then_some(rest),
    };
    Ok(body.map(|body| Answer { status, body: body.to_vec() }))
}

/// A body that came in chunks (RFC 9112, 7.1), once it is whole.
fn unchunk(mut rest: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else { return Ok(None) };
        let line = String::from_utf8_lossy(&rest[..end]);
        let size = line.split(';').next().unwrap_or_default().trim();
        let Ok(size) = usize::from_str_radix(size, 16) else { return Err("the answer's chunks can't be read") };
        let data = &rest[end + 2..];
        if size == 0 {
            // What may follow are trailers, which nobody needs.
            return Ok(Some(body));
        }
        if size > ANSWER_BYTES {
            return Err("the answer is too long");
        }
        let Some(chunk) = data.get(..size) else { return Ok(None) };
        body.extend_from_slice(chunk);
        let Some(after) = data.get(size + 2..) else { return Ok(None) };
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_servers_and_proxies_write_them() {
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
                Err("the answer's chunks can't be read"),
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n", false, Err("the answer's length is no number")),
            ("HTTP/1.1 200 OK\r\nContent-Len", true, Ok(None)),
            ("SSH-2.0-OpenSSH_9.6\r\n\r\n", false, Err("what answers is no HTTP server")),
        ];
        for (text, is_all, want) in cases {
            assert_eq!(parse(text.as_bytes(), is_all), want, "{text:?}");
            for cut in 0..text.len() {
                // Whatever the pieces, nothing but an answer that is whole, or none.
                if let Ok(Some(answer)) = parse(&text.as_bytes()[..cut], false) {
                    assert_eq!(Ok(Some(answer)), want, "{text:?} cut at {cut}");
                }
            }
        }
    }
}
