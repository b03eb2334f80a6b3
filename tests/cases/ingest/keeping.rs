//! Retention: what is kept, and for how long.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use format::seal;
use serde_json::Value;
use tests::peer::Peer;
use tests::stream::{Random, Stream};
use tests::{Folder, http};
use vramscope::access::Access;
use vramscope::ingest::Retention;
use vramscope::store::SegmentStore;

use crate::inside::{Inside, small};

fn json(server: &Inside, path: &str) -> Result<Value> {
    Ok(serde_json::from_slice(&http::get(server.address, path, &[])?.body)?)
}

fn send(server: &Inside, stream: &Stream, is_ended: bool) -> Result<Peer> {
    let (mut peer, next) = Peer::hello(server.address, &stream.hello)?;
    for seq in next..=stream.last() {
        peer.batch(seq, stream.batch(seq))?;
    }
    if is_ended {
        peer.end(stream.last())?;
    } else {
        peer.acked(stream.last())?;
    }
    Ok(peer)
}

#[test]
fn ended_sessions_are_evicted_first_and_then_the_start_of_live_ones() -> Result<()> {
    let streams: Vec<Stream> = (30..33).map(|seed| Stream::new(seed, 60, 500)).collect();
    let size = streams[0].file.len() as u64;
    let server = Inside::start(small(), Retention { bytes: size * 5 / 2, ..Retention::default() })?;
    for stream in &streams[..2] {
        send(&server, stream, true)?;
    }
    // The store holds two and a half sessions of the first size: both ended ones go, and then the start of the live
    // one.
    let long = Stream::new(34, 200, 500);
    let (mut peer, _) = Peer::hello(server.address, &long.hello)?;
    for seq in 1..long.last() {
        peer.batch(seq, long.batch(seq))?;
    }
    peer.acked(long.last() - 1)?;
    let listed = json(&server, "/api/v1/sessions")?;
    let ids: Vec<&str> =
        listed["sessions"].as_array().expect("a list").iter().filter_map(|s| s["id"].as_str()).collect();
    assert_eq!(ids, [long.session()], "those that ended made room");
    let session = &listed["sessions"][0];
    ensure!(session["bytes"].as_u64() <= Some(size * 5 / 2), "{session}");
    ensure!(session["kept_from_us"].as_i64() > session["started_us"].as_i64(), "{session}");
    assert_eq!(session["events"], (long.last() - 1) * 500);
    // What is kept is a complete recording.
    let file = http::get(server.address, &format!("/api/v1/sessions/{}/trace", long.session()), &[])?;
    let mut decoder = format::recording::Decoder::new(trace::limits::ImportLimits::default());
    decoder.push(&file.body)?;
    let (snapshot, ..) = decoder.finish()?;
    let count = snapshot.devices[0].events.len();
    ensure!(count > 10_000 && count < 100_000, "{count} events");
    // A viewer also learns where it begins.
    let mut viewer = Peer::viewer(server.address, long.session(), 1)?;
    let (batches, gaps) = viewer.batches(long.last() - 1)?;
    assert_eq!(gaps, [(2, batches[0].0)]);
    Ok(())
}

#[test]
fn a_token_beyond_its_quota_of_bytes_makes_room_among_its_own_sessions() -> Result<()> {
    let mut streams: Vec<Stream> = (38..42).map(|seed| Stream::new(seed, 10, 500)).collect();
    let size = streams[0].file.len() as u64;
    let [jobs, others] = ["token-of-the-jobs", "token-of-others-"];
    let folder = Folder::new("quota")?;
    // Two sessions and a half.
    let quota = size * 5 / 2 / 1_000;
    let tokens = folder.secret("tokens", &format!("jobs ingest {jobs} bytes={quota}KB\nothers ingest {others}\n"))?;
    let access = Arc::new(Access::with_file(tokens.as_ref()).map_err(anyhow::Error::msg)?);
    let keep = Retention::default();
    let server = Inside::guarded(Arc::new(SegmentStore::in_memory(keep.bytes)), small(), keep, access)?;
    for (stream, token) in streams.iter_mut().zip([others, jobs, jobs, jobs]) {
        stream.hello.token = token.to_owned();
        send(&server, stream, true)?.close();
    }
    let kept = || streams.iter().map(|stream| server.sessions.get(stream.session()).is_some()).collect::<Vec<_>>();
    assert_eq!(kept(), [true; 4]);
    let begun = Instant::now();
    // A session counts as live until its collector's connection is gone.
    while kept() == [true; 4] && begun.elapsed() < Duration::from_secs(10) {
        server.sessions.sweep();
    }
    assert_eq!(kept(), [true, false, true, true], "the oldest of the token that has a quota");
    server.sessions.sweep();
    assert_eq!(kept(), [true, false, true, true]);
    Ok(())
}

#[test]
fn sessions_that_are_too_old_are_evicted() -> Result<()> {
    let server =
        Inside::start(small(), Retention { micros: 1_500_000, grace_micros: 500_000, ..Retention::default() })?;
    let (ended, live) = (Stream::new(35, 2, 100), Stream::new(36, 60, 500));
    send(&server, &ended, true)?;
    let (mut peer, _) = Peer::hello(server.address, &live.hello)?;
    for seq in 1..live.last() {
        peer.batch(seq, live.batch(seq))?;
    }
    peer.acked(live.last() - 1)?;
    server.sessions.sweep();
    assert_eq!(server.sessions.all().len(), 2, "nothing is old yet");
    std::thread::sleep(Duration::from_millis(1_700));
    server.sessions.sweep();
    let announced = json(&server, &format!("/api/v1/sessions/{}", ended.session()))?;
    ensure!(announced["delete_us"].as_i64() > announced["last_us"].as_i64(), "announced before it goes: {announced}");
    server.sessions.sweep();
    assert!(server.sessions.get(ended.session()).is_some(), "deleted without a time of grace");
    std::thread::sleep(Duration::from_millis(600));
    server.sessions.sweep();
    assert!(server.sessions.get(ended.session()).is_none());
    let session = json(&server, &format!("/api/v1/sessions/{}", live.session()))?;
    ensure!(session["kept_from_us"].as_i64() > session["started_us"].as_i64(), "{session}");
    Ok(())
}

#[test]
fn a_session_is_deleted_only_when_its_job_has_ended() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(37, 2, 100);
    let delete = || -> Result<u16> {
        let request = format!(
            "DELETE /api/v1/sessions/{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            stream.session(),
            server.address
        );
        Ok(http::send(server.address, &request)?.status)
    };
    assert_eq!(delete()?, 404);
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    assert_eq!(delete()?, 409);
    peer.batch(2, stream.batch(2))?;
    peer.end(2)?;
    peer.close();
    assert_eq!((delete()?, delete()?), (204, 404));
    assert_eq!(server.sessions.store().usage(), 0);
    Ok(())
}

#[test]
fn a_download_fails_if_its_session_is_evicted_meanwhile() -> Result<()> {
    let limits = trace::limits::ServerLimits { segment_bytes: 16 << 20, lost_seconds: 1, ..small() };
    let server = Inside::start(limits, Retention { micros: 2_000_000, grace_micros: 0, ..Retention::default() })?;
    let stream = Stream::new(39, 1, 100);
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    // More than the buffers to a client that reads nothing: chunks of a later version, which are kept unchanged.
    let mut random = Random::new(39);
    let chunk = seal(200, &(0..1 << 20).map(|_| random.below(256) as u8).collect::<Vec<u8>>());
    for seq in 2..=30 {
        peer.batch(seq, &chunk)?;
    }
    peer.end(30)?;
    peer.close();
    let path = format!("/api/v1/sessions/{}/trace", stream.session());
    let mut socket = TcpStream::connect(server.address)?;
    socket.write_all(
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address).as_bytes(),
    )?;
    let mut begin = [0; 15];
    socket.read_exact(&mut begin)?;
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    std::thread::sleep(Duration::from_millis(2_500));
    // Announced, and then deleted.
    server.sessions.sweep();
    server.sessions.sweep();
    assert!(server.sessions.get(stream.session()).is_none(), "it is too old and was kept");
    let mut rest = Vec::new();
    // However the connection ends, the download must not pass for a whole file: its last piece is missing.
    let _ = socket.read_to_end(&mut rest);
    assert!(rest.len() < 29 << 20 && !rest.ends_with(b"\r\n0\r\n\r\n"), "{} bytes", rest.len());
    assert_eq!(http::get(server.address, &path, &[])?.status, 404);
    Ok(())
}

#[test]
fn a_part_of_a_session_and_a_pickle_can_be_downloaded() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(38, 100, 500);
    send(&server, &stream, true)?;
    let path = format!("/api/v1/sessions/{}/trace", stream.session());
    let get = |query: &str| http::get(server.address, &format!("{path}{query}"), &[]);
    let stats = json(&server, &format!("/api/v1/sessions/{}/stats", stream.session()))?;
    let points = stats["devices"][0]["points"].as_array().expect("points").clone();
    let middle = points[points.len() / 2][0].as_i64().expect("a time");
    let part = get(&format!("?from_us={middle}"))?;
    let mut decoder = format::recording::Decoder::new(trace::limits::ImportLimits::default());
    decoder.push(&part.body)?;
    let (snapshot, findings, header) = decoder.finish()?;
    let count = snapshot.devices[0].events.len();
    ensure!(count < 45_000 && count > 10_000 && findings.is_empty(), "{count}, {findings:?}");
    assert_eq!(header.map(|header| header.host).as_deref(), Some("node-1"));
    ensure!(snapshot.devices[0].events.iter().any(|event| event.time_us >= middle), "the end is missing");

    let pickle = get("?format=pickle")?;
    assert_eq!((pickle.status, &pickle.body[..2]), (200, &[0x80, 4][..]));
    let name = pickle.header("content-disposition");
    assert!(name.starts_with("attachment; filename=\"session-38-2") && name.ends_with(".pickle\""), "{name}");
    let mut importer = format::import::Importer::new(trace::limits::ImportLimits::default());
    importer.push(&pickle.body)?;
    assert_eq!(importer.finish()?.snapshot.devices[0].events.len() as u64, stream.events);
    for (query, status) in [("?format=zip", 400), ("?from_us=x", 400), ("?to_us=5", 200), ("?format=vramscope", 200)] {
        assert_eq!(get(query)?.status, status, "{query}");
    }
    Ok(())
}

/// Returns a stream whose collector is on a host.
fn on_host(seed: u64, batches: usize, host: &str) -> Stream {
    let mut stream = Stream::new(seed, batches, 500);
    let header = format::Header::decode(&stream.hello.header).expect("a header");
    let header = format::Header { host: host.to_owned(), ..header };
    let mut bytes = Vec::new();
    format::Writer::new(&header, &mut bytes);
    stream.hello.header = tests::stream::first_payload(&bytes);
    stream
}

#[test]
fn nobody_drives_out_the_sessions_of_others() -> Result<()> {
    let modest: Vec<Stream> = (40..43).map(|seed| on_host(seed, 20, &format!("modest-{seed}"))).collect();
    let size = modest[0].file.len() as u64;
    let server = Inside::start(small(), Retention { bytes: size * 8, ..Retention::default() })?;
    for stream in &modest {
        send(&server, stream, true)?;
    }
    for seed in 50..70 {
        send(&server, &on_host(seed, 20, "greedy"), true)?;
    }
    server.sessions.sweep();
    for stream in &modest {
        ensure!(server.sessions.get(stream.session()).is_some(), "{} was driven out", stream.session());
    }
    let greedy = server.sessions.all().len() - modest.len();
    ensure!((1..6).contains(&greedy), "{greedy} sessions of the greedy host are left");
    ensure!(server.sessions.store().usage() <= size * 8, "too much is kept");
    Ok(())
}

#[test]
fn pinned_sessions_stay() -> Result<()> {
    let server = Inside::start(small(), Retention { micros: 1, grace_micros: 0, ..Retention::default() })?;
    let (pinned, other) = (Stream::new(71, 2, 100), Stream::new(72, 2, 100));
    send(&server, &pinned, true)?;
    send(&server, &other, true)?;
    let put = |stream: &Stream, body: &str| -> Result<u16> {
        let path = format!("/api/v1/sessions/{}/pin", stream.session());
        let length = body.len();
        let request = format!(
            "PUT {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}",
            server.address
        );
        Ok(http::send(server.address, &request)?.status)
    };
    assert_eq!((put(&pinned, "{\"pinned\":true}")?, put(&pinned, "{}")?), (204, 400));
    let shown = json(&server, &format!("/api/v1/sessions/{}", pinned.session()))?;
    assert_eq!(shown["pinned"], true);
    std::thread::sleep(Duration::from_millis(20));
    for _ in 0..3 {
        server.sessions.sweep();
    }
    assert!(server.sessions.get(other.session()).is_none());
    assert!(server.sessions.get(pinned.session()).is_some(), "a pinned session was deleted");
    assert_eq!(put(&pinned, "{\"pinned\":false}")?, 204);
    for _ in 0..3 {
        server.sessions.sweep();
    }
    assert!(server.sessions.get(pinned.session()).is_none());
    Ok(())
}

#[test]
fn sessions_without_a_batch_leave_nothing() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    for seed in 0..50 {
        drop(Peer::hello(server.address, &Stream::new(1_000 + seed, 1, 10).hello)?);
    }
    assert_eq!((server.sessions.store().usage(), server.sessions.store().list()?.len()), (0, 0));
    Ok(())
}

#[test]
fn more_sessions_than_the_limit_make_room_and_refuse_nobody() -> Result<()> {
    let limits = trace::limits::ServerLimits { sessions: 10, ..small() };
    let server = Inside::start(limits, Retention::default())?;
    for seed in 0..30 {
        send(&server, &Stream::new(2_000 + seed, 1, 10), true)?;
        if seed % 5 == 0 {
            server.sessions.sweep();
        }
    }
    server.sessions.sweep();
    let left = server.sessions.all();
    assert_eq!(left.len(), 10);
    assert!(server.sessions.get(Stream::new(2_029, 1, 10).session()).is_some(), "the newest stays");
    Ok(())
}

#[test]
fn a_clock_that_jumped_by_forty_days_deletes_nothing() -> Result<()> {
    for days in [40, -40] {
        let store: Arc<SegmentStore> = Arc::new(SegmentStore::in_memory(1 << 30));
        // The clock of retention is where the computer's was before the jump.
        store.set_retention_us(vramscope::clock::now_us() - days * 86_400_000_000)?;
        let keep = Retention { grace_micros: 0, ..Retention::default() };
        let stream = Stream::new(73, 2, 100);
        for start in 0..3 {
            let server = Inside::with(Arc::clone(&store), small(), keep)?;
            server.sessions.load()?;
            if start == 0 {
                send(&server, &stream, true)?;
            }
            for _ in 0..3 {
                server.sessions.sweep();
            }
            ensure!(server.sessions.get(stream.session()).is_some(), "{days} days: deleted at start {start}");
            server.sessions.close_all();
        }
    }
    Ok(())
}

#[test]
fn a_session_that_goes_on_after_it_was_announced_is_announced_again() -> Result<()> {
    let server = Inside::start(small(), Retention { micros: 1_200_000, grace_micros: 1_000, ..Retention::default() })?;
    let stream = Stream::new(74, 4, 100);
    for seqs in [1..=2, 3..=3] {
        let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
        let last = *seqs.end();
        for seq in seqs {
            peer.batch(seq, stream.batch(seq))?;
        }
        peer.acked(last)?;
        peer.close();
        let begun = Instant::now();
        let shown = || json(&server, &format!("/api/v1/sessions/{}", stream.session()));
        while shown()?["delete_us"].is_null() {
            ensure!(begun.elapsed() < Duration::from_secs(20), "never announced after batch {last}");
            std::thread::sleep(Duration::from_millis(20));
            server.sessions.sweep();
        }
        ensure!(begun.elapsed() > Duration::from_secs(1), "announced too early after batch {last}");
    }
    Ok(())
}
