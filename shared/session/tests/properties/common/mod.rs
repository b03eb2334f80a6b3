//! Reads the fixtures, and formats snapshots as text for comparison.
// Each test file uses a part of it.
#![allow(dead_code)]

use std::fmt::Write;
use std::path::PathBuf;

use format::import::{ImportError, Imported, Importer};
use trace::frames::StackId;
use trace::limits::ImportLimits;

/// A file under `tests/fixtures`.
pub(crate) struct Fixture {
    /// Its name.
    pub(crate) name: String,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

/// Returns all snapshots among the fixtures.
pub(crate) fn fixtures() -> Vec<Fixture> {
    let mut all: Vec<Fixture> = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| [".pickle", ".json", ".gz", ".zst"].iter().any(|end| path.to_string_lossy().ends_with(end)))
        .map(|path| Fixture {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            bytes: std::fs::read(&path).unwrap(),
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(all.len() > 15, "the fixtures are missing");
    all
}

/// Returns the bytes of a fixture.
pub(crate) fn fixture_bytes(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Imports a fixture.
pub(crate) fn fixture(name: &str) -> Imported {
    import(&fixture_bytes(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Imports a file pushed in one piece.
pub(crate) fn import(bytes: &[u8]) -> Result<Imported, ImportError> {
    import_in_pieces(bytes, &[bytes.len().max(1)], ImportLimits::default())
}

/// Imports a file pushed in pieces of these sizes, used in turn.
pub(crate) fn import_in_pieces(bytes: &[u8], sizes: &[usize], limits: ImportLimits) -> Result<Imported, ImportError> {
    let mut importer = Importer::new(limits);
    let mut rest = bytes;
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(size.min(rest.len()));
        importer.push(piece)?;
        rest = after;
    }
    importer.finish()
}

/// Formats the contents of a snapshot as text, without the numbers of strings or stacks, which depend on the order of
/// reading.
pub(crate) fn describe(imported: &Imported) -> String {
    let snapshot = &imported.snapshot;
    let text = |id| snapshot.symbols.text(id).into_owned();
    let stack = |id: StackId| {
        let frames = snapshot.symbols.stack(id).iter().map(|&id| {
            let frame = snapshot.symbols.frame(id);
            format!("{}@{}:{}", text(frame.name), text(frame.filename), frame.line)
        });
        frames.collect::<Vec<_>>().join("<")
    };
    let mut out = format!("{:?}\n", snapshot.settings);
    for device in &snapshot.devices {
        writeln!(out, "device {}", device.device).unwrap();
        for e in device.events.iter() {
            let tag = snapshot.tags.get(e.tag);
            let contexts = [text(tag.compile_context), text(tag.user_metadata), text(tag.other_action)];
            let what = (e.action, e.address, e.size, e.time_us, tag.stream, tag.pool, contexts);
            writeln!(out, "  {what:?} {}", stack(e.stack)).unwrap();
        }
        for s in &device.segments {
            let what = (s.address, s.size, s.stream, s.is_small, s.is_expandable, s.pool);
            writeln!(out, "  segment {what:?} {}", stack(s.stack)).unwrap();
            for b in &s.blocks {
                let what = (b.address, b.size, b.requested, b.state);
                writeln!(out, "    {what:?} {}", stack(b.stack)).unwrap();
            }
        }
        for a in &device.annotations {
            writeln!(out, "  annotation {:?} {:?} {}", a.stage, a.time_us, text(a.name)).unwrap();
        }
    }
    for finding in &imported.findings {
        writeln!(out, "{} {:?} {}", finding.code.name(), finding.device, finding.message).unwrap();
    }
    out
}

/// Returns the contents of a file, without what was found about it.
pub(crate) fn contents(imported: &Imported) -> String {
    let found = imported.findings.len();
    let text = describe(imported);
    let lines: Vec<&str> = text.lines().collect();
    lines[..lines.len() - found].join("\n")
}
