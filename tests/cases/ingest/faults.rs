//! Crashes: nothing that was acknowledged may be lost.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tests::peer::Peer;
use tests::server::Server;
use tests::stream::{Random, Stream};
use tests::{Folder, program};
use trace::units::Count;
use wire::{Code, Message};

use crate::{check_same, download, json};

/// Sends batches until the server is gone. Returns the last one that was acknowledged.
fn send_until_gone(peer: &mut Peer, stream: &Stream, from: u64) -> u64 {
    let mut acked = 0;
    for seq in from..=stream.last() {
        if peer.batch(seq, stream.batch(seq)).is_err() {
            break;
        }
    }
    while let Ok(frame) = peer.frame() {
        if let Message::Ack(ack) = frame {
            acked = ack.seq;
        }
    }
    acked
}

#[test]
fn killed_ten_times_every_batch_is_there_once_and_in_order() -> Result<()> {
    let folder = Folder::new("killed")?;
    let stream = Stream::new(10, 400, 1_000);
    let (mut acked, mut random, mut wanted) = (0, Random::new(5), Vec::new());
    for round in 0..10 {
        let server = Server::start_in(&folder, &[])?;
        let (mut peer, next) = Peer::hello(server.address(), &stream.hello)?;
        assert!(next > acked, "round {round}: {acked} were acknowledged, and {next} is wanted");
        wanted.push(next);
        // In mid-stream, at a different moment each time.
        let after = Duration::from_millis(5 + random.below(60));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(after);
            server.kill()
        });
        acked = acked.max(send_until_gone(&mut peer, &stream, next));
        killer.join().expect("the killer")?;
    }
    let server = Server::start_in(&folder, &[])?;
    let (mut peer, next) = Peer::hello(server.address(), &stream.hello)?;
    assert!(next > acked, "{acked} were acknowledged, and {next} is wanted");
    for seq in next..=stream.last() {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.end(stream.last())?;
    assert!(wanted.iter().any(|next| (2..stream.last()).contains(next)), "no kill was in mid-stream: {wanted:?}");
    check_same("the download", &download(&server, stream.session())?, &stream.file);
    let session = json(&server, &format!("/api/v1/sessions/{}", stream.session()))?;
    assert_eq!((&session["events"], &session["lost"]), (&stream.events.into(), &0.into()));
    Ok(())
}

/// Returns the path of a session's only log segment.
fn segment(folder: &Path, stream: &Stream) -> PathBuf {
    folder.join("wal").join(format!("{}.00000001.vramscope", stream.session()))
}

#[test]
fn a_torn_tail_is_removed_after_the_last_whole_batch_and_reported() -> Result<()> {
    let stream = Stream::new(11, 4, 200);
    // Parts of the next batch as a crash leaves them: all its chunks without the mark, half a chunk, and zeros.
    let whole = stream.batch(3).to_vec();
    let tails = [whole.clone(), whole[..whole.len() / 2].to_vec(), whole[..7].to_vec(), vec![0; 5_000]];
    for (i, tail) in tails.iter().enumerate() {
        let folder = Folder::new(&format!("torn-{i}"))?;
        let server = Server::start_in(&folder, &[])?;
        let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
        peer.batch(1, stream.batch(1))?;
        peer.batch(2, stream.batch(2))?;
        peer.acked(2)?;
        server.kill()?;
        OpenOptions::new().append(true).open(segment(&folder, &stream))?.write_all(tail)?;

        let server = Server::start_in(&folder, &[])?;
        let session = json(&server, &format!("/api/v1/sessions/{}", stream.session()))?;
        assert_eq!((&session["state"], &session["events"]), (&"lost".into(), &400.into()), "tail {i}");
        let notes = session["notes"].to_string();
        assert!(
            notes.contains(&format!("removed from the end after a crash ({} byte", Count(tail.len() as u64))),
            "tail {i}: {notes}"
        );
        let (mut peer, next) = Peer::hello(server.address(), &stream.hello)?;
        assert_eq!(next, 3, "tail {i}");
        for seq in 3..=4 {
            peer.batch(seq, stream.batch(seq))?;
        }
        peer.end(4)?;
        check_same("the download", &download(&server, stream.session())?, &stream.file);
    }
    Ok(())
}

#[test]
fn a_full_store_refuses_tears_nothing_and_recovers() -> Result<()> {
    let old = Stream::new(12, 3, 2_000);
    let stream = Stream::new(13, 12, 8_000);
    let size = format!("{}B", stream.file.len() as u64 * 2 / 3);
    let folder = Folder::new("full")?;
    let server = Server::start_in(&folder, &["--keep-bytes", &size])?;
    let (mut peer, _) = Peer::hello(server.address(), &old.hello)?;
    for seq in 1..=old.last() {
        peer.batch(seq, old.batch(seq))?;
    }
    peer.end(old.last())?;

    let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
    for seq in 1..=stream.last() {
        // Refused meanwhile, perhaps while this is being sent.
        let _ = peer.batch(seq, stream.batch(seq));
    }
    assert_eq!(peer.refused()?, (Code::Full, true));
    let left = server.get(&format!("/api/v1/sessions/{}", old.session()))?;
    assert_eq!(left.status, 404, "what had ended made room");
    assert!(server.get("/metrics")?.text().contains("vramscope_store_full 1"));
    drop(peer);
    let (_, next) = Peer::hello(server.address(), &stream.hello)?;
    assert!(next > 1 && next <= stream.last(), "{next}");
    server.kill()?;

    // With space again, it continues where it stopped.
    let server = Server::start_in(&folder, &[])?;
    assert_eq!(server.get("/api/v1/health/ready")?.status, 200);
    let (mut peer, again) = Peer::hello(server.address(), &stream.hello)?;
    assert_eq!(again, next);
    for seq in next..=stream.last() {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.end(stream.last())?;
    check_same("the download", &download(&server, stream.session())?, &stream.file);
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_really_full_behaves_alike() -> Result<()> {
    let Some(folder) = Folder::disk("full", 4)? else {
        eprintln!("skipped: mounting a small disk needs rights that this user has not");
        return Ok(());
    };
    fill(&folder)
}

#[cfg(target_os = "linux")]
fn fill(folder: &Path) -> Result<()> {
    let stream = Stream::new(14, 40, 8_000);
    let ballast = folder.join("ballast");
    fs::write(&ballast, vec![1; 3_300_000])?;
    let server = Server::start_in(folder, &[])?;
    let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
    for seq in 1..=stream.last() {
        let _ = peer.batch(seq, stream.batch(seq));
    }
    assert_eq!(peer.refused()?, (Code::Full, true));
    assert_eq!(server.get("/api/v1/health/ready")?.status, 503);
    fs::remove_file(ballast)?;
    assert_eq!(server.get("/api/v1/health/ready")?.status, 200);
    let (mut peer, next) = Peer::hello(server.address(), &stream.hello)?;
    assert!(next > 1, "{next}");
    let last = (next + 2).min(stream.last());
    for seq in next..=last {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.acked(last)?;
    let whole = download(&server, stream.session())?;
    check_same("the download", &whole, &stream.file[..whole.len()]);
    server.kill()
}

#[test]
fn only_one_server_can_use_a_folder() -> Result<()> {
    let folder = Folder::new("two")?;
    let server = Server::start_in(&folder, &[])?;
    let output = program::run(&["serve", "--listen", "127.0.0.1:0", "--data", folder.to_str().context("a path")?])?;
    let line = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
    assert!(line.contains("Another server uses the folder") && line.contains("--data"), "{line}");
    drop(server);
    Server::start_in(&folder, &[])?;
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_server_that_stops_says_so_and_keeps_what_it_received() -> Result<()> {
    let folder = Folder::new("stopped")?;
    let stream = Stream::new(15, 3, 200);
    let server = Server::start_in(&folder, &[])?;
    let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    let mut viewer = Peer::viewer(server.address(), stream.session(), 0)?;
    viewer.batches(1)?;
    let begun = Instant::now();
    let stopping = std::thread::spawn(move || server.stop());
    assert_eq!(peer.refused()?, (Code::Restart, true));
    assert_eq!(viewer.refused()?, (Code::Restart, true));
    drop((peer, viewer));
    let (seconds, is_well) = stopping.join().expect("the one that stops")?;
    assert!(is_well && seconds < 5.0, "{seconds} s, {:?}", begun.elapsed());
    let server = Server::start_in(&folder, &[])?;
    assert_eq!(Peer::hello(server.address(), &stream.hello)?.1, 2);
    Ok(())
}
