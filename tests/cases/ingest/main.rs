//! Sessions: how they come in, how they are kept, and how they are watched.

mod basics;
mod bounds;
mod durable;
mod faults;
mod hostile;
mod inside;
mod keeping;
mod peaks;
mod post;
mod security;
mod watching;

use anyhow::Result;
use serde_json::Value;
use tests::server::Server;

/// What the API says at a path.
fn json(server: &Server, path: &str) -> Result<Value> {
    let response = server.get(path)?;
    anyhow::ensure!(response.status == 200, "{path}: {} {}", response.status, response.text());
    Ok(serde_json::from_slice(&response.body)?)
}

/// A session's file, as it is downloaded.
fn download(server: &Server, session: &str) -> Result<Vec<u8>> {
    let response = server.get(&format!("/api/v1/sessions/{session}/trace?format=vramscope"))?;
    anyhow::ensure!(response.status == 200, "{} {}", response.status, response.text());
    Ok(response.body)
}

/// Whether a download is what was sent; says where it is not, rather than all of both.
fn check_same(what: &str, got: &[u8], want: &[u8]) {
    let differs = got.iter().zip(want).position(|(a, b)| a != b);
    assert!(got == want, "{what}: {} bytes for {}, first other at {differs:?}", got.len(), want.len());
}
