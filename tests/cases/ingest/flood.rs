//! How honest clients fare while strangers at one address hold as many connections as they can. Prints what it measures:
//!
//! ```text
//! VRAMSCOPE_FLOOD=10000 cargo test -p tests --test ingest -- flood:: --nocapture
//! ```
//!
//! `VRAMSCOPE_FLOOD` is the number of hostile connections, `VRAMSCOPE_FLOOD_MILLIS` the time for each kind of them,
//! `VRAMSCOPE_FLOOD_POSTS` the number of unfinished messages, and `VRAMSCOPE_PROGRAM` names another build to compare with.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tests::peer::Peer;
use tests::server::Server;
use tests::stream::Stream;
use tests::{Folder, connect_from, http};
use trace::limits::WireLimits;
use wire::Message;

const TOKEN: &str = "correct-horse-battery-staple";
/// Where hostile clients are; the honest ones are at 127.0.0.1. Only Linux has this address, so nobody is hostile elsewhere.
const HOSTILE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// A hostile client that was closed comes back after this time.
const RETURN: Duration = Duration::from_secs(1);
/// What an honest request may take at most on a slow and busy machine.
const MOST_MILLIS: f64 = 2_000.0;
/// What a client sends first that goes on with a byte at a time, while four others beside it are silent.
const DRIP: &[u8] = b"GET /";
/// Threads of hostile clients.
const THREADS: usize = 2;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn start(folder: &Folder) -> Result<Server> {
    Server::start_with(&["--token-file", &folder.secret("token", TOKEN)?])
}

/// Returns a value of the process's status in MiB.
fn mib(server: &Server, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() >> 10
}

/// What hostile clients send before they fall silent.
fn openings(server: SocketAddr, session: &str) -> Vec<(&'static str, Vec<u8>)> {
    let upgrade = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: {server}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        .into_bytes()
    };
    let post =
        format!("POST /api/v1/ingest HTTP/1.1\r\nHost: {server}\r\nContent-Length: 60000000\r\n\r\n").into_bytes();
    let half_hello = [&50_000_u32.to_le_bytes()[..], &[0; 20_000]].concat();
    vec![
        ("silent", Vec::new()),
        ("half a head", b"GET /api/v1/sessions HTTP/1.1\r\nHos".to_vec()),
        ("silent collectors", upgrade("/api/v1/ingest")),
        ("silent viewers", upgrade(&format!("/api/v1/sessions/{session}/live"))),
        ("half a hello by POST", [&post[..], &half_hello].concat()),
        ("a byte by POST", [&post[..], b"\0"].concat()),
        ("silent, and every fifth dripping", DRIP.to_vec()),
        ("unread downloads", format!("GET /sample.pickle HTTP/1.1\r\nHost: {server}\r\n\r\n").into_bytes()),
    ]
}

/// One hostile client.
enum Hostile {
    Open(TcpStream),
    Closed(Instant),
}

/// Keeps hostile connections open until it is stopped.
fn attack(server: SocketAddr, count: usize, opening: &[u8], is_over: &AtomicBool, tries: &AtomicU64) {
    let mut clients: Vec<Hostile> = (0..count).map(|_| Hostile::Closed(Instant::now() - RETURN)).collect();
    let mut rest = vec![0; 4_096];
    while !is_over.load(Ordering::Relaxed) {
        for (i, client) in clients.iter_mut().enumerate() {
            let is_dripping = opening == DRIP && i % 5 == 0;
            let opening = if opening == DRIP && !is_dripping { &[][..] } else { opening };
            match client {
                Hostile::Closed(since) if since.elapsed() >= RETURN => {
                    tries.fetch_add(1, Ordering::Relaxed);
                    let opened = connect_from(HOSTILE, server, RETURN).and_then(|mut stream| {
                        stream.set_nonblocking(true)?;
                        stream.write_all(opening)?;
                        Ok(stream)
                    });
                    *client = opened.map_or_else(|_| Hostile::Closed(Instant::now()), Hostile::Open);
                }
                Hostile::Closed(_) => {}
                Hostile::Open(stream) if is_dripping => {
                    if stream.write(b"x").is_err_and(|error| error.kind() != ErrorKind::WouldBlock) {
                        *client = Hostile::Closed(Instant::now());
                    }
                }
                // Reads an upgrade's answer, but no download.
                Hostile::Open(stream) if !opening.starts_with(b"GET /sample") => match stream.read(&mut rest) {
                    Ok(1..) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Ok(0) | Err(_) => *client = Hostile::Closed(Instant::now()),
                },
                Hostile::Open(stream) => {
                    if stream.write(b"\r\n").is_err_and(|error| error.kind() != ErrorKind::WouldBlock) {
                        *client = Hostile::Closed(Instant::now());
                    }
                }
            }
            if is_over.load(Ordering::Relaxed) {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The times of one kind of honest request.
#[derive(Default)]
struct Times {
    millis: Vec<f64>,
    failures: usize,
}

impl Times {
    fn run(&mut self, request: impl FnOnce() -> Result<()>) {
        let begun = Instant::now();
        match request() {
            Ok(()) => self.millis.push(begun.elapsed().as_secs_f64() * 1e3),
            Err(_) => self.failures += 1,
        }
    }

    fn quantile(&mut self, share: f64) -> f64 {
        self.millis.sort_by(f64::total_cmp);
        let at = (self.millis.len() as f64 * share) as usize;
        self.millis.get(at.min(self.millis.len().saturating_sub(1))).copied().unwrap_or(f64::INFINITY)
    }
}

/// Sends honest requests of each kind for some time.
fn measure(server: SocketAddr, stream: &Stream, time: Duration) -> [(&'static str, Times); 4] {
    let bearer = format!("Bearer {TOKEN}");
    let header = [("Authorization", &*bearer)];
    let mut times = ["health", "sessions", "collector", "collector by POST"].map(|name| (name, Times::default()));
    let hello = Message::Hello(stream.hello.clone()).to_bytes();
    let begun = Instant::now();
    while begun.elapsed() < time {
        let [(_, health), (_, sessions), (_, collector), (_, post)] = &mut times;
        let get = |path: &str| -> Result<()> {
            let response = http::get(server, path, &header)?;
            ensure!(response.status == 200, "{path}: {}", response.status);
            Ok(())
        };
        health.run(|| get("/healthz"));
        sessions.run(|| get("/api/v1/sessions"));
        collector.run(|| Peer::hello(server, &stream.hello).map(|_| ()));
        post.run(|| {
            let mut socket = TcpStream::connect(server)?;
            let head =
                format!("POST /api/v1/ingest HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\nContent-Length: ");
            socket.write_all(&[format!("{head}{}\r\n\r\n", hello.len()).as_bytes(), &hello].concat())?;
            ensure!(http::receive(socket)?.status == 200, "refused");
            Ok(())
        });
        // A pause as between the requests of people, so that the server isn't busy with these alone.
        std::thread::sleep(Duration::from_millis(5));
    }
    times
}

#[test]
fn honest_clients_are_served_while_one_address_holds_all_connections_that_it_may() -> Result<()> {
    let count = number("VRAMSCOPE_FLOOD", 320) as usize;
    let time = Duration::from_millis(number("VRAMSCOPE_FLOOD_MILLIS", 300));
    let folder = Folder::new("flood")?;
    let server = start(&folder)?;
    let address = server.address();
    let mut stream = Stream::new(100, 1, 100);
    stream.hello.token = TOKEN.to_owned();
    let (mut peer, _) = Peer::hello(address, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    drop(peer);
    let mut late = Vec::new();
    let before = mib(&server, "VmRSS:");
    let calm = ("nobody", Vec::new());
    for (what, opening) in std::iter::once(calm).chain(openings(address, stream.session())) {
        let count = if what == "nobody" { 0 } else { count };
        let (is_over, tries) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let attackers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (opening, is_over, tries) = (opening.clone(), Arc::clone(&is_over), Arc::clone(&tries));
                std::thread::spawn(move || attack(address, count / THREADS, &opening, &is_over, &tries))
            })
            .collect();
        // All of them have tried to connect.
        let end = Instant::now() + Duration::from_secs(10);
        while tries.load(Ordering::Relaxed) < (count / THREADS * THREADS) as u64 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        let times = measure(address, &stream, time);
        is_over.store(true, Ordering::Relaxed);
        attackers.into_iter().for_each(|attacker| attacker.join().expect("an attacker"));
        println!("{count} {what}, {} tries:", tries.load(Ordering::Relaxed));
        for (name, mut times) in times {
            let [p50, p99, most] = [0.5, 0.99, 1.0].map(|share| times.quantile(share));
            let (done, failures) = (times.millis.len(), times.failures);
            println!("  {name:18} {done:5} in {p50:7.2} ms (p99 {p99:7.2}, longest {most:7.2}), {failures} failed");
            if failures > 0 || p99 > MOST_MILLIS {
                late.push(format!("{count} {what}: {name} {p99} ms, {failures} of {} failed", done + failures));
            }
        }
    }
    let peak = mib(&server, "VmHWM:");
    println!("memory: {before} MiB before, {peak} MiB at the peak");
    ensure!(late.is_empty(), "{late:#?}");
    ensure!(peak < before + 100, "{before} MiB before, {peak} MiB at the peak");
    Ok(())
}

#[test]
fn unfinished_messages_of_strangers_take_little_memory() -> Result<()> {
    let count = number("VRAMSCOPE_FLOOD_POSTS", 24);
    let folder = Folder::new("unfinished")?;
    let server = start(&folder)?;
    let address = server.address();
    let limit = WireLimits::default().frame_bytes;
    let before = mib(&server, "VmRSS:");
    let head = format!("POST /api/v1/ingest HTTP/1.1\r\nHost: {address}\r\nContent-Length: 60000000\r\n\r\n");
    let body = Arc::new([head.as_bytes(), &(limit as u32).to_le_bytes(), &vec![0; limit - 4_096]].concat());
    let clients: Vec<_> = (0..count)
        .map(|_| {
            let body = Arc::clone(&body);
            std::thread::spawn(move || {
                let mut socket = TcpStream::connect(address).ok()?;
                socket.set_write_timeout(Some(Duration::from_secs(10))).ok()?;
                // The server may refuse it before all of it was sent.
                let _ = socket.write_all(&body);
                Some(socket)
            })
        })
        .collect();
    let open: Vec<_> = clients.into_iter().filter_map(|client| client.join().expect("a client")).collect();
    let peak = mib(&server, "VmHWM:");
    println!("{count} unfinished messages: {before} MiB before, {peak} MiB at the peak");
    assert_eq!(server.get("/healthz")?.status, 200);
    drop(open);
    ensure!(peak < before + 100, "{before} MiB before, {peak} MiB at the peak");
    Ok(())
}
