//! Traces that are shared by links: the real server, the real commands, and strangers.
#![cfg(unix)]

#[cfg(target_os = "linux")]
mod full_disk;
mod hostile;
mod inside;
mod interrupted;
mod programs;
mod roles;
mod slow;
mod soak;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, ensure};
use format::Header;
use serde_json::{Value, json};
use tests::http::{self, Response};
use trace::Snapshot;

/// A small recording.
fn recording() -> Vec<u8> {
    let imported = sample();
    format::write(&Header { name: "train.py".to_owned(), ..Header::default() }, &imported)
}

/// A snapshot from the fixtures.
fn sample() -> Snapshot {
    let bytes = std::fs::read(fixture()).expect("the fixture is there");
    let mut importer = format::import::Importer::new(trace::limits::ImportLimits::default());
    importer.push(&bytes).and_then(|()| importer.finish()).expect("the fixture can be read").snapshot
}

/// The path of a snapshot among the fixtures.
fn fixture() -> std::path::PathBuf {
    tests::workspace("tests/fixtures/ring.pickle")
}

/// A client of a server's API.
#[derive(Clone, Copy)]
struct Client<'a> {
    server: SocketAddr,
    /// The token of the server; empty for none.
    token: &'a str,
}

impl<'a> Client<'a> {
    fn new(server: SocketAddr) -> Self {
        Self { server, token: "" }
    }

    fn with(self, token: &'a str) -> Self {
        Self { token, ..self }
    }

    /// Sends a request below `/api/v1/traces`.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Response> {
        let (bearer, length) = (format!("Bearer {}", self.token), body.len().to_string());
        let mut all = vec![("Content-Length", length.as_str())];
        if !self.token.is_empty() {
            all.push(("Authorization", &bearer));
        }
        all.extend_from_slice(headers);
        let mut stream = TcpStream::connect(self.server)?;
        stream.write_all(http::head(method, self.server, &format!("/api/v1/traces{path}"), &all).as_bytes())?;
        // The server may answer, and close the connection, before it has read everything.
        let _ = stream.write_all(body);
        http::receive(stream)
    }

    fn json(&self, method: &str, path: &str, body: &Value) -> Result<Response> {
        self.send(method, path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    }

    fn get(&self, path: &str) -> Result<Response> {
        self.send("GET", path, &[], b"")
    }

    /// Begins an upload.
    fn begin(&self, bytes: usize, more: &Value) -> Result<Value> {
        let mut body = json!({ "bytes": bytes, "name": "train.py" });
        for (key, value) in more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        read(&self.json("POST", "/uploads", &body)?, 201)
    }

    /// Sends the rest of an upload and finishes it. Returns the link.
    fn finish(&self, id: &str, recording: &[u8], part: usize) -> Result<Value> {
        let mut at = read(&self.get(&format!("/uploads/{id}"))?, 200)?["received"].as_u64().unwrap_or(0) as usize;
        while at < recording.len() {
            let bytes = &recording[at..recording.len().min(at + part)];
            let sent = self.send("PUT", &format!("/uploads/{id}?from={at}"), &[], bytes)?;
            at = read(&sent, 200)?["received"].as_u64().context("no number")? as usize;
        }
        read(&self.send("POST", &format!("/uploads/{id}/finish"), &[], b"")?, 201)
    }

    /// Shares a recording. Returns its token and its delete token.
    fn share(&self, recording: &[u8], more: &Value) -> Result<(String, String)> {
        let begun = self.begin(recording.len(), more)?;
        self.finish(text(&begun, "id"), recording, 1 << 20)?;
        Ok((text(&begun, "token").to_owned(), text(&begun, "delete_token").to_owned()))
    }
}

/// Returns the JSON of a response that must have a status.
fn read(response: &Response, status: u16) -> Result<Value> {
    ensure!(response.status == status, "{} instead of {status}: {}", response.status, response.text());
    Ok(serde_json::from_slice(&response.body)?)
}

/// Returns the code of a refusal.
fn code(response: &Response) -> String {
    let json: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    text(&json["error"], "code").to_owned()
}

fn text<'a>(json: &'a Value, key: &str) -> &'a str {
    json[key].as_str().unwrap_or_default()
}
