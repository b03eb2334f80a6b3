//! Damaged files: what is hit is set aside and counted, and everything else stays.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use format::recording::Decoder;
use format::{ChunkReader, ChunkScanner, Kind, Piece};
use serde_json::{Value, json};
use tests::peer::Peer;
use tests::server::Server;
use tests::stream::Stream;
use tests::{Folder, program};
use trace::limits::ImportLimits;
use tracker::Tracker;

use crate::{check_same, download, json};

const EVENTS: u64 = 200;

/// Records the first `batches` of a stream, and ends it if these are all.
fn record(folder: &Path, stream: &Stream, batches: u64) -> Result<()> {
    let server = Server::start_in(folder, &[])?;
    let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
    for seq in 1..=batches {
        peer.batch(seq, stream.batch(seq))?;
    }
    if batches == stream.last() {
        peer.end(batches)?;
    } else {
        peer.acked(batches)?;
    }
    ensure!(batches < stream.last() || files(folder, "wal").is_empty(), "the segment was not sealed");
    server.kill()
}

/// Returns the files below a folder whose path contains a word.
fn files(folder: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, word));
        } else if path.to_string_lossy().contains(word) && path.extension().is_some_and(|end| end == "vramscope") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
    let mut bytes = fs::read(path)?;
    change(&mut bytes);
    Ok(fs::write(path, bytes)?)
}

/// Returns the offset of the chunks of a batch within a segment.
fn find(bytes: &[u8], batch: &[u8]) -> usize {
    bytes.windows(batch.len()).position(|window| window == batch).expect("the batch is stored")
}

/// Returns the offset of the events in a batch.
fn events_chunk(batch: &[u8]) -> usize {
    let mut scanner = ChunkScanner::at_chunk(0);
    scanner.push(batch);
    while let Some(piece) = scanner.next_piece() {
        if let Piece::Chunk(byte, chunk) = piece
            && chunk.is(Kind::Events)
        {
            return byte as usize;
        }
    }
    panic!("the batch has no events")
}

fn session(server: &Server, stream: &Stream) -> Result<Value> {
    json(server, &format!("/api/v1/sessions/{}", stream.session()))
}

/// Returns how many events a download holds, how many it counts as lost, and whether it says that something is wrong.
fn counts(file: &[u8]) -> Result<(u64, u64, bool)> {
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(file)?;
    let (snapshot, findings, _) = decoder.finish()?;
    let device = snapshot.devices.first().context("no device")?;
    let mut tracker = Tracker::new(ImportLimits::default());
    ChunkReader::at_start(&ImportLimits::default()).push(file, &mut |chunk| tracker.add(chunk))?;
    let lost = tracker.devices.iter().map(|(_, device)| device.lost).sum();
    Ok((device.events.len() as u64, lost, !findings.is_empty()))
}

#[test]
fn a_flipped_bit_in_a_lost_session_costs_its_chunk_and_the_collector_goes_on() -> Result<()> {
    let stream = Stream::new(200, 8, EVENTS as usize);
    let folder = Folder::new("flipped")?;
    record(&folder, &stream, 6)?;
    let open = files(&folder, "wal");
    ensure!(open.len() == 1, "{open:?}");
    change(&open[0], |bytes| {
        let at = find(bytes, stream.batch(3));
        bytes[at + events_chunk(stream.batch(3)) + 40] ^= 1;
    })?;

    let server = Server::start_in(&folder, &[])?;
    let shown = session(&server, &stream)?;
    assert_eq!((&shown["events"], &shown["lost"]), (&(5 * EVENTS).into(), &EVENTS.into()), "{shown}");
    ensure!(shown["damaged_bytes"].as_u64() > Some(0) && shown["notes"].to_string().contains("set aside"), "{shown}");
    ensure!(files(&folder, "quarantine").len() == 1, "the damaged file is gone");
    let (mut peer, next) = Peer::hello(server.address(), &stream.hello)?;
    assert_eq!(next, 7, "only the damaged batch is missing");
    for seq in 7..=8 {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.end(8)?;
    let (events, lost, _) = counts(&download(&server, stream.session())?)?;
    assert_eq!((events, lost), (7 * EVENTS, EVENTS));
    Ok(())
}

#[test]
fn a_collector_goes_on_when_the_batches_that_were_acknowledged_last_are_damaged() -> Result<()> {
    let stream = Stream::new(201, 8, EVENTS as usize);
    for what in ["the last batch", "everything"] {
        let folder = Folder::new(&format!("end-{}", what.len()))?;
        record(&folder, &stream, 6)?;
        change(&files(&folder, "wal")[0], |bytes| {
            let from = if what == "everything" { 0 } else { find(bytes, stream.batch(6)) };
            bytes[from..].iter_mut().for_each(|byte| *byte ^= 0x55);
        })?;
        let server = Server::start_in(&folder, &[])?;
        // The collector gave up what was acknowledged.
        let hello = wire::Hello { first: 7, ..stream.hello.clone() };
        let (mut peer, next) = Peer::hello(server.address(), &hello)?;
        assert_eq!(next, 7, "{what}");
        for seq in 7..=8 {
            peer.batch(seq, stream.batch(seq))?;
        }
        peer.end(8)?;
        let shown = session(&server, &stream)?;
        assert_eq!(shown["state"], "ended", "{what}: {shown}");
        ensure!(shown["notes"].to_string().contains("missing"), "{what}: {shown}");
        assert_eq!(shown["name"], stream_name(&stream), "{what}");
        let kept = if what == "everything" { 2 } else { 7 };
        assert_eq!(counts(&download(&server, stream.session())?)?.0, kept * EVENTS, "{what}");
        ensure!(files(&folder, "quarantine").len() == 1, "{what}: the damaged file is gone");
    }
    Ok(())
}

fn stream_name(stream: &Stream) -> Value {
    format::Header::decode(&stream.hello.header).map(|header| header.name).unwrap_or_default().into()
}

#[test]
fn a_download_says_what_is_damaged_and_holds_the_rest() -> Result<()> {
    let stream = Stream::new(202, 6, EVENTS as usize);
    for (what, byte) in [("payload", 60), ("length", 9), ("marker", 1)] {
        let folder = Folder::new(&format!("sealed-{what}"))?;
        record(&folder, &stream, 6)?;
        let sealed = files(&folder, "segments");
        ensure!(sealed.len() == 1, "{sealed:?}");
        change(&sealed[0], |bytes| {
            let at = find(bytes, stream.batch(3)) + events_chunk(stream.batch(3));
            bytes[at + byte] ^= 0x40;
        })?;
        let server = Server::start_in(&folder, &[])?;
        let (events, lost, is_reported) = counts(&download(&server, stream.session())?)?;
        assert_eq!((events, lost, is_reported), (5 * EVENTS, EVENTS, true), "{what}");
        let shown = session(&server, &stream)?;
        ensure!(shown["damaged_bytes"].as_u64() > Some(0) && shown["notes"].to_string().contains("damaged"), "{shown}");
        // Nothing was deleted, and viewers get the rest as well.
        ensure!(sealed[0].exists(), "{what}");
        let mut viewer = Peer::viewer(server.address(), stream.session(), 0)?;
        let (batches, _) = viewer.batches(6)?;
        ensure!(!batches.is_empty(), "{what}");
    }
    Ok(())
}

#[test]
fn a_session_without_a_readable_label_is_listed_and_can_be_deleted() -> Result<()> {
    let stream = Stream::new(203, 4, EVENTS as usize);
    for (word, batches) in [("segments", 4), ("wal", 3)] {
        let folder = Folder::new(&format!("unlabelled-{word}"))?;
        record(&folder, &stream, batches)?;
        change(&files(&folder, word)[0], |bytes| bytes.fill(0x11))?;
        // Neither does the catalogue help.
        let _ = fs::remove_file(folder.join("catalogue"));
        let server = Server::start_in(&folder, &[])?;
        let listed = json(&server, "/api/v1/sessions")?;
        let found = listed["sessions"].as_array().context("a list")?;
        if word == "wal" {
            // Nothing is left but what was set aside.
            ensure!(found.is_empty() && files(&folder, "quarantine").len() == 1, "{listed}");
            continue;
        }
        ensure!(found.len() == 1 && found[0]["damaged_bytes"].as_u64() > Some(0), "{listed}");
        ensure!(found[0]["bytes"] == found[0]["damaged_bytes"], "its bytes count: {listed}");
        let request = format!(
            "DELETE /api/v1/sessions/{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            stream.session(),
            server.address()
        );
        assert_eq!(tests::http::send(server.address(), &request)?.status, 204);
        assert_eq!(json(&server, "/api/v1/sessions")?["sessions"], json!([]));
    }
    Ok(())
}

#[test]
fn a_folder_that_was_just_being_created_is_no_obstacle() -> Result<()> {
    let stream = Stream::new(205, 2, EVENTS as usize);
    let folder = Folder::new("created")?;
    fs::create_dir_all(folder.join("sessions").join(stream.session()))?;
    fs::create_dir_all(folder.join("wal"))?;
    fs::write(folder.join("wal").join(format!("{}.00000001.vramscope.new", stream.session())), b"half a head")?;
    let server = Server::start_in(&folder, &[])?;
    let (mut peer, next) = Peer::hello(server.address(), &stream.hello)?;
    assert_eq!(next, 1);
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    Ok(())
}

/// Records a stream of 40 batches in three segments, up to batches 10, 25 and 40, and returns their files.
fn record_in_parts(folder: &Path, stream: &Stream) -> Result<Vec<PathBuf>> {
    // Every restart seals a segment.
    let mut next = 1;
    for batches in [10, 25, 40] {
        let server = Server::start_in(folder, &[])?;
        let (mut peer, wanted) = Peer::hello(server.address(), &stream.hello)?;
        assert_eq!(wanted, next);
        for seq in next..=batches {
            peer.batch(seq, stream.batch(seq))?;
        }
        if batches == 40 {
            peer.end(40)?;
        } else {
            peer.acked(batches)?;
        }
        next = batches + 1;
        if batches == 40 {
            // In order, so that its catalogue knows all of it.
            peer.close();
            server.stop()?;
        } else {
            server.kill()?;
        }
    }
    let sealed = files(folder, "segments");
    ensure!(sealed.len() == 3, "{sealed:?}");
    Ok(sealed)
}

#[test]
fn what_is_missing_at_the_end_is_counted_and_listed() -> Result<()> {
    let stream = Stream::new(210, 40, EVENTS as usize);
    let all = stream.events;
    // What is done to the files, the least and the most events that are left, and what `store check` says.
    type Harm = fn(&[PathBuf]) -> Result<()>;
    let cases: [(&str, Harm, u64, u64, &str); 5] = [
        (
            "a flipped byte in the first",
            |files| change(&files[0], |bytes| bytes[5_000] ^= 1),
            all / 2,
            all - 1,
            "differs",
        ),
        (
            "the last one is cut",
            |files| change(&files[2], |bytes| bytes.truncate(bytes.len() / 2)),
            all / 2,
            all - 1,
            "label",
        ),
        (
            "the last one is gone",
            |files| Ok(fs::remove_file(&files[2])?),
            25 * EVENTS,
            25 * EVENTS,
            "segment 3 is missing",
        ),
        ("all are gone", |files| Ok(files.iter().try_for_each(fs::remove_file)?), 0, 0, "all of it is missing"),
        (
            "the folder is gone",
            |files| Ok(fs::remove_dir_all(files[0].parent().context("a folder")?)?),
            0,
            0,
            "all of it is missing",
        ),
    ];
    for (what, harm, least, most, said) in cases {
        let folder = Folder::new("harmed")?;
        harm(&record_in_parts(&folder, &stream)?)?;
        let (code, text) = store(&folder, "check")?;
        ensure!(code == Some(1) && text.contains(said) && text.contains("1 damaged"), "{what}: {code:?} {text}");
        // As the server finds it, and after a repair.
        for repairs in [false, true] {
            if repairs {
                let (code, text) = store(&folder, "repair")?;
                ensure!(code == Some(0), "{what}: {text}");
            } else if said == "differs" {
                // Found when it is read.
                continue;
            }
            // It stays known.
            for _ in 0..2 {
                let server = Server::start_in(&folder, &[])?;
                let shown = session(&server, &stream)?;
                let [events, lost, bytes] =
                    ["events", "lost", "damaged_bytes"].map(|key| shown[key].as_u64().unwrap_or(0));
                ensure!((least..=most).contains(&events) && events + lost == all && bytes > 0, "{what}: {shown}");
                ensure!(shown["state"] == "ended" && shown["name"] == stream_name(&stream), "{what}: {shown}");
                ensure!(
                    shown["notes"].as_array().is_some_and(|notes| !notes.is_empty() && notes.len() < 4),
                    "{what}: {shown}"
                );
                if events > 0 {
                    assert_eq!(counts(&download(&server, stream.session())?)?.0, events, "{what}");
                }
                server.stop()?;
            }
        }
        // Until somebody deletes it.
        let server = Server::start_in(&folder, &[])?;
        let head =
            tests::http::head("DELETE", server.address(), &format!("/api/v1/sessions/{}", stream.session()), &[]);
        assert_eq!(tests::http::send(server.address(), &head)?.status, 204, "{what}");
        server.kill()?;
        let server = Server::start_in(&folder, &[])?;
        assert_eq!(json(&server, "/api/v1/sessions")?["sessions"], json!([]), "{what}");
    }
    Ok(())
}

#[test]
fn a_missing_segment_is_a_gap_with_its_reason() -> Result<()> {
    let stream = Stream::new(206, 40, 2_000);
    let folder = Folder::new("missing")?;
    let sealed = record_in_parts(&folder, &stream)?;
    fs::remove_file(&sealed[1])?;
    let server = Server::start_in(&folder, &[])?;
    let shown = session(&server, &stream)?;
    ensure!(
        shown["notes"].to_string().contains("Part 2 of this recording") && shown["damaged_bytes"].as_u64() > Some(0),
        "{shown}"
    );
    let (events, lost, _) = counts(&download(&server, stream.session())?)?;
    assert_eq!((events, lost), (25 * 2_000, 15 * 2_000), "what follows is exact again");
    Ok(())
}

/// Runs `vramscope store` on a folder. Returns the exit code and what it printed.
fn store(folder: &Path, action: &str) -> Result<(Option<i32>, String)> {
    let output = program::run(&["store", action, "--data", folder.to_str().context("a path")?])?;
    let text = [&output.stdout[..], &output.stderr].concat();
    Ok((output.status.code(), String::from_utf8_lossy(&text).into_owned()))
}

#[test]
fn a_damaged_store_can_be_checked_repaired_and_rebuilt() -> Result<()> {
    let (ended, lost) = (Stream::new(207, 6, EVENTS as usize), Stream::new(208, 6, EVENTS as usize));
    let folder = Folder::new("repaired")?;
    record(&folder, &ended, 6)?;
    record(&folder, &lost, 4)?;
    let (code, text) = store(&folder, "check")?;
    ensure!(code == Some(0) && text.contains("2 sessions") && text.contains("0 damaged"), "{code:?} {text}");
    for path in [files(&folder, "segments"), files(&folder, "wal")].concat() {
        change(&path, |bytes| {
            let stream = if bytes.windows(26).any(|id| id == ended.session().as_bytes()) { &ended } else { &lost };
            let at = find(bytes, stream.batch(3)) + events_chunk(stream.batch(3));
            bytes[at + 40] ^= 1;
        })?;
    }
    for action in ["check", "scrub"] {
        let (code, text) = store(&folder, action)?;
        ensure!(code == Some(1) && text.contains("segment 1: ") && text.contains("2 damaged"), "{code:?} {text}");
        ensure!(text.contains("differs from what was written"), "{text}");
    }
    let (code, text) = store(&folder, "repair")?;
    ensure!(code == Some(0) && text.matches("repaired segment 1; its damaged file").count() == 2, "{code:?} {text}");
    let (code, text) = store(&folder, "check")?;
    ensure!(code == Some(0) && text.contains("2 files set aside in quarantine"), "{code:?} {text}");
    fs::remove_file(folder.join("catalogue"))?;
    let (code, text) = store(&folder, "rebuild")?;
    ensure!(code == Some(0) && text.contains("2 sessions") && folder.join("catalogue").exists(), "{code:?} {text}");

    let server = Server::start_in(&folder, &[])?;
    for (stream, kept) in [(&ended, 5), (&lost, 3)] {
        let (events, missing, _) = counts(&download(&server, stream.session())?)?;
        assert_eq!((events, missing), (kept * EVENTS, EVENTS));
        let shown = session(&server, stream)?;
        assert_eq!((&shown["events"], &shown["lost"]), (&json!(events), &json!(missing)), "{shown}");
        ensure!(shown["damaged_bytes"].as_u64() > Some(0), "{shown}");
    }
    assert_eq!(session(&server, &ended)?["state"], "ended");
    assert_eq!(Peer::hello(server.address(), &lost.hello)?.1, 5);
    // The server owns the folder now.
    let (code, text) = store(&folder, "repair")?;
    ensure!(code == Some(2) && text.contains("Another server uses the folder"), "{code:?} {text}");
    assert_eq!(store(&folder, "check")?.0, Some(0));
    Ok(())
}

#[test]
fn a_copy_of_the_folder_at_any_moment_is_a_backup() -> Result<()> {
    let stream = Stream::new(209, 60, 500);
    let folder = Folder::new("original")?;
    let server = Server::start_in(&folder, &[])?;
    let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
    for seq in 1..=40 {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.acked(40)?;
    let copy = Folder::new("copy")?;
    copy_folder(&folder, &copy)?;
    for seq in 41..=60 {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.acked(60)?;
    let restored = Server::start_in(&copy, &[])?;
    let hello = wire::Hello { first: 61, ..stream.hello.clone() };
    let whole = download(&restored, stream.session())?;
    check_same("the copy", &whole, &stream.file[..whole.len()]);
    ensure!(counts(&whole)?.0 >= 40 * 500, "acknowledged events are missing");
    assert_eq!(Peer::hello(restored.address(), &hello)?.1, 61, "the collector goes on with the restored server");
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().context("a name")?);
        if path.is_dir() {
            copy_folder(&path, &target)?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}
