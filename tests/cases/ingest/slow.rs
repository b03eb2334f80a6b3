//! Clients that do not read what they asked for: they lose their connections, and stop nobody meanwhile.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use format::seal;
use tests::http;
use tests::peer::Peer;
use tests::stream::{Random, Stream};
use trace::limits::ServerLimits;
use vramscope::ingest::Retention;

use crate::inside::{Inside, small};

/// Asks for a path with a small window, so that the system takes little of the answer from the server.
fn ask(server: SocketAddr, path: &str) -> Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let socket = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4_096)?;
        socket.connect(server).await?.into_std()
    })?;
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    (&socket).write_all(format!("GET {path} HTTP/1.1\r\nHost: {server}\r\n\r\n").as_bytes())?;
    Ok(socket)
}

/// Waits until the server has closed a connection whose answer is not read. Returns the seconds that it took.
fn closed(mut socket: &TcpStream) -> Result<f64> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        // What is sent after the server closed the connection is answered with a reset.
        match socket.write_all(b"\r\n") {
            Ok(()) => std::thread::sleep(Duration::from_millis(20)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(20)),
            Err(_) => return Ok(begun.elapsed().as_secs_f64()),
        }
    }
    anyhow::bail!("the connection stayed open")
}

/// Stores a session that is longer than what a system buffers. Returns the path of its file.
fn stored(server: &Inside, seed: u64, batches: usize) -> Result<String> {
    let stream = Stream::new(seed, batches, 40_000);
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    for seq in 1..=stream.last() {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.end(stream.last())?;
    Ok(format!("/api/v1/sessions/{}/trace", stream.session()))
}

/// Stores a session of many MiB, most of them in chunks of a later version. Returns the path of its file.
fn long(server: &Inside, seed: u64, mib: u64) -> Result<String> {
    let stream = Stream::new(seed, 1, 100);
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    let mut random = Random::new(seed);
    // Which no compression makes shorter.
    let bytes: Vec<u8> = (0..1 << 17).flat_map(|_| random.below(u64::MAX).to_le_bytes()).collect();
    let chunk = seal(77, &bytes);
    for seq in 2..2 + mib {
        peer.batch(seq, &chunk)?;
    }
    peer.acked(1 + mib)?;
    Ok(format!("/api/v1/sessions/{}/trace", stream.session()))
}

fn limits() -> ServerLimits {
    ServerLimits { segment_bytes: 16 << 20, ..small() }
}

#[test]
fn a_client_that_reads_nothing_loses_its_connection() -> Result<()> {
    let server = Inside::start(ServerLimits { idle_seconds: 1, ..limits() }, Retention::default())?;
    let pickle = format!("{}?format=pickle", stored(&server, 90, 10)?);
    for path in [long(&server, 95, 16)?, pickle] {
        let whole = http::get(server.address, &path, &[])?;
        assert_eq!(whole.status, 200, "{path}");
        ensure!(whole.body.len() > 10 << 20, "{path}: {} bytes fit the buffers of the system", whole.body.len());
        let socket = ask(server.address, &path)?;
        let seconds = closed(&socket).with_context(|| path.clone())?;
        assert!((0.9..15.0).contains(&seconds), "{path}: {seconds} s");
    }
    Ok(())
}

#[test]
fn a_client_that_reads_too_slowly_loses_its_connection_and_a_slow_one_does_not() -> Result<()> {
    let limits = ServerLimits { idle_seconds: 1, least_bytes_per_second: 400_000, ..limits() };
    let server = Inside::start(limits, Retention::default())?;
    let path = long(&server, 96, 32)?;
    for (bytes, is_kept) in [(4_000, false), (400_000, true)] {
        let mut socket = ask(server.address, &path)?;
        let (begun, mut buffer) = (Instant::now(), vec![0; bytes]);
        let is_open = loop {
            if begun.elapsed() > Duration::from_secs(5) {
                break true;
            }
            // What the system had buffered comes before the error.
            if socket.read_exact(&mut buffer).is_err() || socket.write_all(b"\r\n").is_err() {
                break false;
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        assert_eq!(is_open, is_kept, "{bytes} bytes each 100 ms");
    }
    Ok(())
}

#[test]
fn downloads_that_are_not_read_stop_nobody() -> Result<()> {
    // The connections stay for a minute unless downloads give way to others. There is room for those of both paths: the server may not
    // have seen yet that the first ones are closed.
    let limits = ServerLimits { connections: 24, downloads: 2, stall_seconds: 1, idle_seconds: 60, ..limits() };
    let server = Inside::start(limits, Retention::default())?;
    let trace = long(&server, 91, 16)?;
    let want = http::get(server.address, &trace, &[])?.body.len();
    for path in ["/sample.pickle", &*trace] {
        let unread = (0..8).map(|_| ask(server.address, path)).collect::<Result<Vec<_>>>()?;
        let begun = Instant::now();
        assert_eq!(http::get(server.address, "/healthz", &[])?.status, 200, "{path}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{path}: {:?}", begun.elapsed());
        // Newcomers that take the place of the last ones may have to try again.
        let end = Instant::now() + Duration::from_secs(10);
        let body = loop {
            let response = http::get(server.address, &trace, &[]);
            match response {
                Ok(response) if response.status == 200 => break response.body,
                Ok(response) => assert_eq!((response.status, response.header("retry-after")), (503, "5"), "{path}"),
                Err(_) => {}
            }
            ensure!(Instant::now() < end, "{path}: no download in time");
        };
        assert_eq!(body.len(), want, "{path}");
        drop(unread);
    }
    Ok(())
}

#[test]
fn a_pickle_that_is_not_read_does_not_block_the_others() -> Result<()> {
    let limits = ServerLimits { pickle_bytes: 4 << 20, stall_seconds: 1, idle_seconds: 60, ..limits() };
    let server = Inside::start(limits, Retention::default())?;
    let trace = stored(&server, 92, 10)?;
    let bytes = http::get(server.address, &trace, &[])?.body.len();
    ensure!((2 << 20..4 << 20).contains(&bytes), "{bytes}: two of them exceed the limit");
    let pickle = format!("{trace}?format=pickle");
    let small = format!("{}?format=pickle", stored(&server, 93, 1)?);
    let unread = ask(server.address, &pickle)?;
    // A small one fits beside it at once; another large one after the first has read nothing for a second.
    assert_eq!(http::get(server.address, &small, &[])?.status, 200);
    let begun = Instant::now();
    assert_eq!(http::get(server.address, &pickle, &[]).context("the second pickle")?.status, 200);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    closed(&unread)?;
    Ok(())
}

#[test]
fn a_download_tells_which_span_it_covers() -> Result<()> {
    let server = Inside::start(ServerLimits { segment_bytes: 40_000, ..small() }, Retention::default())?;
    let trace = stored(&server, 94, 4)?;
    let span = |query: &str| -> Result<[Option<i64>; 2]> {
        let response = http::get(server.address, &format!("{trace}?{query}"), &[])?;
        ensure!(response.status == 200, "{query}: {}", response.status);
        Ok(["x-vramscope-from-us", "x-vramscope-to-us"].map(|name| response.header(name).parse().ok()))
    };
    let [None, Some(end)] = span("")? else { anyhow::bail!("the whole: {:?}", span("")?) };
    for format in ["vramscope", "pickle"] {
        let of = |from: i64, to: i64| span(&format!("from_us={from}&to_us={to}&format={format}"));
        let last = of(end, end)?;
        let [Some(from), Some(to)] = last else { anyhow::bail!("{format}: {last:?}") };
        assert!(from <= end && to == end, "{format}: {last:?}");
        let before = of(from - 1, from - 1)?;
        assert!(before[1].is_some_and(|to| to < end), "{format}: {before:?} before {last:?}");
    }
    Ok(())
}
