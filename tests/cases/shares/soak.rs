//! Recordings that were changed somewhere: shared or refused, and never a panic, an error of the server, or other contents
//! than the file's own.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use format::recording::Decoder;
use format::{ChunkReader, PRELUDE_BYTES, chunk_bytes, prelude, seal};
use tests::server::Server;
use tests::stream::{Random, Stream};
use tests::{Folder, program, soak};
use trace::limits::ImportLimits;

use super::{Client, code, text};

/// Recordings in a round.
const RECORDINGS: u64 = 30;

/// Returns the kinds and payloads of a recording's chunks.
fn chunks(file: &[u8]) -> Result<Vec<(u8, Vec<u8>)>> {
    let mut found = Vec::new();
    ChunkReader::at_start(&ImportLimits::default())
        .push(file, &mut |chunk| found.push((chunk.kind, chunk.payload.to_vec())))?;
    Ok(found)
}

/// Changes some bytes.
fn change(bytes: &mut [u8], random: &mut Random) {
    for _ in 0..=random.below(4) {
        if !bytes.is_empty() {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
    }
}

/// Returns a recording that was changed: its bytes, or its chunks, whose checksums are right.
fn mutated(file: &[u8], random: &mut Random) -> Result<Vec<u8>> {
    let mut bytes = file.to_vec();
    match random.below(4) {
        0 => change(&mut bytes, random),
        1 => bytes.truncate(random.below(file.len() as u64) as usize),
        way => {
            let mut chunks = chunks(file)?;
            let (one, other) = (random.below(chunks.len() as u64) as usize, random.below(chunks.len() as u64) as usize);
            match (way, random.below(3)) {
                (2, _) => change(&mut chunks[one].1, random),
                (_, 0) => drop(chunks.remove(one)),
                (_, 1) => chunks.swap(one, other),
                (_, _) => chunks.insert(other, chunks[one].clone()),
            }
            bytes =
                chunks.iter().fold(prelude().to_vec(), |file, (kind, payload)| [file, seal(*kind, payload)].concat());
        }
    }
    Ok(bytes)
}

/// Returns the number of events of a recording; `None` if it can't be read.
fn events(file: &[u8]) -> Option<usize> {
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(file).ok()?;
    let (snapshot, _, _) = decoder.finish().ok()?;
    Some(snapshot.devices.iter().map(|device| device.events.len()).sum())
}

#[test]
fn a_changed_recording_is_shared_as_it_is_or_refused() -> Result<()> {
    let fixtures = ["recording_1_0", "recording_gap", "recording_markup", "recording_preview_2"];
    let mut files = vec![super::recording(), Stream::new(3, 6, 200).file];
    for name in fixtures {
        files.push(std::fs::read(tests::workspace(&format!("tests/fixtures/{name}.vramscope")))?);
    }
    ensure!(files.iter().all(|file| chunk_bytes(&file[PRELUDE_BYTES..]).is_some()));
    let (mut shared, mut refused) = (0, 0);
    for seed in soak::rounds(2) {
        // A new server, since the uploads of one address are slowed.
        let (folder, mut random) = (Folder::new("mutated")?, Random::new(seed));
        let server = Server::start_logging(&folder, &["--log", "info"], &[])?;
        let client = Client::new(server.address());
        for i in 0..RECORDINGS {
            let what = format!("seed {seed}, recording {i}");
            let file = mutated(&files[random.below(files.len() as u64) as usize], &mut random)?;
            let answer = client.send("POST", "", &[], &file).with_context(|| what.clone())?;
            match answer.status {
                201 => {
                    shared += 1;
                    let link: serde_json::Value = serde_json::from_slice(&answer.body)?;
                    let got = client.get(&format!("/{}/trace", text(&link, "token")))?;
                    ensure!(got.status == 200, "{what}: {}", got.text());
                    ensure!(events(&got.body) == events(&file), "{what}: other events than the file's");
                }
                400 | 413 | 422 => {
                    refused += 1;
                    ensure!(!code(&answer).is_empty(), "{what}: {}", answer.text());
                }
                status => anyhow::bail!("{what}: {status} {}", answer.text()),
            }
            if i % 10 == 0 {
                let path = folder.join("mutated.vramscope");
                std::fs::write(&path, &file)?;
                let report = Command::new(program::path()?).arg("report").arg(&path).output()?;
                let errors = String::from_utf8_lossy(&report.stderr);
                ensure!(matches!(report.status.code(), Some(0 | 2)) && !errors.contains("panic"), "{what}: {errors}");
            }
        }
        let log = server.log(&folder)?;
        ensure!(!log.contains("panic"), "{log}");
    }
    println!("{shared} were shared, {refused} refused");
    ensure!(shared > 0 && refused > 0, "{shared} were shared, {refused} refused");
    Ok(())
}
