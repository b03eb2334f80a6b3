//! Snapshots that are damaged in the middle: what precedes the damage is shown, exactly as that of a truncated file.

use std::io::Write;

use crate::common::{Fixture, contents, describe, fixture_bytes, fixtures, import, import_in_pieces};
use flate2::Compression;
use flate2::write::GzEncoder;
use format::import::Imported;
use query::finding::{FindingCode, Integrity, lacks_end};
use session::Session;
use trace::limits::ImportLimits;
use trace::units::Count;

/// Bytes that are overwritten.
const BAD: usize = 400;

/// Returns a file with bad bytes in place of those from `at` on.
fn overwritten(bytes: &[u8], at: usize, bad: u8) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    damaged.iter_mut().skip(at).take(BAD).for_each(|byte| *byte = bad);
    damaged
}

fn events(imported: &Imported) -> usize {
    imported.snapshot.devices.iter().map(|device| device.events.len()).sum()
}

/// Returns the byte at which a file is damaged, as its first finding says, if that is damage.
fn told(imported: &Imported) -> Option<usize> {
    let finding = imported.findings.first().filter(|finding| finding.code == FindingCode::Damaged)?;
    let (_, rest) = finding.message.split_once("damaged at byte ")?;
    let digits = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(char::is_ascii_digit);
    digits.collect::<String>().parse().ok()
}

#[track_caller]
fn stopped(bytes: &[u8]) -> Imported {
    let got = import(bytes).unwrap();
    assert!(told(&got).is_some(), "{:?}", got.findings);
    got
}

#[test]
fn a_damaged_snapshot_is_shown_as_if_it_were_truncated_there() {
    for Fixture { name, bytes } in fixtures() {
        if [".gz", ".zst"].iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let step = [3, 17, 211][usize::from(bytes.len() > 5_000) + usize::from(bytes.len() > 20_000)];
        let mut seen = 0;
        for (at, bad) in (0..bytes.len()).step_by(step).flat_map(|at| [(at, 0xff), (at, 0), (at, b'.'), (at, b'u')]) {
            let damaged = overwritten(&bytes, at, bad);
            let Ok(got) = import(&damaged) else { continue };
            let Some(byte) = told(&got) else { continue };
            seen += 1;
            let cut = import(&damaged[..byte]).unwrap();
            assert!(contents(&got) == contents(&cut), "{name}, {bad} from {at} on");
            let integrity = Integrity::of(&got.findings);
            assert!(integrity.is_damaged && !integrity.is_cut && lacks_end(&got.findings));
            assert!(got.findings[0].message.contains("Copy the file again"), "{}", got.findings[0].message);
        }
        let is_long = bytes.len() > 2_000;
        assert!(seen > 0 || !is_long, "{name}");
    }
}

#[test]
fn what_precedes_the_damage_is_never_lost() {
    for Fixture { name, bytes } in fixtures() {
        // Text is read as it is, and a compressed file may be damaged in all that follows.
        if !name.ends_with(".pickle") || ["protocol0", "protocol1"].iter().any(|start| name.starts_with(start)) {
            continue;
        }
        let step = [3, 17, 211][usize::from(bytes.len() > 5_000) + usize::from(bytes.len() > 20_000)];
        for at in (0..bytes.len()).step_by(step) {
            let Ok(cut) = import(&bytes[..at]) else { continue };
            if cut.snapshot.devices.is_empty() {
                continue;
            }
            let got = import(&overwritten(&bytes, at, 0xff)).unwrap_or_else(|error| panic!("{name} at {at}: {error}"));
            assert!(events(&got) >= events(&cut), "{name} at {at}");
        }
    }
}

#[test]
fn pieces_of_any_size_stop_at_the_same_byte() {
    for name in ["protocol4.pickle", "cpp.pickle", "current.json", "ring.pickle"] {
        let bytes = fixture_bytes(name);
        let damaged = overwritten(&bytes, bytes.len() * 4 / 5, 0);
        let want = describe(&stopped(&damaged));
        for size in [1, 2, 3, 64, 1_000] {
            let got = import_in_pieces(&damaged, &[size], ImportLimits::default()).unwrap();
            assert!(describe(&got) == want, "{name} in pieces of {size}");
        }
    }
}

/// Returns the bytes of a trace up to the middle, where an instruction begins, and those behind.
fn halves() -> (Vec<u8>, Vec<u8>) {
    let bytes = fixture_bytes("ring.pickle");
    let at = told(&stopped(&overwritten(&bytes, bytes.len() / 2, 0xff))).unwrap();
    (bytes[..at].to_vec(), bytes[at..].to_vec())
}

#[test]
fn the_finding_says_what_where_and_what_next() {
    let (before, behind) = halves();
    let cut = import(&before).unwrap();
    for (bad, want) in [
        (&b"\xff"[..], "the byte 0xff is no instruction of a pickle"),
        (b"j\xff\xff\xff\xff", "it refers to an object that does not exist (memo 4294967295)"),
        (b"X\xff\xff\xff\xff", "a string of 4,294,967,295 bytes, which no memory snapshot needs"),
        (b".", "it ends within a list or dict"),
    ] {
        let got = stopped(&[&before, bad, &behind].concat());
        assert!(contents(&got) == contents(&cut), "{want}");
        let byte = Count(told(&got).unwrap() as u64);
        let want = format!(
            "The file is damaged at byte {byte}, in or after its trace: {want}. 491 trace entries and 2 segments were read, of \
             which the last may be wrong. Copy the file again to get the rest, or record a new one."
        );
        assert_eq!(got.findings[0].message, want);
    }
}

/// Returns a file that is compressed in many blocks, so that damage in one leaves those before it.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for piece in bytes.chunks(2_000) {
        encoder.write_all(piece).unwrap();
        encoder.flush().unwrap();
    }
    encoder.finish().unwrap()
}

#[test]
fn a_snapshot_whose_compression_is_damaged_is_shown_up_to_there() {
    for name in ["ring.pickle", "current.json"] {
        let bytes = packed(&fixture_bytes(name));
        let at = bytes.len() * 4 / 5;
        let cut = import(&bytes[..at]).unwrap();
        let got = stopped(&overwritten(&bytes, at, 0xff));
        assert!(events(&cut) > 0 && events(&got) >= events(&cut), "{name}");
        assert_eq!(got.findings.iter().filter(|finding| finding.code != FindingCode::UnknownAction).count(), 1);
    }
    // The damage may also be in what was compressed.
    let bytes = fixture_bytes("ring.pickle");
    let got = stopped(&packed(&overwritten(&bytes, bytes.len() / 2, 0xff)));
    assert!(got.findings[0].message.contains(" of the unpacked data, in or after its trace: "), "{:?}", got.findings);
}

#[test]
fn a_session_of_a_damaged_snapshot_ends_where_that_of_a_truncated_one_does() {
    for name in ["protocol4.pickle", "ring.pickle", "two_devices.json"] {
        let bytes = fixture_bytes(name);
        let damaged = overwritten(&bytes, bytes.len() * 4 / 5, 0);
        let got = stopped(&damaged);
        let cut = import(&damaged[..told(&got).unwrap()]).unwrap();
        let [got, cut] = [got, cut].map(|imported| Session::build(imported, &mut |_| {}).summary().clone());
        assert_eq!(got.devices, cut.devices, "{name}");
        let others = |summary: &query::Summary| summary.findings.iter().skip(1).map(|f| f.code).collect::<Vec<_>>();
        assert_eq!(others(&got), others(&cut), "{name}");
    }
}
