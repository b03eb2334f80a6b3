//! The wire is ordinary MessagePack: an independent library reads the golden stream by the documented keys, and what it
//! writes with those keys is read here.

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tests::workspace;
use trace::limits::WireLimits;
use wire::{Decoder, Message};

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    protocol: u32,
    session: String,
    key: String,
    token: String,
    mode: String,
    #[serde(with = "serde_bytes")]
    header: Vec<u8>,
    first: u64,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Batch {
    seq: u64,
    sent_us: i64,
    #[serde(with = "serde_bytes")]
    chunks: Vec<u8>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Seq {
    seq: u64,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Welcome {
    protocol: u32,
    next: u64,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    code: String,
    message: String,
    retry: bool,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    what: String,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Watch {
    protocol: u32,
    token: String,
    after: u64,
    events: u64,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Status {
    state: String,
    last: u64,
    now_us: i64,
    events: u64,
    lost_events: u64,
    behind_us: i64,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Skipped {
    from: u64,
    to: u64,
    reason: String,
}

/// A message around a body.
fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..], &crc32fast::hash(body).to_le_bytes(), body].concat()
}

/// Returns the bodies of a stream.
fn bodies(mut stream: &[u8]) -> Result<Vec<&[u8]>> {
    let mut bodies = Vec::new();
    while let Some((head, rest)) = stream.split_first_chunk::<8>() {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        bodies.push(rest.get(..length).context("the stream is cut short")?);
        stream = &rest[length..];
    }
    Ok(bodies)
}

/// Reads a body with the library and writes it again.
fn again<T: DeserializeOwned + Serialize>(body: &[u8]) -> Result<Vec<u8>> {
    let value: (u8, T) = rmp_serde::from_slice(body)?;
    Ok(rmp_serde::to_vec_named(&value)?)
}

/// The messages of a stream, as text.
fn read(stream: &[u8]) -> Result<Vec<String>> {
    let mut messages = Vec::new();
    Decoder::new(&WireLimits::default())
        .push(stream, &mut |message: Message<'_>| messages.push(format!("{message:?}")))?;
    Ok(messages)
}

#[test]
fn an_independent_library_reads_and_writes_the_stream() -> Result<()> {
    let golden = std::fs::read(workspace("tests/fixtures/wire_1.bin"))?;
    let bodies = bodies(&golden)?;
    ensure!(bodies.len() == 10, "one message of each kind");
    let mut written = Vec::new();
    for body in bodies {
        let kind = *body.get(1).context("a body without a kind")?;
        let body = match kind {
            1 => again::<Hello>(body),
            2 => again::<Batch>(body),
            3 | 5 => again::<Seq>(body),
            4 => again::<Welcome>(body),
            6 => again::<Refused>(body),
            7 => again::<Ask>(body),
            8 => again::<Watch>(body),
            9 => again::<Status>(body),
            10 => again::<Skipped>(body),
            _ => anyhow::bail!("unknown message kind {kind}"),
        };
        written.extend(framed(&body.with_context(|| format!("kind {kind}"))?));
    }
    ensure!(read(&written)? == read(&golden)?, "{:?}", read(&written)?);
    Ok(())
}
