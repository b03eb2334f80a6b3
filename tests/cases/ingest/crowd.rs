//! Many collectors and viewers at once: none loses anything. Prints what it measures:
//!
//! ```text
//! VRAMSCOPE_CROWD=400 cargo test -p tests --test ingest -- crowd:: --nocapture
//! ```
//!
//! `VRAMSCOPE_CROWD` is the number of batches of each collector, and `VRAMSCOPE_PROGRAM` names another build.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use tests::peer::Peer;
use tests::server::Server;
use tests::stream::Stream;
use wire::Message;

use crate::{check_same, download};

const COLLECTORS: usize = 64;
const VIEWERS: usize = 30;
/// Sessions that are watched: some by two viewers.
const WATCHED: usize = 20;
const EVENTS: usize = 500;
/// Batches that a collector sends before it waits for an acknowledgement.
const WINDOW: u64 = 8;

fn collect(server: SocketAddr, stream: &Stream, begun: &Barrier, watched: &Barrier) -> Result<()> {
    let first = || {
        let (mut peer, _) = Peer::hello(server, &stream.hello)?;
        peer.batch(1, stream.batch(1))?;
        peer.acked(1)?;
        anyhow::Ok(peer)
    };
    let peer = first();
    // Also after an error, for which nobody has to wait.
    begun.wait();
    watched.wait();
    let mut peer = peer?;
    let (mut sent, mut acked) = (1, 1);
    while acked < stream.last() {
        if sent < stream.last().min(acked + WINDOW) {
            sent += 1;
            peer.batch(sent, stream.batch(sent))?;
        } else {
            match peer.frame()? {
                Message::Ack(ack) => acked = ack.seq,
                other => bail!("no ack but {other:?}"),
            }
        }
    }
    Ok(())
}

fn watch(server: SocketAddr, stream: &Stream, begun: &Barrier, watched: &Barrier) -> Result<()> {
    begun.wait();
    let viewer = Peer::viewer(server, stream.session(), 0);
    watched.wait();
    let (batches, gaps) = viewer?.batches(stream.last())?;
    ensure!(gaps.is_empty(), "skipped {gaps:?}");
    let want = (1..=stream.last()).map(|seq| (seq, stream.batch(seq)));
    let is_same = batches.iter().map(|(seq, chunks)| (*seq, &chunks[..])).eq(want);
    ensure!(is_same, "{} batches came, and not those that were sent", batches.len());
    Ok(())
}

#[test]
fn sixty_four_collectors_and_thirty_viewers_lose_nothing() -> Result<()> {
    let batches = std::env::var("VRAMSCOPE_CROWD").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let server = Server::start()?;
    let address = server.address();
    let streams: Vec<_> = (0..COLLECTORS).map(|i| Stream::new(400 + i as u64, batches, EVENTS)).collect();
    let everybody = COLLECTORS + VIEWERS;
    let (begun, watched) = (Barrier::new(everybody), Barrier::new(everybody + 1));
    let seconds = std::thread::scope(|scope| {
        let (begun, watched) = (&begun, &watched);
        let collectors = streams.iter().map(|stream| scope.spawn(move || collect(address, stream, begun, watched)));
        let collectors: Vec<_> = collectors.collect();
        let viewers = (0..VIEWERS).map(|i| &streams[i % WATCHED]);
        let viewers: Vec<_> =
            viewers.map(|stream| scope.spawn(move || watch(address, stream, begun, watched))).collect();
        watched.wait();
        let since = Instant::now();
        for (i, collector) in collectors.into_iter().enumerate() {
            collector.join().expect("a collector").map_err(|error| error.context(format!("collector {i}")))?;
        }
        let seconds = since.elapsed().as_secs_f64();
        for (i, viewer) in viewers.into_iter().enumerate() {
            viewer.join().expect("a viewer").map_err(|error| error.context(format!("viewer {i}")))?;
        }
        anyhow::Ok(seconds)
    })?;
    for stream in &streams {
        check_same(stream.session(), &download(&server, stream.session())?, &stream.file);
    }
    let events: u64 = streams.iter().map(|stream| stream.events).sum();
    println!("{events} events of {COLLECTORS} collectors with {VIEWERS} viewers in {seconds:.2} s");
    Ok(())
}
