//! A small HTTP client: one request per connection, every byte of it chosen by the test.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};

/// A response.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the value of a header, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(have, _)| have == name).map_or("", |(_, value)| value)
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends a GET request for `path` with further headers.
pub fn get(server: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
    send(server, &head("GET", server, path, headers))
}

/// Returns the head of a request that is its connection's only one.
pub fn head(method: &str, server: SocketAddr, path: &str, headers: &[(&str, &str)]) -> String {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request + "\r\n"
}

/// Sends the bytes of a request, and reads to the end of the connection.
pub fn send(server: SocketAddr, request: &str) -> Result<Response> {
    let mut stream = TcpStream::connect(server)?;
    stream.write_all(request.as_bytes())?;
    receive(stream)
}

/// Reads a response to the end of the connection.
pub fn receive(mut stream: TcpStream) -> Result<Response> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    read(&mut stream)
}

/// Reads a response to the end of any connection.
pub fn read(stream: &mut impl Read) -> Result<Response> {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;

    let end =
        answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").context("the response has no end of its head")?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("the response has no status")?.parse()?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut response = Response { status, headers, body: answer[end + 4..].to_vec() };
    if response.header("transfer-encoding") == "chunked" {
        response.body = unchunked(&response.body)?;
    }
    Ok(response)
}

/// Joins the chunks of a body. Fails if the last one is missing.
fn unchunked(mut bytes: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n").context("a piece has no length")?;
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end])?, 16)?;
        let piece = bytes.get(end + 2..end + 2 + length).context("a piece is cut short")?;
        if length == 0 {
            return Ok(body);
        }
        body.extend_from_slice(piece);
        bytes = bytes.get(end + 4 + length..).context("the last piece is missing")?;
    }
}
