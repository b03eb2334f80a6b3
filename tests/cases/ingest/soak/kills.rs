//! Kills at random moments, while several collectors send.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::Folder;
use tests::peer::Peer;
use tests::server::Server;
use tests::soak;
use tests::stream::{Random, Stream};
use wire::Message;

use crate::{check_same, download, json};

/// Kills in a round.
const KILLS: u64 = 7;

/// Sends the rest of a stream until it has all been acknowledged, or the server is gone. `acked` is the last batch that was
/// ever acknowledged.
fn send(server: &Server, stream: &Stream, acked: &AtomicU64) -> Result<()> {
    let before = acked.load(Ordering::SeqCst);
    // The server may be gone already.
    let Ok((mut peer, next)) = Peer::hello(server.address(), &stream.hello) else { return Ok(()) };
    ensure!(next > before, "{before} were acknowledged, and {next} is wanted");
    // The server may have been killed after it stored a batch and before it acknowledged it. It asks for the next one then, and
    // never acknowledges that batch.
    acked.fetch_max(next.saturating_sub(1), Ordering::SeqCst);
    for seq in next..=stream.last() {
        if peer.batch(seq, stream.batch(seq)).is_err() {
            break;
        }
    }
    while acked.load(Ordering::SeqCst) < stream.last()
        && let Ok(frame) = peer.frame()
    {
        if let Message::Ack(ack) = frame {
            acked.store(ack.seq, Ordering::SeqCst);
        }
    }
    Ok(())
}

#[test]
fn whatever_was_acknowledged_before_a_kill_is_there() -> Result<()> {
    for seed in soak::rounds(1) {
        let (folder, mut random) = (Folder::new("kills")?, Random::new(seed));
        let streams: Vec<_> = (0..4).map(|i| (Stream::new(4 * seed + i, 400, 300), AtomicU64::new(0))).collect();
        for kill in 0..KILLS {
            let server = Server::start_in(&folder, &[])?;
            std::thread::scope(|scope| {
                let senders: Vec<_> =
                    streams.iter().map(|(stream, acked)| scope.spawn(|| send(&server, stream, acked))).collect();
                std::thread::sleep(Duration::from_millis(random.below(80)));
                server.signal("KILL")?;
                senders.into_iter().try_for_each(|sender| sender.join().expect("a sender"))
            })
            .with_context(|| format!("kill {kill}"))?;
        }
        let server = Server::start_in(&folder, &[])?;
        for (stream, acked) in &streams {
            send(&server, stream, acked)?;
            let (mut peer, next) = Peer::hello(server.address(), &stream.hello)?;
            assert_eq!(next, stream.last() + 1);
            peer.end(stream.last())?;
            check_same("the download", &download(&server, stream.session())?, &stream.file);
            let session = json(&server, &format!("/api/v1/sessions/{}", stream.session()))?;
            assert_eq!((&session["events"], &session["lost"]), (&stream.events.into(), &0.into()));
        }
    }
    Ok(())
}
