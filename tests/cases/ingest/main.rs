//! Sessions: how they are received, stored and watched.

mod basics;
mod bounds;
mod crowd;
mod damage;
mod durable;
mod faults;
mod flood;
mod gated_files;
mod gauges;
mod hostile;
mod inside;
mod keeping;
mod memory;
mod peaks;
mod post;
mod security;
mod slow;
#[cfg(target_os = "linux")]
mod soak;
mod strangers;
mod waits;
mod watching;

use anyhow::Result;
use serde_json::Value;
use tests::server::Server;

/// Returns the API's JSON at a path.
fn json(server: &Server, path: &str) -> Result<Value> {
    let response = server.get(path)?;
    anyhow::ensure!(response.status == 200, "{path}: {} {}", response.status, response.text());
    Ok(serde_json::from_slice(&response.body)?)
}

/// Downloads a session's recording.
fn download(server: &Server, session: &str) -> Result<Vec<u8>> {
    let response = server.get(&format!("/api/v1/sessions/{session}/trace?format=vramscope"))?;
    anyhow::ensure!(response.status == 200, "{} {}", response.status, response.text());
    Ok(response.body)
}

/// Checks that a download equals what was sent; the error names the first difference.
fn check_same(what: &str, got: &[u8], want: &[u8]) {
    let differs = got.iter().zip(want).position(|(a, b)| a != b);
    assert!(got == want, "{what}: {} bytes for {}, first other at {differs:?}", got.len(), want.len());
}
