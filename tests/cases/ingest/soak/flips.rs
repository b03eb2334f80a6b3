//! Bits that flip anywhere in the folder of data: what is hit is counted and said, and everything else is exact.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use format::ChunkReader;
use format::recording::Decoder;
use serde_json::Value;
use tests::Folder;
use tests::peer::Peer;
use tests::server::Server;
use tests::soak;
use tests::stream::{Random, Stream};
use trace::Event;
use trace::limits::ImportLimits;
use tracker::Tracker;

use crate::{download, json};

/// Batches that are sent of each stream.
const BATCHES: u64 = 12;

/// Records a session that has ended, and one whose collector and server were killed.
fn record(folder: &Path, seed: u64) -> Result<[Stream; 2]> {
    let streams = [Stream::new(2 * seed, 12, 60), Stream::new(2 * seed + 1, 20, 60)];
    let server = Server::start_in(folder, &[])?;
    for stream in &streams {
        let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
        for seq in 1..=BATCHES {
            peer.batch(seq, stream.batch(seq))?;
        }
        if stream.last() == BATCHES {
            peer.end(BATCHES)?;
        } else {
            peer.acked(BATCHES)?;
        }
    }
    server.kill()?;
    Ok(streams)
}

/// Returns the files of a folder that hold something: log, segments, catalogue, and clock.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.file_name().and_then(|name| name.to_str()) {
            // Of the test's harness, and a lock.
            Some("state" | "lock" | "log") => {}
            _ if path.is_dir() => found.extend(files(&path)?),
            _ if fs::metadata(&path)?.len() > 0 => found.push(path),
            _ => {}
        }
    }
    found.sort();
    Ok(found)
}

fn session(server: &Server, stream: &Stream) -> Result<Value> {
    json(server, &format!("/api/v1/sessions/{}", stream.session()))
}

/// Returns the events of a file's only device; none for a file without one. Also returns how many it says are lost.
fn events(file: &[u8]) -> Result<(Vec<Event>, u64)> {
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(file)?;
    let (snapshot, _, _) = decoder.finish()?;
    let mut tracker = Tracker::new(ImportLimits::default());
    ChunkReader::at_start(&ImportLimits::default()).push(file, &mut |chunk| tracker.add(chunk))?;
    let lost = tracker.devices.iter().map(|(_, device)| device.lost).sum();
    let events = snapshot.devices.first().map(|device| device.events.iter().collect());
    Ok((events.unwrap_or_default(), lost))
}

/// What identifies an event. The numbers of stacks and tags differ once names are lost.
fn identity(event: &Event) -> (u8, u64, u64, i64) {
    (event.action as u8, event.address.0, event.size, event.time_us)
}

/// Checks that what a server has of a stream is what was sent, but for what it says. Returns the number of lost events.
fn check(server: &Server, stream: &Stream) -> Result<u64> {
    let sent: u64 = BATCHES * stream.events / stream.last();
    let response = server.get(&format!("/api/v1/sessions/{}", stream.session()))?;
    if response.status == 404 {
        // Only what nothing readable is left of; the file is set aside.
        return Ok(sent);
    }
    // Damage to a sealed segment is found when it is read.
    let file = download(server, stream.session())?;
    let shown = session(server, stream)?;
    let ((got, counted), (all, _)) = (events(&file)?, events(&stream.file)?);
    let mut rest = all.iter();
    for event in &got {
        ensure!(rest.any(|other| identity(other) == identity(event)), "{event:?} was not sent, or not in this order");
    }
    let lost = sent - got.len() as u64;
    let [events, said] = ["events", "lost"].map(|key| shown[key].as_u64().unwrap_or(u64::MAX));
    ensure!(events == got.len() as u64 || lost > 0, "{} events are there: {shown}", got.len());
    let is_said = shown["notes"].as_array().is_some_and(|notes| !notes.is_empty());
    ensure!(lost == 0 || is_said && shown["damaged_bytes"].as_u64() > Some(0), "{lost} are lost in silence: {shown}");
    // How many are missing at the end of a log, nothing in it tells. What is found when it is read is counted in what was read.
    let is_tail = got.iter().map(identity).eq(all.iter().take(got.len()).map(identity));
    let is_counted = is_tail && said == 0 || said == lost || counted == lost;
    ensure!(is_counted, "{lost} are lost, {said} or {counted} are said to be: {shown}");
    let is_same = file == stream.file || stream.file.starts_with(&file);
    ensure!(is_same || is_said, "the download differs in silence: {shown}");
    Ok(lost)
}

#[test]
fn a_flipped_bit_costs_what_it_hits_and_is_said() -> Result<()> {
    let (mut flips, mut losses) = (0, 0);
    for seed in soak::rounds(12) {
        let (original, mut random) = (Folder::new("flips")?, Random::new(seed));
        let streams = record(&original, seed)?;
        let all = files(&original)?;
        let path = &all[random.below(all.len() as u64) as usize];
        let mut bytes = fs::read(path)?;
        // A share of the length, which differs by some bytes from run to run.
        let at = (random.below(1 << 20) as usize * bytes.len()) >> 20;
        bytes[at] ^= 1 << random.below(8);
        let what = format!("{}, byte {at} of {}", path.strip_prefix(&original)?.display(), bytes.len());
        fs::write(path, bytes)?;

        let server = Server::start_in(&original, &[]).with_context(|| what.clone())?;
        let lost = streams.iter().map(|stream| check(&server, stream)).sum::<Result<u64>>();
        let lost = lost.with_context(|| what.clone())?;
        println!("{what}: {lost} events lost");
        let is_data = what.starts_with("wal") || what.starts_with("segments");
        ensure!(lost == 0 || is_data, "{what}: {lost} events are lost, and none of them was hit");
        // The collector of the one that was interrupted goes on.
        let stream = &streams[1];
        let hello = wire::Hello { first: BATCHES + 1, ..stream.hello.clone() };
        let (mut peer, next) = Peer::hello(server.address(), &hello).with_context(|| what.clone())?;
        for seq in next..=stream.last() {
            peer.batch(seq, stream.batch(seq))?;
        }
        peer.end(stream.last())?;
        (flips, losses) = (flips + 1, losses + u64::from(lost > 0));
    }
    println!("{flips} flips, {losses} of them cost events");
    Ok(())
}
