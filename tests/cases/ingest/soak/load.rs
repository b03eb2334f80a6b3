//! A load: jobs, viewers and uploads, and a kill in the middle. Compares exactly, and prints what it measures:
//!
//! ```text
//! VRAMSCOPE_LOAD="jobs=50 rate=2000 seconds=48 viewers=20 uploads=5" \
//!     cargo test -p tests --test ingest -- soak::load --nocapture
//! ```
//!
//! `VRAMSCOPE_PROGRAM` names another build to compare with. Nothing of the server but its HTTP interface is used.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use format::recording::Decoder;
use tests::peer::{Peer, Received};
use tests::server::Server;
use tests::stream::Stream;
use tests::{Folder, http, soak};
use trace::limits::ImportLimits;
use wire::Message;

use crate::{download, json};

/// Batches of a job in a second.
const BATCHES: u64 = 10;
/// The pause before a client that lost its server tries again.
const RETRY: Duration = Duration::from_millis(20);
/// The time between two requests for the server's health.
const HEALTH: Duration = Duration::from_millis(50);
/// How long everybody waits for a server that does not come back.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is to be done.
#[derive(Clone, Copy, Debug)]
struct Load {
    jobs: u64,
    /// Events of a job in a second.
    rate: u64,
    seconds: u64,
    viewers: u64,
    uploads: u64,
}

impl Load {
    /// Reads the variable. Without it, the load is small in `tests/run`.
    fn read() -> Result<Self> {
        let mut load = match soak::time() {
            Some(time) => Self { jobs: 50, rate: 2_000, seconds: time.as_secs().max(2), viewers: 20, uploads: 5 },
            None => Self { jobs: 8, rate: 2_000, seconds: 2, viewers: 4, uploads: 2 },
        };
        for word in std::env::var("VRAMSCOPE_LOAD").unwrap_or_default().split_whitespace() {
            let (name, value) = word.split_once('=').with_context(|| format!("VRAMSCOPE_LOAD: {word}"))?;
            let value = value.parse()?;
            match name {
                "jobs" => load.jobs = value,
                "rate" => load.rate = value,
                "seconds" => load.seconds = value,
                "viewers" => load.viewers = value,
                "uploads" => load.uploads = value,
                _ => bail!("VRAMSCOPE_LOAD: there is no {name}"),
            }
        }
        ensure!(load.jobs > 0 && load.rate >= BATCHES && load.seconds > 1, "too small: {load:?}");
        Ok(load)
    }
}

/// What all clients share.
struct Scene {
    /// Where the server is now.
    address: RwLock<SocketAddr>,
    begun: Instant,
    /// Microseconds from sending a batch to its acknowledgement, of all jobs.
    acks: Mutex<Vec<u64>>,
    /// Microseconds of each answer about the server's health, while it was there.
    health: Mutex<Vec<u64>>,
    /// Batches that viewers were told to have skipped.
    skipped: AtomicU64,
    is_over: AtomicBool,
}

impl Scene {
    fn address(&self) -> SocketAddr {
        *self.address.read().expect("an address")
    }

    /// Repeats something that fails while the server is gone.
    fn patiently<T>(&self, mut attempt: impl FnMut(SocketAddr) -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        loop {
            match attempt(self.address()) {
                Err(error) if begun.elapsed() > PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(RETRY),
                done => return done,
            }
        }
    }

    /// Sends a job's batches, each when its events have happened, and waits for its acknowledgement.
    fn job(&self, stream: &Stream) -> Result<()> {
        let due = |seq: u64| self.begun + Duration::from_millis(seq * 1_000 / BATCHES);
        // When each batch was first sent.
        let mut sent = vec![None; stream.batches.len() + 1];
        let mut acked = 0;
        self.patiently(|server| {
            let (mut peer, next) = Peer::hello(server, &stream.hello)?;
            assert!(next > acked, "{acked} were acknowledged, and {next} is wanted");
            for seq in next..=stream.last() {
                std::thread::sleep(due(seq).saturating_duration_since(Instant::now()));
                let since = *sent[seq as usize].get_or_insert_with(Instant::now);
                peer.batch(seq, stream.batch(seq))?;
                peer.acked(seq)?;
                self.acks.lock().expect("times").push(since.elapsed().as_micros() as u64);
                acked = seq;
            }
            peer.end(stream.last())
        })
    }

    /// Watches a job from its beginning to its end, and compares what arrives.
    fn view(&self, stream: &Stream) -> Result<()> {
        let mut seen = 0;
        self.patiently(|server| {
            let mut viewer = Peer::viewer(server, stream.session(), seen)?;
            let mut is_first = true;
            while seen < stream.last() {
                match viewer.receive()? {
                    Received::Batch { seq, chunks, .. } => {
                        // One that comes late gets the state first, in place of the batches before it.
                        let is_state = std::mem::take(&mut is_first) && chunks != stream.batch(seq);
                        assert!(is_state || seq > seen && chunks == stream.batch(seq), "{seq} after {seen} differs");
                        self.skipped.fetch_add(seq.saturating_sub(seen + 1), Ordering::Relaxed);
                        seen = seen.max(seq);
                    }
                    Received::Message(Message::Refused(refused)) => bail!("refused: {}", refused.message),
                    Received::Message(_) => {}
                }
            }
            Ok(())
        })
    }

    /// Uploads a recording again and again, and compares the number of events that arrived.
    fn upload(&self, stream: &Stream) -> Result<u64> {
        let mut count = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let response = self.patiently(|server| {
                let length = stream.file.len().to_string();
                let head = http::head("POST", server, "/api/v1/traces?name=load", &[("Content-Length", &length)]);
                let mut socket = std::net::TcpStream::connect(server)?;
                std::io::Write::write_all(&mut socket, &[head.as_bytes(), &stream.file].concat())?;
                http::receive(socket)
            })?;
            // One address may begin an upload each second.
            if response.status == 429 {
                std::thread::sleep(Duration::from_secs(1));
                continue;
            }
            ensure!(response.status == 201, "{} {}", response.status, response.text());
            let link: serde_json::Value = serde_json::from_slice(&response.body)?;
            let token = link["token"].as_str().with_context(|| format!("no token in {link}"))?;
            let path = format!("/api/v1/traces/{token}/trace");
            let file = self.patiently(|server| http::get(server, &path, &[]))?;
            ensure!(file.status == 200, "{} {}", file.status, file.text());
            let mut decoder = Decoder::new(ImportLimits::default());
            decoder.push(&file.body)?;
            let events: u64 = decoder.finish()?.0.devices.iter().map(|device| device.events.len() as u64).sum();
            ensure!(events == stream.events, "{events} of {} events arrived", stream.events);
            count += 1;
        }
        Ok(count)
    }

    /// Asks for the server's health while there is a server.
    fn ask(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let (server, begun) = (self.address(), Instant::now());
            // Of a server that was killed, there is no answer to measure.
            if http::get(server, "/healthz", &[]).is_ok_and(|response| response.status == 200) {
                self.health.lock().expect("times").push(begun.elapsed().as_micros() as u64);
            }
            std::thread::sleep(HEALTH);
        }
    }
}

/// Returns a quantile of times in milliseconds.
fn quantile(times: &Mutex<Vec<u64>>, share: f64) -> f64 {
    let mut times = times.lock().expect("times").clone();
    times.sort_unstable();
    let at = (times.len() as f64 * share) as usize;
    times.get(at.min(times.len().saturating_sub(1))).map_or(f64::NAN, |micros| *micros as f64 / 1e3)
}

/// Returns the most memory that a server has used, in MiB.
fn peak_mib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() >> 10
}

/// Returns how many batches of a stream are in its download, in their order.
fn equal(file: &[u8], stream: &Stream) -> u64 {
    let mut rest = file.strip_prefix(&format::prelude()[..]).unwrap_or_default();
    let mut count = 0;
    for batch in &stream.batches {
        if let Some(after) = rest.strip_prefix(&batch[..]) {
            (rest, count) = (after, count + 1);
        } else if let Some(at) = rest.windows(batch.len()).position(|window| window == batch) {
            (rest, count) = (&rest[at + batch.len()..], count + 1);
        }
    }
    count
}

#[test]
fn under_load_and_a_kill_every_batch_is_there() -> Result<()> {
    let load = Load::read()?;
    println!("{load:?}");
    let batches = (load.seconds * BATCHES) as usize;
    let streams: Vec<_> =
        (0..load.jobs).map(|i| Stream::new(900 + i, batches, (load.rate / BATCHES) as usize)).collect();
    let shared = Stream::new(800, 20, 5_000);
    let folder = Folder::new("load")?;
    let server = Server::start_in(&folder, &[])?;
    let scene = Scene {
        address: RwLock::new(server.address()),
        begun: Instant::now(),
        acks: Mutex::default(),
        health: Mutex::default(),
        skipped: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    };
    let (server, memory, uploads, away) = std::thread::scope(|scope| {
        let scene = &scene;
        let jobs: Vec<_> = streams.iter().map(|stream| scope.spawn(|| scene.job(stream))).collect();
        let viewed = streams.iter().cycle().take(load.viewers as usize);
        let viewers: Vec<_> = viewed.map(|stream| scope.spawn(|| scene.view(stream))).collect();
        let uploads: Vec<_> = (0..load.uploads).map(|_| scope.spawn(|| scene.upload(&shared))).collect();
        let asking = scope.spawn(|| scene.ask());
        std::thread::sleep(Duration::from_millis(load.seconds * 500));
        let (before, killed) = (peak_mib(&server), Instant::now());
        server.kill()?;
        let server = Server::start_in(&folder, &[])?;
        let away = killed.elapsed();
        *scene.address.write().expect("an address") = server.address();
        let join = |clients: Vec<std::thread::ScopedJoinHandle<'_, Result<()>>>| {
            clients.into_iter().try_for_each(|client| client.join().expect("a client"))
        };
        let ended = join(jobs).context("a job").and_then(|()| join(viewers).context("a viewer"));
        scene.is_over.store(true, Ordering::Relaxed);
        let uploads = uploads.into_iter().map(|upload| upload.join().expect("an upload")).sum::<Result<u64>>();
        asking.join().expect("the one who asks");
        ended?;
        let memory = before.max(peak_mib(&server));
        anyhow::Ok((server, memory, uploads.context("an upload")?, away))
    })?;
    let all: u64 = streams.iter().map(Stream::last).sum();
    let mut found = 0;
    for stream in &streams {
        let file = download(&server, stream.session())?;
        found += equal(&file, stream);
        let session = json(&server, &format!("/api/v1/sessions/{}", stream.session()))?;
        ensure!(file == stream.file && session["lost"] == 0, "{}: {session}", stream.session());
    }
    println!(
        "batches equal: {found} of {all}; skipped by viewers: {}; uploads: {uploads}; away: {} ms",
        scene.skipped.load(Ordering::Relaxed),
        away.as_millis()
    );
    println!("ack: p50 {:.1} ms, p99 {:.1} ms", quantile(&scene.acks, 0.5), quantile(&scene.acks, 0.99));
    println!("/healthz: p99 {:.1} ms, longest {:.1} ms", quantile(&scene.health, 0.99), quantile(&scene.health, 1.0));
    println!("memory: {memory} MiB at the peak");
    assert_eq!(found, all);
    Ok(())
}
