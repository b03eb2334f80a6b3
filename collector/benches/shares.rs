//! How fast a trace is uploaded to be shared, beside a plain handler that copies the same body to the same disk.
//!
//! `cargo bench -p collector --bench shares [FILE.vramscope]` starts the server as a separate process. It sends a recording
//! to a handler that only writes it to a file and syncs it, and to the routes of shares in parts and in one request; each is
//! repeated, in turns, and the fastest of each counts. Then 64 clients upload different recordings at once. It prints MiB a
//! second, the share of the plain handler's speed, and the server's peak memory. Without a file, it makes a recording of ten
//! million events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use format::{End, EventColumns, Header, Writer};
use futures_util::StreamExt;
use trace::event::Action;
use trace::frames::{StackId, Symbols};
use trace::limits::{CHUNK_EVENTS, ServerLimits, ShareLimits};
use trace::units::Address;
use trace::{Event, Tag, TagId, Tags};
use vramscope::bus::LocalBus;
use vramscope::ingest::{Retention, Sessions};
use vramscope::server::{self, App, Hosts};
use vramscope::shares::{Shares, Terms};
use vramscope::store::SegmentStore;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Set to the server's folder in the server's process.
const SERVER: &str = "VRAMSCOPE_BENCH_SERVER";
/// Times that each way is measured.
const ROUNDS: usize = 5;
/// Clients that upload at once.
const CLIENTS: usize = 64;
/// Bytes of a part.
const PART: usize = 4 << 20;

/// A recording that looks like a training job's: sizes and places repeat.
fn recording(events: u64, seed: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&Header { name: format!("bench {seed}"), ..Header::default() }, &mut out);
    let mut tags = Tags::default();
    tags.intern(Tag::default());
    writer.symbols(&Symbols::default(), &tags, &mut out);
    let mut columns = EventColumns::default();
    let mut random = seed;
    for number in 0..events {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        columns.push(Event {
            action: if number % 2 == 0 { Action::Alloc } else { Action::FreeCompleted },
            address: Address(0x7f00_0000_0000 + ((random >> 40) << 9)),
            size: 512 << (random >> 61),
            time_us: (number * 3) as i64,
            tag: TagId(0),
            stack: StackId(0),
        });
        if columns.len() == CHUNK_EVENTS {
            writer.events(0, number + 1 - columns.len() as u64, &columns, &mut out);
            columns.clear();
        }
    }
    writer.events(0, events - columns.len() as u64, &columns, &mut out);
    writer.end(&End { events, ..End::default() }, &mut out);
    out
}

/// Writes the body of a request to a file and syncs it: what copying costs.
async fn copy(folder: PathBuf, body: Body) -> &'static str {
    let copied = async {
        let mut file = tokio::task::spawn_blocking(move || std::fs::File::create(folder.join("copy"))).await??;
        let (mut stream, mut gathered) = (body.into_data_stream(), Vec::new());
        while let Some(bytes) = stream.next().await {
            gathered.extend_from_slice(&bytes?);
            if gathered.len() >= 256 << 10 {
                let full = std::mem::take(&mut gathered);
                file = tokio::task::spawn_blocking(move || file.write_all(&full).map(|()| file)).await??;
            }
        }
        tokio::task::spawn_blocking(move || file.write_all(&gathered).and_then(|()| file.sync_data())).await??;
        Ok::<_, Failure>(())
    };
    match copied.await {
        Ok(()) => "copied",
        Err(_) => "failed",
    }
}

/// Serves both until the process is killed.
fn serve(folder: &Path) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let store = Arc::new(SegmentStore::open(folder, 1 << 30)?);
    let limits = ShareLimits { begins: (100_000, 1e6), ..ShareLimits::default() };
    let shares = Shares::open(store.shared(), limits, Terms::default());
    let bus = Arc::new(LocalBus::new(1 << 20));
    let sessions = Sessions::open(store, bus, ServerLimits::default(), Retention::default(), Arc::default())?;
    let plain = folder.to_owned();
    runtime.block_on(async {
        let listener = server::listen("127.0.0.1:0".parse()?, &ServerLimits::default())?;
        let address = listener.local_addr()?;
        let copier = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{address} {}", copier.local_addr()?);
        let route = post(move |body: Body| copy(plain, body)).layer(axum::extract::DefaultBodyLimit::disable());
        tokio::spawn(axum::serve(copier, Router::new().route("/", route)).into_future());
        let app = App::new(sessions, Hosts::new(address, &[])).sharing(shares);
        let _ = server::run(listener, app, std::future::pending()).await;
        Ok(())
    })
}

/// A server's process, killed when it is dropped.
struct Server {
    child: Child,
    shares: SocketAddr,
    copier: SocketAddr,
}

impl Server {
    fn start(folder: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?).env(SERVER, folder).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let mut addresses = line.split_whitespace().map(str::parse);
        let mut next = || addresses.next().ok_or("no address")?.map_err(|_| "not an address");
        Ok(Self { shares: next()?, copier: next()?, child })
    }

    /// Returns the most memory that it has used, in MiB.
    fn peak_mib(&self) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no peak")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? >> 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request and returns the body of its answer.
fn send(server: SocketAddr, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut stream = TcpStream::connect(server)?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let at = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or("no answer")?;
    if !answer.starts_with(b"HTTP/1.1 2") {
        return Err(String::from_utf8_lossy(&answer).into_owned().into());
    }
    Ok(answer.split_off(at + 4))
}

/// Uploads a recording in parts.
fn upload(server: SocketAddr, recording: &[u8]) -> Result<(), Failure> {
    let body = format!("{{\"bytes\":{}}}", recording.len());
    let begun = send(server, "POST", "/api/v1/traces/uploads", "application/json", body.as_bytes())?;
    let begun: serde_json::Value = serde_json::from_slice(&begun)?;
    let path = format!("/api/v1/traces/uploads/{}", begun["id"].as_str().ok_or("no id")?);
    for (part, from) in recording.chunks(PART).zip((0..).step_by(PART)) {
        send(server, "PUT", &format!("{path}?from={from}"), "application/octet-stream", part)?;
    }
    send(server, "POST", &format!("{path}/finish"), "application/json", b"")?;
    Ok(())
}

fn seconds(run: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
    let begun = Instant::now();
    run()?;
    Ok(begun.elapsed().as_secs_f64())
}

fn main() -> Result<(), Failure> {
    if let Some(folder) = std::env::var_os(SERVER) {
        return serve(Path::new(&folder));
    }
    let folder = tempfile::tempdir()?;
    let server = Server::start(folder.path())?;
    std::thread::sleep(Duration::from_millis(300));
    let file = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let recording = match &file {
        Some(file) => std::fs::read(file)?,
        None => recording(10_000_000, 1),
    };
    let mib = recording.len() as f64 / f64::from(1 << 20);
    println!("a recording of {mib:.1} MiB");
    let mut best = [f64::INFINITY; 3];
    for _ in 0..ROUNDS {
        let times = [
            seconds(|| send(server.copier, "POST", "/", "application/octet-stream", &recording).map(drop))?,
            seconds(|| upload(server.shares, &recording))?,
            seconds(|| {
                send(server.shares, "POST", "/api/v1/traces", "application/octet-stream", &recording).map(drop)
            })?,
        ];
        best = std::array::from_fn(|way| best[way].min(times[way]));
    }
    for (name, time) in ["plain handler", "in parts", "in one request"].into_iter().zip(best) {
        println!("{name:16} {:8.1} MiB/s  {:5.0} %", mib / time, best[0] / time * 100.0);
    }
    println!("peak memory {} MiB", server.peak_mib()?);

    let recordings: Vec<Vec<u8>> = (0..CLIENTS as u64).map(|seed| self::recording(100_000, seed + 2)).collect();
    let bytes: usize = recordings.iter().map(Vec::len).sum();
    let time = seconds(|| {
        std::thread::scope(|scope| {
            let uploads: Vec<_> =
                recordings.iter().map(|recording| scope.spawn(|| upload(server.shares, recording))).collect();
            uploads.into_iter().try_for_each(|upload| upload.join().map_err(|_| "an upload panicked")?)
        })
    })?;
    let mib = bytes as f64 / f64::from(1 << 20);
    println!("{CLIENTS} at once: {mib:.1} MiB in {time:.2} s, peak memory {} MiB", server.peak_mib()?);
    Ok(())
}
