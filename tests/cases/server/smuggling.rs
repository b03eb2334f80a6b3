//! Requests that a proxy and this server could understand differently: one request, one answer.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::server::Server;

/// A request within another one's body, which nobody may answer.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: HOST\r\n\r\n";

/// What follows the first two lines of a request whose head is refused; `HIDDEN` stands for the hidden request.
const HEADS: [(&str, &str); 13] = [
    ("two lengths", "Content-Length: 5\r\nContent-Length: 0\r\n\r\nHIDDEN"),
    ("two lengths in one line", "Content-Length: 0, 5\r\n\r\nHIDDEN"),
    ("a signed length", "Content-Length: +0\r\n\r\nHIDDEN"),
    ("a negative length", "Content-Length: -1\r\n\r\nHIDDEN"),
    ("a length in another base", "Content-Length: 0x0\r\n\r\nHIDDEN"),
    ("a huge length", "Content-Length: 99999999999999999999999\r\n\r\nHIDDEN"),
    ("a space before the colon", "Content-Length : 0\r\n\r\nHIDDEN"),
    ("a folded line", "X: y\r\n Content-Length: 50\r\n\r\nHIDDEN"),
    ("an unknown coding", "Transfer-Encoding: xchunked\r\n\r\nHIDDEN"),
    ("chunked, and not last", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\nHIDDEN"),
    ("a control character in the coding", "Transfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\nHIDDEN"),
    ("a space before the coding's colon", "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\nHIDDEN"),
    ("a line that ends alone", "X: y\nTransfer-Encoding\u{b}: chunked\r\n\r\n0\r\n\r\nHIDDEN"),
];

/// Requests with a valid head and a malformed chunk. The server may answer them before it has read the body.
const BODIES: [(&str, &str); 3] = [
    ("a huge chunk", "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nHIDDEN"),
    ("a negative chunk", "Transfer-Encoding: chunked\r\n\r\n-1\r\nHIDDEN"),
    ("a chunk that is longer than it says", "Transfer-Encoding: chunked\r\n\r\n1\r\nxxHIDDEN"),
];

/// Sends a request and returns all answers until the server closes the connection, or says nothing more.
fn answers(server: &Server, request: &str) -> Result<String> {
    let mut stream = TcpStream::connect(server.address())?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    // The server may close the connection before it has everything.
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let ended = stream.read_to_end(&mut answer);
    let is_late = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    ensure!(!is_late, "the connection stays open");
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[test]
fn a_request_within_a_body_is_never_answered() -> Result<()> {
    let server = Server::start()?;
    let host = server.address().to_string();
    let hidden = HIDDEN.replace("HOST", &host);
    for (i, (what, rest)) in HEADS.iter().chain(&BODIES).enumerate() {
        for method in ["POST /api/v1/ingest", "GET /healthz"] {
            let request = format!("{method} HTTP/1.1\r\nHost: {host}\r\n{}", rest.replace("HIDDEN", &hidden));
            let got = answers(&server, &request).with_context(|| format!("{what}, {method}"))?;
            let count = got.matches("HTTP/1.1 ").count();
            ensure!(count <= 1, "{what}, {method}: {count} answers: {got}");
            ensure!(i >= HEADS.len() || got.starts_with("HTTP/1.1 4"), "{what}, {method}: {got}");
        }
    }
    ensure!(server.get("/healthz")?.status == 200);
    Ok(())
}

#[test]
fn of_a_length_and_a_coding_the_coding_counts_and_ends_the_connection() -> Result<()> {
    let server = Server::start()?;
    let host = server.address().to_string();
    // A proxy that believes the length would take the hidden request for the body.
    let hidden = HIDDEN.replace("HOST", &host);
    let request = format!(
        "POST /api/v1/ingest HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n\
         0\r\n\r\n{hidden}",
        5 + hidden.len()
    );
    let got = answers(&server, &request)?;
    ensure!(got.matches("HTTP/1.1 ").count() <= 1, "{got}");
    Ok(())
}
