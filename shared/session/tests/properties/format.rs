//! Recordings survive a round trip, whole or truncated, in pieces of any size; damaged ones are read as far as
//! possible.

use crate::common::{describe, fixtures, import, import_in_pieces};
use crate::support::{Held, Op, Piece, ops, run};
use format::import::{Encoding, Imported};
use format::{Device, End, EventColumns, Header, Kind, LostEvents, Writer};
use proptest::prelude::*;
use query::finding::FindingCode;
use trace::event::Action;
use trace::frames::{Frame, StackId, Symbols};
use trace::limits::ImportLimits;
use trace::units::{Address, PoolId, Stream};
use trace::{
    Annotation, Block, BlockState, DeviceTrace, Event, OutsideSample, Sample, Segment, Settings, Snapshot, Stage, Tag,
    TagId, Tags,
};

const START_US: i64 = 1_700_000_000_000_000;

fn header() -> Header {
    Header { program: "test".to_owned(), torch: "2.11".to_owned(), started_us: START_US, ..Header::default() }
}

fn codes(imported: &Imported) -> Vec<FindingCode> {
    imported.findings.iter().map(|finding| finding.code).collect()
}

fn without_findings(mut imported: Imported) -> String {
    imported.findings.clear();
    describe(&imported)
}

#[test]
fn every_snapshot_survives_being_written_as_a_recording() {
    for fixture in fixtures() {
        let Ok(snapshot) = import(&fixture.bytes) else { continue };
        let header = Header { settings: snapshot.snapshot.settings.clone(), ..header() };
        let bytes = format::write(&header, &snapshot.snapshot);
        let got = import(&bytes).unwrap_or_else(|error| panic!("{}: {error}", fixture.name));
        assert_eq!(got.format.encoding, Encoding::Recording);
        let is_ours = |code: &FindingCode| *code == FindingCode::UnknownAction || *code == FindingCode::NoHistory;
        let known: Vec<_> = codes(&snapshot).into_iter().filter(is_ours).collect();
        assert_eq!(codes(&got), known, "{}", fixture.name);
        assert_eq!(without_findings(got), without_findings(snapshot), "{}", fixture.name);
    }
}

/// Returns the model's segments at a position, as a trace holds them.
fn segments(held: &[Held]) -> Vec<Segment> {
    let block = |&(address, size, piece): &(u64, u64, Option<Piece>)| {
        let state = match piece {
            None => BlockState::Inactive,
            Some(p) if p.is_allocated => BlockState::Allocated,
            Some(_) => BlockState::Pending,
        };
        let requested = piece.map_or(0, |p| p.requested);
        Block { address: Address(address), size, requested, state, stack: StackId(0) }
    };
    held.iter()
        .map(|s| Segment {
            address: Address(s.address),
            size: s.size,
            stream: Stream(s.stream),
            is_small: s.is_small,
            is_expandable: false,
            pool: PoolId::default(),
            stack: StackId(0),
            blocks: s.blocks.iter().map(block).collect(),
        })
        .collect()
}

/// Removes the stacks, which the model does not keep.
fn bare(segments: &[Segment]) -> Vec<Segment> {
    let mut segments = segments.to_vec();
    for segment in &mut segments {
        segment.stack = StackId(0);
        for block in &mut segment.blocks {
            block.stack = StackId(0);
        }
    }
    segments
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_recording_that_is_cut_has_the_segments_of_its_last_event(
        ops in ops(120), lost in 0_usize..60, chunk in 1_usize..40, cut in any::<prop::sample::Index>(),
    ) {
        let run = run(&ops, lost);
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&header(), &mut bytes);
        writer.symbols(&run.symbols, &run.tags, &mut bytes);
        writer.segments(0, lost as u64, &segments(&run.moments[0].segments), &mut bytes);
        let head = bytes.len();
        let events: Vec<Event> = run.trace.events.iter().collect();
        for (i, events) in events.chunks(chunk).enumerate() {
            let mut columns = EventColumns::default();
            events.iter().for_each(|&event| columns.push(event));
            writer.events(0, (lost + i * chunk) as u64, &columns, &mut bytes);
        }
        let end = head + cut.index(bytes.len() - head + 1);
        let got = import(&bytes[..end]).unwrap();
        prop_assert_eq!(got.findings[0].code, FindingCode::Truncated);
        let device = &got.snapshot.devices[0];
        let kept = device.events.len();
        prop_assert!(kept == events.len() || kept.is_multiple_of(chunk));
        let times: Vec<i64> = device.events.time_us.iter().collect();
        prop_assert_eq!(times, events[..kept].iter().map(|e| e.time_us).collect::<Vec<_>>());
        prop_assert_eq!(bare(&device.segments), segments(&run.moments[kept].segments), "after {} events", kept);
    }

    #[test]
    fn events_of_any_values_survive(
        events in prop::collection::vec((0_u8..12, any::<u64>(), any::<u64>(), any::<i64>(), 0_u32..3, 0_u32..4), 0..200),
        is_aligned: bool,
        piece in 1_usize..300,
    ) {
        let mut snapshot = Snapshot::default();
        for stream in 0..3 {
            snapshot.tags.intern(Tag { stream: Stream(stream), ..Tag::default() });
        }
        for line in 0..4 {
            let frame = snapshot.symbols.intern_frame(Frame { name: Default::default(), filename: Default::default(), line });
            snapshot.symbols.intern_stack(&[frame]);
        }
        let mut trace = DeviceTrace { device: -1, ..DeviceTrace::default() };
        for &(code, address, size, time_us, tag, stack) in &events {
            let address = Address(if is_aligned { address & !511 } else { address });
            let action = Action::from_code(code);
            trace.events.push(Event { action, address, size, time_us, tag: TagId(tag), stack: StackId(stack) });
        }
        let want: Vec<Event> = trace.events.iter().collect();
        snapshot.devices.push(trace);
        let bytes = format::write(&header(), &snapshot);
        let got = import_in_pieces(&bytes, &[piece], ImportLimits::default()).unwrap();
        let device = &got.snapshot.devices[0];
        prop_assert_eq!(device.device, -1);
        prop_assert_eq!(device.events.iter().collect::<Vec<_>>(), want);
    }
}

/// A preview of a version that nobody knows: a map of the key `version` to 0.
const PREVIEW: [u8; 10] = *b"\x81\xa7version\0";

/// Returns a small recording of two devices with everything that the format can hold, and the offset of each chunk.
fn small() -> (Vec<u8>, Vec<usize>) {
    let (mut symbols, mut tags) = (Symbols::default(), Tags::default());
    let name = symbols.intern(b"forward");
    let filename = symbols.intern(b"model.py");
    let frame = symbols.intern_frame(Frame { name, filename, line: 54 });
    let stack = symbols.intern_stack(&[frame]);
    let metadata = symbols.intern("Schritt 1 – grün".as_bytes());
    let tag = tags.intern(Tag { pool: Some(PoolId(0, 1)), user_metadata: metadata, ..Tag::default() });
    let other = tags.intern(Tag { stream: Stream(-7), other_action: name, ..Tag::default() });
    let header = Header {
        program: "vramscope 0.1.0".to_owned(),
        name: "golden".to_owned(),
        host: "node-7".to_owned(),
        job: "job".to_owned(),
        rank: Some(1),
        clock: "monotonic".to_owned(),
        devices: vec![
            Device { number: 0, name: "simulated".to_owned(), capacity: 80 << 30 },
            Device { number: 1, name: "simulated".to_owned(), capacity: 80 << 30 },
        ],
        settings: Settings {
            conf: "max_split_size_mb:64".to_owned(),
            max_split_size: Some(64 << 20),
            as_written: vec![("PYTORCH_CUDA_ALLOC_CONF".to_owned(), "max_split_size_mb:64".to_owned())],
            ..Settings::default()
        },
        ..header()
    };
    let base = 0x7f00_0000_0000;
    let event = |action, address, size, time: i64, tag| Event {
        action,
        address: Address(address),
        size,
        time_us: START_US + time,
        tag,
        stack,
    };
    let mut columns = EventColumns::default();
    let mut bytes = Vec::new();
    let mut starts = Vec::new();
    let mut writer = Writer::new(&header, &mut bytes);
    let at = |bytes: &Vec<u8>, starts: &mut Vec<usize>| starts.push(bytes.len());
    at(&bytes, &mut starts);
    writer.preview(&PREVIEW, &mut bytes);
    at(&bytes, &mut starts);
    writer.symbols(&symbols, &tags, &mut bytes);
    for device in [0, 1] {
        at(&bytes, &mut starts);
        writer.segments(device, 0, &[], &mut bytes);
        at(&bytes, &mut starts);
        columns.clear();
        columns.push(event(Action::SegmentAlloc, base, 2 << 20, 10, tag));
        columns.push(event(Action::Alloc, base, 1000, 9, tag));
        columns.push(event(Action::Alloc, base + 1024, 1 << 19, 12, tag));
        writer.events(device, 0, &columns, &mut bytes);
    }
    at(&bytes, &mut starts);
    let mark = |stage, time| Annotation { name: filename, stage, time_us: START_US + time };
    writer.marks(1, &[mark(Stage::Start, 11), mark(Stage::End, 13), mark(Stage::Instant, 12)], &mut bytes);
    at(&bytes, &mut starts);
    let sample =
        |time, allocated| Sample { time_us: START_US + time, allocated, active: allocated + 512, reserved: 2 << 20 };
    writer.statistics(1, &[sample(11, 1024), sample(25, 1 << 19)], &mut bytes);
    at(&bytes, &mut starts);
    writer.outside(1, &outside(), &mut bytes);
    at(&bytes, &mut starts);
    let mut by_action = [0; Action::ALL.len()];
    by_action[Action::Alloc as usize] = 3;
    by_action[Action::FreeCompleted as usize] = 1;
    writer.lost_events(&LostEvents { device: 1, from: 3, to: 7, by_action }, &mut bytes);
    at(&bytes, &mut starts);
    columns.clear();
    columns.push(event(Action::FreeRequested, base, 1000, 20, tag));
    columns.push(event(Action::FreeCompleted, base, 1000, 20, tag));
    columns.push(event(Action::Other, 1, 2, 30, other));
    writer.events(1, 7, &columns, &mut bytes);
    let block = |address, size, state| Block { address: Address(address), size, requested: size - 24, state, stack };
    let blocks = vec![
        block(base, 1024, BlockState::Inactive),
        block(base + 1024, 1 << 19, BlockState::Allocated),
        block(base + 1024 + (1 << 19), (2 << 20) - (1 << 19) - 1024, BlockState::Inactive),
    ];
    let segment = Segment {
        address: Address(base),
        size: 2 << 20,
        stream: Stream(0),
        is_small: true,
        is_expandable: false,
        pool: PoolId(0, 1),
        stack,
        blocks,
    };
    at(&bytes, &mut starts);
    writer.segments(1, 10, std::slice::from_ref(&segment), &mut bytes);
    at(&bytes, &mut starts);
    writer.segments(0, 3, &[segment], &mut bytes);
    at(&bytes, &mut starts);
    writer.end(&End { time_us: START_US + 40, events: 9, lost: 4 }, &mut bytes);
    (bytes, starts)
}

#[test]
fn files_of_every_version_are_read_and_the_latest_is_written_unchanged() {
    let fixture = |name| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
    let (bytes, _) = small();
    let path = fixture("recording_1_0.vramscope");
    if std::env::var_os("VRAMSCOPE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &bytes).unwrap();
    }
    let golden = std::fs::read(&path).unwrap();
    // A change here is a change of the format: a new version gets its own file, and this one must stay readable.
    assert!(golden == bytes, "the writer's bytes differ from those of version 1.0");
    check_small(&golden);
}

/// Samples of the memory beside the allocator, with quantities that are known, unknown, or unknown for a time.
fn outside() -> [OutsideSample; 2] {
    [
        OutsideSample::new(START_US + 10, [Some(3 << 30), None, Some(0), None]),
        OutsideSample::new(START_US + 20, [Some(2 << 30), None, None, None]),
    ]
}

/// Checks that a golden file holds what [`small`] writes.
fn check_small(golden: &[u8]) {
    let got = import(golden).unwrap();
    assert_eq!(codes(&got), [FindingCode::EventsLost, FindingCode::UnknownAction]);
    assert_eq!(
        got.findings[0].message,
        "Device 1: 4 events were lost while recording (3 alloc, 1 free_completed), in 1 place; the first after event 3. \
         Values that depend on them are not exact."
    );
    assert_eq!((got.findings[0].device, got.findings[0].position), (Some(1), Some(3)));
    let [first, second] = &got.snapshot.devices[..] else { panic!("two devices") };
    assert_eq!((first.device, first.events.len(), second.device, second.events.len()), (0, 3, 1, 6));
    let times: Vec<i64> = second.events.time_us.iter().map(|t| t - START_US).collect();
    assert_eq!(times, [10, 9, 12, 20, 20, 30]);
    let last = second.events.get(5).unwrap();
    let tag = got.snapshot.tags.get(last.tag);
    assert_eq!((last.action, tag.stream), (Action::Other, Stream(-7)));
    assert_eq!(got.snapshot.symbols.text(tag.other_action), "forward");
    let tag = got.snapshot.tags.get(second.events.get(0).unwrap().tag);
    assert_eq!(got.snapshot.symbols.text(tag.user_metadata), "Schritt 1 – grün");
    assert_eq!(tag.pool, Some(PoolId(0, 1)));
    let stages: Vec<Stage> = second.annotations.iter().map(|a| a.stage).collect();
    assert_eq!(stages, [Stage::Start, Stage::End, Stage::Instant]);
    let got_samples: Vec<_> = second.samples.iter().map(|s| (s.time_us - START_US, s.allocated)).collect();
    assert_eq!((got_samples.as_slice(), first.samples.len()), ([(11, 1024), (25, 1 << 19)].as_slice(), 0));
    assert_eq!((second.outside.as_slice(), first.outside.len()), (outside().as_slice(), 0));
    assert_eq!(first.segments, second.segments);
    let blocks = &first.segments[0].blocks;
    assert_eq!((blocks.len(), blocks[1].size, blocks[1].requested), (3, 1 << 19, (1 << 19) - 24));
    assert_eq!(got.snapshot.settings.max_split_size, Some(64 << 20));

    let mut decoder = format::recording::Decoder::new(ImportLimits::default());
    decoder.push(golden).unwrap();
    let header = decoder.recording().header.clone().unwrap();
    assert_eq!((header.host.as_str(), header.rank, header.devices.len()), ("node-7", Some(1), 2));
    assert_eq!(decoder.recording().end, Some(End { time_us: START_US + 40, events: 9, lost: 4 }));
}

#[test]
fn the_index_leads_to_every_chunk() {
    let (bytes, starts) = small();
    let tail = &bytes[bytes.len() - format::TRAILER_BYTES..];
    let at = format::index_byte(tail).unwrap() as usize;
    let entries = format::index(&bytes[at..]).unwrap();
    let places: Vec<usize> = entries.iter().map(|entry| entry.byte as usize).collect();
    assert_eq!(places[0], format::PRELUDE_BYTES);
    assert_eq!(places[1..], starts);
    let gap = entries.iter().find(|entry| entry.kind == Kind::LostEvents as u8).unwrap();
    assert_eq!((gap.device, gap.first, gap.count), (1, 3, 4));
    let events = entries.iter().find(|entry| entry.kind == Kind::Events as u8).unwrap();
    assert_eq!((events.count, events.from_us - START_US, events.to_us - START_US), (3, 9, 12));
    assert_eq!(format::index_byte(&bytes[..format::TRAILER_BYTES]), None);
    assert_eq!(format::index(&bytes[at + 1..]), None);
}

#[test]
fn a_file_cut_anywhere_keeps_what_came_whole() {
    let (bytes, starts) = small();
    let mut best = 0;
    for cut in 0..bytes.len() {
        let whole = match import(&bytes[..cut]) {
            Ok(got) => {
                let is_ended = !codes(&got).contains(&FindingCode::Truncated);
                assert_eq!(is_ended, cut >= bytes.len() - format::TRAILER_BYTES - index_bytes(&bytes), "cut at {cut}");
                got.snapshot.devices.iter().map(|device| device.events.len()).sum()
            }
            Err(error) => {
                assert!(cut < starts[0] && error.to_string().len() < 300, "cut at {cut}: {error}");
                0
            }
        };
        assert!(whole >= best, "cut at {cut}");
        best = whole;
    }
    assert_eq!(best, 9);
}

fn index_bytes(bytes: &[u8]) -> usize {
    let tail = bytes.len() - format::TRAILER_BYTES;
    tail - format::index_byte(&bytes[tail..]).unwrap() as usize
}

#[test]
fn a_byte_changed_anywhere_costs_one_chunk_at_most() {
    let (bytes, starts) = small();
    for at in format::PRELUDE_BYTES..bytes.len() {
        let mut broken = bytes.clone();
        broken[at] ^= 0x55;
        let got = import_in_pieces(&broken, &[333], ImportLimits::default()).unwrap();
        let lost: usize = 9 - got.snapshot.devices.iter().map(|device| device.events.len()).sum::<usize>();
        assert!(lost <= 3, "byte {at} costs {lost} events");
        let inside = starts.iter().rposition(|&start| start <= at).unwrap_or(0);
        let said = codes(&got);
        let is_told = said.contains(&FindingCode::Malformed) || said.contains(&FindingCode::Truncated);
        assert!(is_told || inside + 1 == starts.len(), "byte {at}: {said:?}");
        if lost > 0 && inside + 1 < starts.len() {
            assert!(said.contains(&FindingCode::EventsLost), "byte {at}: {said:?}");
        }
    }
}

#[test]
fn chunks_that_occur_twice_count_once() {
    let (bytes, starts) = small();
    let whole = import(&bytes).unwrap();
    for (from, to) in starts.iter().zip(&starts[1..]) {
        let twice = [&bytes[..*to], &bytes[*from..]].concat();
        let mut got = import(&twice).unwrap();
        // Marks have no sequence numbers, so repeated ones can't be recognized.
        for device in &mut got.snapshot.devices {
            device.annotations.truncate(3);
        }
        assert_eq!(describe(&got), describe(&whole), "the chunk at {from}");
    }
}

#[test]
fn chunks_of_later_versions_are_skipped() {
    let (bytes, starts) = small();
    let later = [&bytes[..starts[3]], &format::seal(99, b"\x81\xa3new\xc0"), &bytes[starts[3]..]].concat();
    let got = import(&later).unwrap();
    assert_eq!(codes(&got), [FindingCode::NotShown, FindingCode::EventsLost, FindingCode::UnknownAction]);
    let mut newer = bytes;
    newer[8] = 2;
    let error = import(&newer).unwrap_err().to_string();
    assert_eq!(error, "The recording is of format version 2; this program reads up to version 1. Update Vramscope.");
}

/// The recording with the codec of some of its chunks changed to one of a later version.
fn with_later_codec(bytes: &[u8], starts: &[usize]) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    for &start in starts {
        let envelope = &mut changed[start..start + format::ENVELOPE_BYTES];
        envelope[5] = 9;
        let sum = crc32fast::hash(&[&envelope[..6], &envelope[8..]].concat());
        envelope[6..8].copy_from_slice(&(sum as u16).to_le_bytes());
    }
    changed
}

#[test]
fn a_codec_of_a_later_version_is_not_reported_as_damage() {
    let (bytes, starts) = small();
    let got = import(&with_later_codec(&bytes, &starts[3..4])).unwrap();
    assert!(codes(&got).contains(&FindingCode::NotShown), "{:?}", got.findings);
    assert!(!codes(&got).contains(&FindingCode::Malformed), "{:?}", got.findings);
    let error =
        import(&with_later_codec(&bytes, &[&[format::PRELUDE_BYTES], &starts[..]].concat())).unwrap_err().to_string();
    assert_eq!(
        error,
        "This recording can't be read: its chunks are packed with an unknown codec (byte 12). Update Vramscope."
    );
}

#[test]
fn a_bomb_is_refused() {
    let mut bytes = Vec::new();
    Writer::new(&header(), &mut bytes);
    let zeros = vec![0; 1 << 20];
    let chunk = format::seal(99, &zeros);
    assert!(chunk.len() < 10_000);
    for _ in 0..100 {
        bytes.extend_from_slice(&chunk);
    }
    assert!(matches!(import(&bytes), Err(format::import::ImportError::Bomb { .. })));
}

#[test]
fn events_that_repeat_themselves_are_no_bomb() {
    let mut snapshot = Snapshot::default();
    let mut trace = DeviceTrace::default();
    let tag = snapshot.tags.intern(Tag::default());
    for i in 0..12_000_000 {
        let action = if i % 2 == 0 { Action::Alloc } else { Action::FreeCompleted };
        trace.events.push(Event { action, address: Address(1 << 40), size: 512, time_us: i, tag, stack: StackId(0) });
    }
    snapshot.devices.push(trace);
    let bytes = format::write(&header(), &snapshot);
    let got = import_in_pieces(&bytes, &[1 << 16], ImportLimits::default()).unwrap();
    assert_eq!(got.snapshot.devices[0].events.len(), 12_000_000);
}

#[test]
fn a_segment_with_very_many_blocks_takes_several_pieces() {
    let blocks: Vec<Block> = (0..200_000)
        .map(|i| Block {
            address: Address(i * 512),
            size: 512,
            requested: 500,
            state: BlockState::Allocated,
            stack: StackId(0),
        })
        .collect();
    let segment = |address: u64, blocks: Vec<Block>| Segment {
        address: Address(address),
        size: 512 * 200_000,
        stream: Stream(0),
        is_small: true,
        is_expandable: true,
        pool: PoolId(0, 0),
        stack: StackId(0),
        blocks,
    };
    let segments = vec![segment(0, blocks), segment(1 << 40, Vec::new())];
    let mut snapshot = Snapshot::default();
    snapshot.devices.push(DeviceTrace { segments: segments.clone(), ..DeviceTrace::default() });
    let got = import(&format::write(&header(), &snapshot)).unwrap();
    assert_eq!(got.snapshot.devices[0].segments, segments);
}

#[test]
fn a_model_of_a_program_is_recorded_small() {
    // Without stacks, an event takes at most 12 bytes before compression.
    let mut random = 12_345_u64;
    let ops: Vec<Op> = (0..20_000)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let n = random >> 33;
            if n.is_multiple_of(2) {
                Op::Alloc { size: n % (8 << 20) + 1, stream: 0 }
            } else {
                Op::Free((n / 2) as usize)
            }
        })
        .collect();
    let run = run(&ops[..2_000], 0);
    let mut columns = EventColumns::default();
    for event in run.trace.events.iter() {
        columns.push(Event { stack: StackId(0), ..event });
    }
    let each = columns.bytes() as f64 / columns.len() as f64;
    assert!(each <= 12.0, "{each:.1} bytes an event");
}
