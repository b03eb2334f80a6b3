//! Imports files in every layout and encoding; damaged and hostile ones are refused with a sentence.
//!
//! The fixtures are made by `tests/fixtures/make.py`.

use std::collections::HashSet;

use crate::common::{Fixture, contents, describe, fixture, fixtures, import, import_in_pieces};
use format::import::{Compression, Encoding, Imported};
use proptest::prelude::*;
use query::finding::FindingCode;
use trace::event::Action;
use trace::limits::ImportLimits;
use trace::units::{Address, PoolId, Stream};
use trace::{BlockState, Stage};

const BASE: u64 = 0x7f00_0000_0000;
const MIB: u64 = 1 << 20;

fn codes(imported: &Imported) -> Vec<FindingCode> {
    imported.findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn every_encoding_of_one_snapshot_reads_the_same() {
    let want = describe(&fixture("protocol4.pickle"));
    let cases = [
        ("protocol0.pickle", Encoding::Pickle, None, Some(0)),
        ("protocol1.pickle", Encoding::Pickle, None, Some(1)),
        ("protocol2.pickle", Encoding::Pickle, None, Some(2)),
        ("protocol3.pickle", Encoding::Pickle, None, Some(3)),
        ("protocol4.pickle", Encoding::Pickle, None, Some(4)),
        ("protocol5.pickle", Encoding::Pickle, None, Some(5)),
        ("cpp.pickle", Encoding::Pickle, None, Some(2)),
        ("current.pickle.gz", Encoding::Pickle, Some(Compression::Gzip), Some(4)),
        ("current.pickle.zst", Encoding::Pickle, Some(Compression::Zstd), Some(4)),
    ];
    for (name, encoding, compression, protocol) in cases {
        let got = fixture(name);
        assert_eq!((got.format.encoding, got.format.compression, got.protocol), (encoding, compression, protocol));
        assert_eq!(describe(&got), want, "{name}");
        assert_eq!(codes(&got), [], "{name}");
    }
    // The JSON files have one more setting, which is NaN.
    for name in ["current.json", "current.json.gz"] {
        let mut got = fixture(name);
        assert_eq!(got.format.encoding, Encoding::Json);
        assert_eq!(got.snapshot.settings.as_written.pop(), Some(("not_a_number".to_owned(), "NaN".to_owned())));
        assert_eq!(describe(&got), want, "{name}");
    }
}

#[test]
fn the_current_layout_is_read_to_the_last_key() {
    let Imported { snapshot, findings, .. } = fixture("protocol4.pickle");
    assert_eq!(findings, []);
    let [device] = &snapshot.devices[..] else { panic!("one device") };
    assert_eq!(device.device, 0);
    assert_eq!(device.events.len(), 12);
    let oom = device.events.get(7).unwrap();
    assert_eq!((oom.action, oom.address, oom.size), (Action::Oom, Address(123 * MIB), 512 * MIB));
    assert_eq!(oom.time_us, 1_700_000_000_000_033);
    let third = device.events.get(3).unwrap();
    assert_eq!(snapshot.symbols.text(snapshot.tags.get(third.tag).user_metadata), "step 1");
    assert_eq!(snapshot.symbols.text(snapshot.tags.get(third.tag).compile_context), "N/A");
    let lines: Vec<u32> = snapshot.symbols.stack(third.stack).iter().map(|&f| snapshot.symbols.frame(f).line).collect();
    assert_eq!(lines, [77, 42, 10]);

    let [small, large] = &device.segments[..] else { panic!("two segments") };
    assert!(small.is_small && !large.is_small);
    assert_eq!((large.address, large.size, large.pool), (Address(BASE), 20 * MIB, PoolId(0, 0)));
    let states: Vec<BlockState> = large.blocks.iter().map(|b| b.state).collect();
    use BlockState::{Allocated, Inactive, Pending};
    assert_eq!(states, [Allocated, Inactive, Allocated, Pending, Inactive]);
    assert_eq!(large.blocks[0].requested, 2 * MIB - 100);

    let settings = &snapshot.settings;
    assert_eq!(settings.conf, "max_split_size_mb:64");
    assert_eq!(settings.max_split_size, Some(64 * MIB));
    assert_eq!(settings.garbage_collection_threshold, 0.5);
    assert_eq!(settings.roundup_power2_divisions[..3], [4, 4, 0]);
    assert_eq!(settings.as_written[2], ("garbage_collection_threshold".to_owned(), "0.5".to_owned()));
    assert_eq!(settings.as_written[3], ("expandable_segments".to_owned(), "False".to_owned()));

    let [start, end] = &device.annotations[..] else { panic!("two annotations") };
    assert_eq!((start.stage, end.stage), (Stage::Start, Stage::End));
    assert_eq!(snapshot.symbols.text(start.name), "step");
}

#[test]
fn torch_1_13_has_segments_and_nothing_else() {
    let got = fixture("torch_1_13.pickle");
    assert_eq!(codes(&got), [FindingCode::NoHistory]);
    let segment = &got.snapshot.devices[0].segments[1];
    let addresses: Vec<u64> = segment.blocks.iter().map(|b| (b.address.0 - BASE) / MIB).collect();
    assert_eq!(addresses, [0, 2, 6, 8, 10]);
    // Requested sizes are not written: they read as the block sizes.
    assert!(segment.blocks.iter().all(|b| b.requested == b.size));
}

#[test]
fn torch_2_0_has_its_stacks_in_the_history() {
    let got = fixture("torch_2_0.pickle");
    assert_eq!(codes(&got), []);
    let symbols = &got.snapshot.symbols;
    let block = got.snapshot.devices[0].segments[1].blocks[2];
    assert_eq!(block.address, Address(BASE + 6 * MIB));
    let names: Vec<String> =
        symbols.stack(block.stack).iter().map(|&f| symbols.text(symbols.frame(f).name).into_owned()).collect();
    assert_eq!(names, ["#0 at::empty from ??:0", "main"]);
    assert!(got.snapshot.devices[0].events.iter().all(|event| event.time_us == 0));
}

#[test]
fn unknown_keys_and_actions_are_counted_and_never_fatal() {
    for name in ["torch_2_15.pickle", "torch_2_15.json"] {
        let got = fixture(name);
        assert_eq!(codes(&got), [FindingCode::UnknownAction], "{name}");
        assert!(got.findings[0].message.ends_with("segment_teleport (2)"), "{}", got.findings[0].message);
        let host = &got.snapshot.host;
        assert_eq!(
            host.segments.iter().map(|segment| (segment.address, segment.size)).collect::<Vec<_>>(),
            [(Address(4096), 4096)]
        );
        let events: Vec<_> = host.events.iter().map(|event| (event.action, event.address, event.size)).collect();
        assert_eq!(events, [(Action::Alloc, Address(4096), 4096), (Action::FreeCompleted, Address(4096), 4096)]);
        let device = &got.snapshot.devices[0];
        assert_eq!(device.events.len(), 15);
        let last = device.events.get(14).unwrap();
        let tag = got.snapshot.tags.get(last.tag);
        assert_eq!(last.action, Action::Other);
        assert_eq!(got.snapshot.symbols.text(tag.other_action), "segment_teleport");
        assert_eq!(got.snapshot.tags.get(device.events.get(0).unwrap().tag).pool, Some(PoolId(0, 3)));
        assert_eq!(tag.pool, None);
        assert_eq!(device.segments[1].pool, PoolId(0, 3));
        assert_eq!(device.events.get(12).unwrap().action, Action::Annotate);
    }
}

#[test]
fn each_device_gets_what_is_its_own() {
    for name in ["two_devices.pickle", "two_devices.json"] {
        let got = fixture(name);
        let [first, second] = &got.snapshot.devices[..] else { panic!("two devices") };
        assert_eq!((first.device, second.device), (0, 1));
        assert_eq!((first.events.len(), second.events.len()), (3, 12));
        assert_eq!((first.annotations.len(), second.annotations.len()), (0, 2));
        assert_eq!(first.events.get(0).unwrap().address, Address(BASE));
        assert_eq!(second.events.get(0).unwrap().address, Address(0x7e00_0000_0000));
        assert!(second.segments[1].is_expandable && second.segments[1].stream == Stream(-7));
        assert_eq!(got.snapshot.settings.max_split_size, None);
        assert_eq!(codes(&got), [FindingCode::NotShown]);
    }
}

#[test]
fn addresses_in_the_upper_half_are_kept() {
    let got = fixture("xpu.pickle");
    assert_eq!(codes(&got), []);
    assert_eq!(got.snapshot.devices[0].events.get(1).unwrap().address, Address(0xffff_8000_0000_0000));
    assert_eq!(got.snapshot.devices[0].segments[1].address, Address(0xffff_8000_0000_0000));
}

#[test]
fn a_missing_or_short_history_is_reported() {
    for (name, want) in [
        ("no_history.pickle", FindingCode::NoHistory),
        ("state_only.pickle", FindingCode::StateOnly),
        ("empty.pickle", FindingCode::NoHistory),
    ] {
        assert_eq!(codes(&fixture(name)), [want], "{name}");
    }
    assert!(fixture("empty.pickle").snapshot.devices.is_empty());
}

#[test]
fn pieces_of_any_size_read_the_same() {
    for Fixture { name, bytes } in fixtures() {
        let want = describe(&import(&bytes).unwrap());
        for size in [1, 2, 3, 5, 64, 1000] {
            let got = import_in_pieces(&bytes, &[size], ImportLimits::default()).unwrap();
            assert_eq!(describe(&got), want, "{name} in pieces of {size}");
        }
    }
}

#[test]
fn remembering_lists_of_frames_changes_nothing() {
    let forgetful = ImportLimits { remembered_bytes: 0, ..ImportLimits::default() };
    for Fixture { name, bytes } in fixtures() {
        let got = import_in_pieces(&bytes, &[bytes.len()], forgetful).unwrap();
        assert_eq!(describe(&got), describe(&import(&bytes).unwrap()), "{name}");
    }
}

#[test]
fn a_file_cut_anywhere_keeps_what_was_complete() {
    for Fixture { name, bytes } in fixtures() {
        let whole = import(&bytes).unwrap();
        let all: usize = whole.snapshot.devices.iter().map(|d| d.events.len()).sum();
        let mut kept = 0;
        let description = describe(&whole);
        let lines: HashSet<&str> = description.lines().collect();
        // The longest files repeat themselves.
        let step = [1, 7, 97][usize::from(bytes.len() > 5_000) + usize::from(bytes.len() > 20_000)];
        for end in (0..bytes.len()).step_by(step) {
            let got = match import(&bytes[..end]) {
                Ok(got) => got,
                Err(error) => {
                    assert_eq!(kept, 0, "{name} cut at {end} keeps less than cut before");
                    // What is incomplete is not of another kind.
                    assert!(!error.to_string().contains("another kind"), "{name} cut at {end}: {error}");
                    continue;
                }
            };
            // Padding and checksums may be missing without loss of data.
            if contents(&got) == contents(&whole) {
                continue;
            }
            let events: usize = got.snapshot.devices.iter().map(|d| d.events.len()).sum();
            assert!((kept..=all).contains(&events), "{name} cut at {end}: {events} entries after {kept}");
            kept = events;
            assert_eq!(got.findings[0].code, FindingCode::Truncated, "{name} cut at {end}");
            // Entries, segments, blocks and annotations are those of the whole file, or missing.
            let text = describe(&got);
            let added = text.lines().find(|line| line.starts_with("  ") && !lines.contains(line));
            assert_eq!(added, None, "{name} cut at {end}");
        }
        if !bytes.starts_with(b"\x28\xb5") && step == 1 {
            assert!(kept + 1 >= all, "{name}: {kept} of {all} kept at the last cut");
        }
    }
}

/// One step of a generated pickle that fills lists of frames from the memo.
#[derive(Clone, Debug)]
enum Step {
    /// An entry whose stack is these slots.
    Entry(Vec<u8>),
    /// A slot is overwritten with another frame.
    Overwrite(u8, u8),
    /// The line of the frame in a slot changes.
    Change(u8, u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let slot = 0u8..4;
    let step = prop_oneof![
        8 => proptest::collection::vec(slot.clone(), 1..5).prop_map(Step::Entry),
        1 => (slot.clone(), slot.clone()).prop_map(|(a, b)| Step::Overwrite(a, b)),
        1 => (slot, 0u8..9).prop_map(|(a, line)| Step::Change(a, line)),
    ];
    proptest::collection::vec(step, 0..40)
}

fn pickle(steps: &[Step]) -> Vec<u8> {
    let text = |s: &str| [&[0x8c, s.len() as u8], s.as_bytes()].concat();
    let mut out = b"\x80\x04}(".to_vec();
    out.extend(text("device_traces"));
    out.extend(b"](](");
    for slot in 0..4u8 {
        let frame =
            [b"}(".to_vec(), text("name"), text("f"), text("filename"), text("a"), text("line"), vec![b'K', slot]];
        out.extend(frame.concat());
        out.extend([b'u', b'q', slot, b'0']);
    }
    for step in steps {
        match step {
            Step::Entry(slots) => {
                out.extend([b"}(".to_vec(), text("action"), text("alloc"), text("frames"), b"](".to_vec()].concat());
                out.extend(slots.iter().flat_map(|&slot| [b'h', slot]));
                out.extend(b"eu");
            }
            Step::Overwrite(to, from) => out.extend([b'h', *from, b'q', *to, b'0']),
            Step::Change(slot, line) => {
                out.extend([b'h', *slot]);
                out.extend(text("line"));
                out.extend([b'K', *line, b's', b'0']);
            }
        }
    }
    out.extend(b"eeu.");
    out
}

proptest! {
    #[test]
    fn random_pieces_and_memory_change_nothing(
        steps in steps(),
        pieces in proptest::collection::vec(1usize..50, 1..20),
    ) {
        let bytes = pickle(&steps);
        let forgetful = ImportLimits { remembered_bytes: 0, ..ImportLimits::default() };
        let want = describe(&import_in_pieces(&bytes, &[1], forgetful).unwrap());
        prop_assert_eq!(describe(&import(&bytes).unwrap()), want.clone());
        let got = import_in_pieces(&bytes, &pieces, ImportLimits::default()).unwrap();
        prop_assert_eq!(describe(&got), want);
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), start in 0usize..4) {
        let starts: [&[u8]; 4] = [b"", b"\x80\x04", b"{\"segments\":[", b"(\x1f\x8b"];
        let _ = import(&[starts[start], &bytes].concat());
    }

    #[test]
    fn damaged_fixtures_never_panic(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte: u8) {
        let all = fixtures();
        let mut bytes = all[which.index(all.len())].bytes.clone();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = import(&bytes);
    }
}
