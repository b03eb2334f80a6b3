//! What is left out of a trace is gone from its copy, and what is kept is exact.

use std::collections::BTreeSet;

use crate::common::{describe, fixtures, import};
use format::redaction::{Contents, Part, Paths, Redaction, Renamed, redact};
use format::{ChunkReader, Header, PRELUDE_BYTES};
use replay::Replay;
use session::preview;
use trace::event::Action;
use trace::frames::Frame;
use trace::limits::ImportLimits;
use trace::totals::Totals;
use trace::units::Address;
use trace::{Annotation, DeviceTrace, Event, HostMemory, Snapshot, Stage, Tag};

/// Returns the unpacked payloads of a recording, end to end.
fn unpacked(recording: &[u8]) -> Vec<u8> {
    let mut payloads = Vec::new();
    let mut reader = ChunkReader::at_chunk(&ImportLimits::default(), PRELUDE_BYTES as u64);
    reader.push(&recording[PRELUDE_BYTES..], &mut |chunk| payloads.extend_from_slice(chunk.payload)).unwrap();
    payloads
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A trace that gives away as much as it can.
fn talkative() -> (Header, Snapshot) {
    let mut snapshot = Snapshot::default();
    let mut intern = |text: &str| snapshot.symbols.intern(text.as_bytes());
    let files = [
        "/home/alice/secret-project/train.py",
        "/mnt/nfs/alice/data.py",
        "/scratch/bob.jones/x.py",
        "C:\\Users\\Carol Smith\\y.py",
        "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/linear.py",
    ];
    let files = files.map(&mut intern);
    let names = [intern("forward"), intern("load(\"/home/alice/w.pt\")")];
    let tag =
        Tag { user_metadata: intern("customer 4711"), compile_context: intern("alice's region"), ..Tag::default() };
    let note = Tag { user_metadata: intern("epoch of alice"), ..Tag::default() };
    let span = intern("eval on gpu-node-17.corp.example");
    let frames = files.map(|filename| snapshot.symbols.intern_frame(Frame { name: names[0], filename, line: 3 }));
    let last = snapshot.symbols.intern_frame(Frame { name: names[1], filename: files[0], line: 9 });
    let stack = snapshot.symbols.intern_stack(&[&frames[..], &[last]].concat());
    let (tag, note) = (snapshot.tags.intern(tag), snapshot.tags.intern(note));
    let mut trace = DeviceTrace::default();
    for (i, (action, tag)) in
        [(Action::SegmentAlloc, tag), (Action::Alloc, tag), (Action::Annotate, note)].iter().enumerate()
    {
        let event =
            Event { action: *action, address: Address(1 << 30), size: 2 << 20, time_us: i as i64, tag: *tag, stack };
        trace.events.push(event);
    }
    trace.annotations.push(Annotation { name: span, stage: Stage::Instant, time_us: 1 });
    snapshot.devices.push(trace);
    snapshot.settings.as_written.push(("path".to_owned(), "/home/alice/conf".to_owned()));
    let header = Header {
        name: "alice-run".to_owned(),
        host: "gpu-node-17.corp.example".to_owned(),
        job: "train-for-acme".to_owned(),
        settings: snapshot.settings.clone(),
        ..Header::default()
    };
    (header, snapshot)
}

#[test]
fn what_is_left_out_is_nowhere_in_the_file() {
    let always =
        ["/home/alice", "Carol", "bob.jones", "gpu-node-17", "corp.example", "train-for-acme", "customer 4711"];
    for (paths, without_annotations, gone, kept) in [
        (
            Paths::WithoutHomes,
            false,
            &["alice/"][..],
            &["~/secret-project/train.py", "/mnt/nfs/user/", "torch/nn/modules", "epoch of user", "eval on host"][..],
        ),
        (
            Paths::FileNames,
            false,
            &["secret-project", "/mnt", "site-packages"],
            &["train.py", "linear.py", "epoch of user"],
        ),
        (Paths::WithoutHomes, true, &["epoch", "eval on"], &["forward"]),
    ] {
        let (header, mut snapshot) = talkative();
        let redaction = Redaction { paths, is_without_annotations: without_annotations, ..Redaction::default() };
        let (header, copy) = redact(&header, &mut snapshot, &redaction);
        let shared = preview::write(&header, &copy);
        assert!(preview::read(&shared).is_some());
        for bytes in [format::write(&header, &copy), shared] {
            let bytes = unpacked(&bytes);
            for text in always.iter().chain(gone) {
                assert!(!has(&bytes, text), "{paths:?}: {text} is still there");
            }
            for text in kept {
                assert!(has(&bytes, text), "{paths:?}: {text} is gone");
            }
        }
        let contents = Contents::of(&header, &copy);
        assert!(
            contents.users.is_empty() && contents.places.is_empty() && contents.metadata.is_empty(),
            "{contents:?}"
        );
    }
    let (header, snapshot) = talkative();
    let contents = Contents::of(&header, &snapshot);
    let users: Vec<_> = contents.users.iter().map(String::as_str).collect();
    assert_eq!(users, ["Carol Smith", "alice", "bob.jones"]);
    assert_eq!((contents.places.len(), contents.metadata.len(), contents.annotations.len()), (2, 1, 2));
}

#[test]
fn each_name_of_the_copy_is_found_by_its_former_one() {
    for paths in [Paths::WithoutHomes, Paths::FileNames, Paths::Whole] {
        let (header, mut snapshot) = talkative();
        let redaction = Redaction { paths, has_metadata: true, ..Redaction::default() };
        let before = Contents::of(&header, &snapshot);
        let renamed = Renamed::of(&header, &snapshot, &redaction, &before);
        let (header, copy) = redact(&header, &mut snapshot, &redaction);
        let after = Contents::of(&header, &copy);
        for (was, is, renamed) in [
            (&before.folders, &after.folders, &renamed.folders),
            (&before.metadata, &after.metadata, &renamed.texts),
            (&before.annotations, &after.annotations, &renamed.texts),
        ] {
            let now = was.iter().map(|name| renamed.get(name).unwrap_or(name).clone()).filter(|name| !name.is_empty());
            assert_eq!(&now.collect::<BTreeSet<_>>(), is, "{paths:?}");
        }
        assert_eq!(renamed.folders.is_empty(), paths == Paths::Whole);
    }
}

/// Keeps everything.
fn whole() -> Redaction {
    Redaction { paths: Paths::Whole, has_places: true, has_metadata: true, ..Redaction::default() }
}

#[test]
fn a_copy_of_everything_is_the_same_trace() {
    for fixture in fixtures() {
        let mut first = import(&fixture.bytes).unwrap();
        first.snapshot.host = HostMemory::default();
        first.findings.clear();
        let header = Header { settings: first.snapshot.settings.clone(), ..Header::default() };
        let want = describe(&first);
        let (header, copy) = redact(&header, &mut first.snapshot, &whole());
        first.snapshot = copy;
        assert_eq!(describe(&first), want, "{}", fixture.name);
        // And after it was written and read.
        first.snapshot = import(&format::write(&header, &first.snapshot)).unwrap().snapshot;
        assert_eq!(describe(&first), want, "{}", fixture.name);
    }
}

#[test]
fn every_state_of_a_window_is_a_state_of_the_trace() {
    let mut count = 0;
    for fixture in fixtures() {
        let is_old = fixture.name.starts_with("torch_1") || fixture.name.starts_with("torch_2_0");
        let Snapshot { devices, .. } = import(&fixture.bytes).unwrap().snapshot;
        for (index, trace) in devices.iter().enumerate() {
            let events = trace.events.len() as u32;
            for positions in [0..events / 2, events / 3..events, events / 4..events / 4 * 3] {
                let mut snapshot = import(&fixture.bytes).unwrap().snapshot;
                let part = Part::Window { device: trace.device, positions: positions.clone() };
                let (_, mut copy) = redact(&Header::default(), &mut snapshot, &Redaction { part, ..whole() });
                let build = |snapshot: &mut Snapshot, index: usize| {
                    Replay::build(&snapshot.devices[index], &mut snapshot.tags, &snapshot.settings)
                };
                let (window, all) = (build(&mut copy, 0), build(&mut snapshot, index));
                assert_eq!(window.positions(), positions.end - positions.start, "{}", fixture.name);
                for position in (0..=window.positions()).step_by(1 + window.positions() as usize / 50) {
                    let (is, was) = (window.state_at(position), all.state_at(positions.start + position));
                    if was.totals.active > was.totals.reserved {
                        // A made trace that contradicts itself: blocks outside of all segments.
                        continue;
                    }
                    // Before torch 2.1, frees don't tell what had been requested.
                    let requested = if is_old { was.totals.requested } else { is.totals.requested };
                    let is = Totals { requested, ..is.totals };
                    assert_eq!(is, was.totals, "{}: {positions:?} {position}", fixture.name);
                    count += 1;
                }
            }
        }
    }
    assert!(count > 100, "only {count} states");
}
