//! A store that takes long, or has no room: who waits for it, and who doesn't.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use trace::limits::ServerLimits;
use wire::{Message, SessionState};

use tests::http;
use tests::peer::Peer;
use tests::stream::Stream;
use vramscope::ingest::Retention;
use vramscope::store::SegmentStore;
use vramscope::store::files::Files;

use crate::gated_files::{Call, GatedFiles};
use crate::inside::{Inside, small};

/// Long enough for anything on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a request may take while another one waits for the store. An operator's probe gives up after a second or more.
const SOON: Duration = Duration::from_secs(1);

fn start(files: &GatedFiles, limits: ServerLimits, keep: Retention) -> Result<Inside> {
    let files: Arc<dyn Files> = Arc::new(files.clone());
    let server = Inside::with(Arc::new(SegmentStore::in_folder(files, keep.bytes)), limits, keep)?;
    wait_until("the store is looked through", || server.sessions.is_loaded())?;
    Ok(server)
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !is_so() {
        ensure!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Records a session, up to its end or without one.
fn record(server: SocketAddr, stream: &Stream, is_ended: bool) -> Result<Peer> {
    let (mut peer, next) = Peer::hello(server, &stream.hello)?;
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

fn delete(server: SocketAddr, session: &str) -> Result<u16> {
    Ok(http::send(server, &http::head("DELETE", server, &format!("/api/v1/sessions/{session}"), &[]))?.status)
}

fn listed(server: SocketAddr) -> Result<Vec<String>> {
    let sessions: Value = serde_json::from_slice(&http::get(server, "/api/v1/sessions", &[])?.body)?;
    let sessions = sessions["sessions"].as_array().context("no sessions")?.clone();
    Ok(sessions.iter().filter_map(|session| Some(session["id"].as_str()?.to_owned())).collect())
}

/// Checks that requests are answered soon, and that a live job's batches are acknowledged.
fn check_others(server: SocketAddr, job: &mut Peer, stream: &Stream, seq: u64) -> Result<()> {
    for path in ["/healthz", "/api/v1/sessions", "/metrics"] {
        let begun = Instant::now();
        ensure!(http::get(server, path, &[])?.status == 200);
        ensure!(begun.elapsed() < SOON, "{path} took {:?}", begun.elapsed());
    }
    let begun = Instant::now();
    job.batch(seq, stream.batch(seq))?;
    job.acked(seq)?;
    ensure!(begun.elapsed() < SOON, "an acknowledgement took {:?}", begun.elapsed());
    Ok(())
}

#[test]
fn while_a_session_is_deleted_only_requests_for_it_wait() -> Result<()> {
    let files = GatedFiles::default();
    let server = start(&files, small(), Retention::default())?;
    let (ended, live) = (Stream::new(700, 20, 200), Stream::new(701, 20, 200));
    record(server.address, &ended, true)?;
    let (mut job, _) = Peer::hello(server.address, &live.hello)?;
    files.close(Call::Remove, "segments/");
    let (address, session) = (server.address, ended.session().to_owned());
    let deleting = std::thread::spawn(move || delete(address, &session));
    ensure!(files.is_waited_for());
    // Several at once: a server has few threads that serve sockets.
    for seq in 1..=4 {
        check_others(server.address, &mut job, &live, seq)?;
    }
    ensure!(listed(server.address)?.contains(&ended.session().to_owned()), "it is not deleted yet");
    ensure!(!deleting.is_finished());
    files.open();
    ensure!(deleting.join().expect("the request")? == 204);
    ensure!(!listed(server.address)?.contains(&ended.session().to_owned()));
    Ok(())
}

#[test]
fn while_the_start_of_a_live_session_is_deleted_its_job_goes_on() -> Result<()> {
    let files = GatedFiles::default();
    let keep = Retention { micros: -1, ..Retention::default() };
    let server = start(&files, small(), keep)?;
    let live = Stream::new(702, 120, 500);
    let (mut job, _) = Peer::hello(server.address, &live.hello)?;
    for seq in 1..=100 {
        job.batch(seq, live.batch(seq))?;
    }
    job.acked(100)?;
    let session = server.sessions.get(live.session()).context("no session")?;
    let segments = session.look(|view| view.segments.len());
    ensure!(segments > 2, "{segments} segments");
    files.close(Call::Remove, "segments/");
    let sessions = Arc::clone(&server.sessions);
    let sweeping = std::thread::spawn(move || sessions.sweep());
    ensure!(files.is_waited_for());
    for seq in 101..=110 {
        check_others(server.address, &mut job, &live, seq)?;
    }
    // Somebody pins it at this moment: neither decision undoes the other.
    let (sessions, pinned) = (Arc::clone(&server.sessions), Arc::clone(&session));
    let pinning = std::thread::spawn(move || sessions.pin(&pinned, true));
    files.open();
    sweeping.join().expect("the sweep");
    pinning.join().expect("the pin")?;
    let marks = server.sessions.store().marks(live.session())?;
    ensure!(marks.is_pinned && marks.first_segment > 1, "{marks:?}");
    let first = session.look(|view| view.segments.first().map(|segment| segment.number));
    ensure!(first == Some(marks.first_segment), "{first:?} {marks:?}");
    job.batch(111, live.batch(111))?;
    job.acked(111)
}

/// Its session would be live for ever: never sealed, never deleted.
#[test]
fn a_collector_that_vanishes_during_its_hello_leaves_its_session() -> Result<()> {
    let files = GatedFiles::default();
    let limits = ServerLimits { lost_seconds: 0, resume_seconds: 0, ..small() };
    let server = start(&files, limits, Retention::default())?;
    let stream = Stream::new(703, 10, 200);
    drop(record(server.address, &stream, false)?);
    let session = server.sessions.get(stream.session()).context("no session")?;
    wait_until("its collector has gone", || !session.is_connected())?;
    server.sessions.sweep();
    // It is sealed by now, and read back when its collector returns.
    files.close(Call::Read, "segments/");
    let body = Message::Hello(stream.hello.clone()).to_bytes();
    let head = format!("Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n", body.len());
    for is_socket in [false, true] {
        if is_socket {
            let mut peer = Peer::collector(server.address)?;
            peer.send(body.clone())?;
            ensure!(files.is_waited_for());
            drop(peer);
        } else {
            let mut socket = TcpStream::connect(server.address)?;
            write!(socket, "POST /api/v1/ingest HTTP/1.1\r\nHost: {}\r\n{head}", server.address)?;
            socket.write_all(&body)?;
            ensure!(files.is_waited_for());
            drop(socket);
        }
    }
    files.open();
    wait_until("nobody is connected", || !session.is_connected())?;
    ensure!(session.state(&limits) != SessionState::Live);
    server.sessions.sweep();
    ensure!(delete(server.address, stream.session())? == 204);
    Ok(())
}

/// What is acknowledged to a collector must belong to a session that is known.
#[test]
fn a_session_is_forgotten_only_if_no_collector_is_about_to_join_it() -> Result<()> {
    let keep = Retention { bytes: 100_000, ..Retention::default() };
    let server = start(&GatedFiles::default(), ServerLimits { lost_seconds: 0, ..small() }, keep)?;
    let stream = Stream::new(704, 400, 20);
    let stopped = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let forgetting = {
        let (sessions, stopped) = (Arc::clone(&server.sessions), Arc::clone(&stopped));
        std::thread::spawn(move || {
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                for session in sessions.all() {
                    sessions.forget_empty(&session);
                }
            }
        })
    };
    // Again and again a collector says hello and goes, or stores a batch; meanwhile its session is forgotten.
    let mut acked = 0;
    for round in 0..200 {
        let (mut peer, next) = Peer::hello(server.address, &stream.hello)?;
        ensure!(next == acked + 1, "round {round}: {acked} were acknowledged, and {next} is wanted");
        if round >= 150 {
            peer.batch(next, stream.batch(next))?;
            peer.acked(next)?;
            acked = next;
            ensure!(server.sessions.get(stream.session()).is_some(), "round {round}: acknowledged, and not known");
        }
    }
    stopped.store(true, std::sync::atomic::Ordering::Relaxed);
    forgetting.join().expect("the thread");
    Ok(())
}

#[test]
fn reading_and_deleting_a_session_list_no_folder_for_each_segment() -> Result<()> {
    let mut lists = Vec::new();
    for batches in [60, 240] {
        let files = GatedFiles::default();
        let server = start(&files, small(), Retention::default())?;
        let stream = Stream::new(705, batches, 500);
        record(server.address, &stream, true)?;
        let segments = files.memory().paths().iter().filter(|path| path.starts_with("segments/")).count();
        let count = |files: &GatedFiles| files.take_calls().iter().filter(|(call, _)| *call == Call::List).count();
        count(&files);
        let path = format!("/api/v1/sessions/{}/trace?format=vramscope", stream.session());
        ensure!(http::get(server.address, &path, &[])?.body == stream.file);
        let read = count(&files);
        ensure!(delete(server.address, stream.session())? == 204);
        lists.push((segments, read, count(&files)));
        ensure!(files.memory().paths().iter().all(|path| !path.starts_with("segments/")));
    }
    let [(few, read, deleted), (many, read_many, deleted_many)] = lists[..] else { anyhow::bail!("two sessions") };
    ensure!(many >= 3 * few, "{few} and {many} segments");
    ensure!((read, deleted) == (read_many, deleted_many), "{lists:?}");
    Ok(())
}

#[test]
fn a_full_disk_makes_room_like_a_full_quota() -> Result<()> {
    let files = GatedFiles::default();
    let server = start(&files, small(), Retention::default())?;
    let streams: Vec<Stream> = (710..716).map(|seed| Stream::new(seed, 60, 500)).collect();
    // Far below the quota, which is 20 GiB.
    files.memory().set_capacity(Some(streams[0].file.len() as u64 * 5 / 2));
    for stream in &streams {
        record(server.address, stream, true)?;
        let path = format!("/api/v1/sessions/{}/trace?format=vramscope", stream.session());
        ensure!(http::get(server.address, &path, &[])?.body == stream.file, "the newest is whole");
    }
    let kept = listed(server.address)?;
    let newest: Vec<_> = streams.iter().rev().take(kept.len()).map(|stream| stream.session().to_owned()).collect();
    ensure!(!kept.is_empty() && kept.len() < streams.len() && kept.iter().all(|id| newest.contains(id)), "{kept:?}");
    Ok(())
}

#[test]
fn a_disk_full_of_pinned_sessions_is_named_and_recording_goes_on_when_there_is_room() -> Result<()> {
    let files = GatedFiles::default();
    let server = start(&files, small(), Retention::default())?;
    let (pinned, other) = (Stream::new(720, 60, 500), Stream::new(721, 60, 500));
    record(server.address, &pinned, true)?;
    server.sessions.pin(&server.sessions.get(pinned.session()).context("no session")?, true)?;
    files.memory().set_capacity(Some(pinned.file.len() as u64 * 3 / 2));
    let (mut peer, next) = Peer::hello(server.address, &other.hello)?;
    for seq in next..=other.last() {
        peer.batch(seq, other.batch(seq))?;
    }
    let refused = loop {
        if let Message::Refused(refused) = peer.frame()? {
            break refused;
        }
    };
    ensure!(refused.retry && refused.message.contains("disk"), "{}", refused.message);
    let ready = http::get(server.address, "/api/v1/health/ready", &[])?;
    ensure!(ready.status == 503 && ready.text().contains("disk"), "{} {}", ready.status, ready.text());
    ensure!(listed(server.address)?.contains(&pinned.session().to_owned()), "a pinned session stays");

    files.memory().set_capacity(None);
    record(server.address, &other, true)?;
    ensure!(http::get(server.address, "/api/v1/health/ready", &[])?.status == 200);
    for stream in [&pinned, &other] {
        let path = format!("/api/v1/sessions/{}/trace?format=vramscope", stream.session());
        ensure!(http::get(server.address, &path, &[])?.body == stream.file);
    }
    Ok(())
}

/// A name may claim any number; what it costs must not depend on it.
#[test]
fn a_stray_file_with_a_high_number_costs_nothing() -> Result<()> {
    let files = GatedFiles::default();
    let stream = Stream::new(730, 60, 500);
    let server = start(&files, small(), Retention::default())?;
    drop(record(server.address, &stream, false)?);
    let session = server.sessions.get(stream.session()).context("no session")?;
    wait_until("its collector has gone", || !session.is_connected())?;
    server.sessions.close_all();
    let sealed =
        files.memory().paths().into_iter().rfind(|path| path.starts_with("segments/")).context("no segment")?;
    let (folder, name) = sealed.rsplit_once('/').context("no folder")?;
    let (number, rest) = name.split_once('.').context("no number")?;
    let bytes = files.memory().read(&sealed, 0, usize::MAX)?;
    files.memory().create(&format!("{folder}/99999999.{rest}"))?.append(&bytes)?;

    let begun = Instant::now();
    let again = start(&files, small(), Retention::default())?;
    let (mut peer, next) = Peer::hello(again.address, &stream.hello)?;
    ensure!(begun.elapsed() < Duration::from_secs(10), "the start took {:?}", begun.elapsed());
    ensure!(next == stream.last() + 1, "{next} is wanted");
    let notes = again.sessions.get(stream.session()).context("no session")?.look(|view| view.record.notes.clone());
    let next_number = number.parse::<u32>()? + 1;
    let want = format!("Parts {next_number} to 99999998 of this recording are missing from the store.");
    ensure!(notes.iter().any(|note| note.starts_with(&want)), "{notes:?}");
    // What follows has a number of nine digits, and is found again.
    peer.end(stream.last())?;
    let third = start(&files, small(), Retention::default())?;
    ensure!(third.sessions.get(stream.session()).context("no session")?.state(&small()) == SessionState::Ended);
    Ok(())
}
