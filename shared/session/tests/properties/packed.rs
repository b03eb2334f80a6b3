//! Compressed files: their checksums, what follows them, and what is kept of damaged ones.

use std::io::{Read, Write};

use crate::common::{contents, describe, fixture_bytes, import, import_in_pieces};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use format::import::Imported;
use query::finding::{Finding, FindingCode};
use trace::limits::ImportLimits;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns what was found about a file that was not found about the whole one.
#[track_caller]
fn said(bytes: &[u8], whole: &Imported) -> Vec<Finding> {
    let got = import(bytes).unwrap();
    assert_eq!(contents(&got), contents(whole));
    got.findings.into_iter().filter(|finding| !whole.findings.contains(finding)).collect()
}

/// Checks that one finding is new, with this code and this text in it.
#[track_caller]
fn check(bytes: &[u8], whole: &Imported, code: FindingCode, text: &str) {
    let said = said(bytes, whole);
    assert!(said.len() == 1 && said[0].code == code && said[0].message.contains(text), "{text}: {said:?}");
}

/// Reading stopped at the end of the pickle, so that no checksum was compared: a quarter of the damaged files were read
/// without a word, some with other numbers.
#[test]
fn no_flipped_bit_changes_what_is_read_without_a_word() {
    for name in ["current.pickle.gz", "current.json.gz", "current.pickle.zst"] {
        let bytes = fixture_bytes(name);
        let whole = import(&bytes).unwrap();
        let mut silent = Vec::new();
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let Ok(got) = import(&damaged) else { continue };
            if got.findings.iter().all(|finding| whole.findings.contains(finding)) {
                assert_eq!(contents(&got), contents(&whole), "{name}, bit {bit}");
                silent.push(bit);
            }
        }
        if name.ends_with(".gz") {
            // Bits without a meaning, such as the time in a header: gzip itself does not mind.
            silent.retain(|bit| {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                MultiGzDecoder::new(&damaged[..]).read_to_end(&mut Vec::new()).is_err()
            });
            assert!(silent.is_empty(), "{name}: {silent:?}");
        } else {
            // What is skipped, a larger window, and bits that pad the tables of a block.
            assert!(silent.len() * 50 < 8 * bytes.len(), "{name}: {silent:?}");
        }
    }
}

#[test]
fn a_wrong_checksum_is_said_and_everything_that_was_read_is_kept() {
    let bytes = fixture_bytes("current.pickle.gz");
    let whole = import(&bytes).unwrap();
    let end = bytes.len();
    for at in end - 8..end {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        let what = if at < end - 4 { "its checksum does not match" } else { "its length does not match" };
        check(&damaged, &whole, FindingCode::Malformed, what);
        for size in [1, 7] {
            let got = import_in_pieces(&damaged, &[size], ImportLimits::default()).unwrap();
            assert_eq!(describe(&got), describe(&import(&damaged).unwrap()));
        }
    }
    let mut zstd = fixture_bytes("current.pickle.zst");
    let whole = import(&zstd).unwrap();
    *zstd.last_mut().unwrap() ^= 1;
    check(&zstd, &whole, FindingCode::Malformed, "the checksum of a frame does not match");
}

#[test]
fn a_missing_end_is_said_though_the_snapshot_is_whole() {
    for name in ["current.pickle.gz", "current.pickle.zst"] {
        let bytes = fixture_bytes(name);
        let whole = import(&bytes).unwrap();
        for cut in 1..5 {
            // zstd's last block comes with its checksum or not at all.
            let Ok(got) = import(&bytes[..bytes.len() - cut]) else { continue };
            if contents(&got) == contents(&whole) {
                check(&bytes[..bytes.len() - cut], &whole, FindingCode::Malformed, "its checksum is missing");
            } else {
                assert_eq!(got.findings[0].code, FindingCode::Truncated, "{name} without {cut}");
            }
        }
    }
}

#[test]
fn what_follows_the_last_member_or_frame_is_said_unless_it_is_padding() {
    let empty_frame = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00];
    for (name, other) in [("current.pickle.gz", &gzip(b"")[..]), ("current.pickle.zst", &empty_frame)] {
        let bytes = fixture_bytes(name);
        let whole = import(&bytes).unwrap();
        let with = |more: &[u8]| [&bytes[..], more].concat();
        assert_eq!(said(&with(&[0; 700]), &whole), [], "{name}");
        assert_eq!(said(&with(other), &whole), [], "{name}");
        assert_eq!(said(&with(&[&[0; 70], other].concat()), &whole), [], "{name}");
        let format = if name.ends_with("gz") { "gzip" } else { "zstd" };
        for more in [&b"\n"[..], b"garbage", &[0, 0, 0, b'x'], &[&[0; 30_000][..], &[7; 3_000]].concat()] {
            let count = more.iter().skip_while(|byte| **byte == 0).count();
            let count = if count == 1 { "1 byte".to_owned() } else { trace::units::counted(count as u64, "byte") };
            let want = format!("{count} after the end of the {format} data");
            check(&with(more), &whole, FindingCode::Malformed, &want);
        }
        // The beginning of another member or frame.
        check(&with(&other[..1]), &whole, FindingCode::Malformed, "its checksum is missing");
    }
}

#[test]
fn the_checksum_of_a_header_is_compared() {
    let plain = fixture_bytes("protocol4.pickle");
    let packed = gzip(&plain);
    let mut head = vec![0x1f, 0x8b, 8, 2, 0, 0, 0, 0, 0, 3];
    let mut sum = flate2::Crc::new();
    sum.update(&head);
    head.extend((sum.sum() as u16).to_le_bytes());
    let whole = import(&plain).unwrap();
    assert_eq!(said(&[&head, &packed[10..]].concat(), &whole), []);
    for at in [4, 9, 11] {
        let mut damaged = head.clone();
        damaged[at] ^= 1;
        let error = import(&[&damaged, &packed[10..]].concat()).unwrap_err().to_string();
        assert!(error.contains("the checksum of a member's header does not match"), "{error}");
    }
}

#[test]
fn what_follows_the_end_of_a_snapshot_is_said() {
    for name in ["protocol4.pickle", "current.json"] {
        let bytes = fixture_bytes(name);
        let whole = import(&bytes).unwrap();
        for (more, count) in [(&b"\n \0\0"[..], 0), (b"\nabc", 3), (&bytes, bytes.len())] {
            let joined = [&bytes, more].concat();
            let two = [gzip(&bytes), gzip(more)].concat();
            for file in [joined.clone(), gzip(&joined), two] {
                if count == 0 {
                    assert_eq!(said(&file, &whole), [], "{name}");
                } else {
                    let want = format!("{} after the end of the snapshot", trace::units::counted(count as u64, "byte"));
                    check(&file, &whole, FindingCode::NotShown, &want);
                }
                for size in [1, 3, 400] {
                    let got = import_in_pieces(&file, &[size], ImportLimits::default()).unwrap();
                    assert_eq!(describe(&got), describe(&import(&file).unwrap()), "{name} in pieces of {size}");
                }
            }
        }
    }
}

#[test]
fn a_bomb_behind_a_snapshot_does_not_take_it_away() {
    let bytes = fixture_bytes("protocol4.pickle");
    let whole = import(&bytes).unwrap();
    let bomb = gzip(&vec![7; 70 << 20]);
    check(&[gzip(&bytes), bomb].concat(), &whole, FindingCode::Malformed, "no checksum was compared. Refused:");
    let members = gzip(b"").repeat(5_000);
    check(
        &[gzip(&bytes), members].concat(),
        &whole,
        FindingCode::Malformed,
        "4,096 gzip members that are nearly empty",
    );
}

#[test]
fn a_recording_whose_compression_is_damaged_is_read_as_far_as_it_goes() {
    let bytes = fixture_bytes("recording_1_0.vramscope");
    let whole = import(&bytes).unwrap();
    let mut packed = gzip(&bytes);
    let end = packed.len();
    packed[end - 5] ^= 1;
    check(&packed, &whole, FindingCode::Malformed, "its checksum does not match. What came before was read");
    let got = import(&packed[..end - 9]).unwrap();
    assert!(!got.findings.is_empty());
}

#[test]
fn real_files_of_many_members_and_far_smaller_json_are_read() {
    let bytes = fixture_bytes("protocol4.pickle");
    let whole = import(&bytes).unwrap();
    let members: Vec<u8> = bytes.chunks(700).flat_map(gzip).collect();
    assert_eq!(said(&members, &whole), []);
    // Each entry of a snapshot in JSON repeats its stack in words.
    let frames = r#"{"name": "forward", "filename": "/home/me/model.py", "line": 7}, "#.repeat(400);
    let entry =
        format!(r#"{{"action": "alloc", "addr": 7, "size": 512, "frames": [{}]}}, "#, frames.trim_end_matches(", "));
    let text = format!(r#"{{"segments": [], "device_traces": [[{}]]}}"#, entry.repeat(2_000).trim_end_matches(", "));
    let packed = gzip(text.as_bytes());
    assert!(text.len() > 190 * packed.len(), "{} of {}", text.len(), packed.len());
    assert_eq!(import(&packed).unwrap().snapshot.devices[0].events.len(), 2_000);
}
