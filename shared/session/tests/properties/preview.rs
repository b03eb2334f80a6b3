//! What a recording's previews answer is what the session of the whole recording answers, they take a small part of it, and
//! nothing that stands in them is a panic.

use std::sync::OnceLock;

use crate::common::{describe, fixtures, import};
use format::import::Imported;
use format::{Header, Writer, prelude, seal};
use proptest::prelude::*;
use query::diagnosis::DiagnosisQuery;
use query::{
    AllocationQuery, Answer, Axis, ColorBy, OverviewQuery, PositionAtQuery, Query, StateQuery, StepsQuery,
    TimelineQuery, Window,
};
use session::Session;
use session::preview::{self, Preview};
use trace::event::Action;
use trace::frames::{Frame, StackId};
use trace::limits::{PREVIEW_FIRST_SHARE, PREVIEW_LEAST_BYTES, PREVIEWS_SHARE};
use trace::units::Address;
use trace::{DeviceTrace, Event, Snapshot, TagId};

fn session(bytes: &[u8]) -> Session {
    Session::build(import(bytes).unwrap(), &mut |_| {})
}

/// Reads the first preview, from no more bytes than it takes.
fn first(recording: &[u8]) -> Preview {
    let range = format::preview_range(recording).expect("it has a preview");
    assert!(preview::read(&recording[..range.end - 1]).is_none());
    preview::read(&recording[..range.end]).expect("the preview is whole")
}

/// Reads all previews.
fn all(recording: &[u8]) -> Preview {
    let mut preview = first(recording);
    for range in preview.missing().collect::<Vec<_>>() {
        assert!(preview.add(&range, &recording[range.start as usize..range.end as usize]), "{range:?}");
        assert!(!preview.add(&range, &recording[range.start as usize..range.end as usize]), "{range:?} again");
    }
    assert_eq!(preview.missing().count(), 0);
    preview
}

fn header(imported: &Imported) -> Header {
    Header { name: "shared".to_owned(), settings: imported.snapshot.settings.clone(), ..Header::default() }
}

fn event(action: Action, address: u64, size: u64, time_us: i64, stack: StackId) -> Event {
    Event { action, address: Address(address), size, time_us, tag: TagId::default(), stack }
}

/// A trace of so many events on each of two devices, one of which runs out of memory.
fn long(events: u32) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let filename = snapshot.symbols.intern(b"train.py");
    let name = snapshot.symbols.intern(b"forward");
    let stacks: Vec<_> = (1..9)
        .map(|line| {
            let frame = snapshot.symbols.intern_frame(Frame { name, filename, line });
            snapshot.symbols.intern_stack(&[frame])
        })
        .collect();
    for device in 0..2 {
        let mut trace = DeviceTrace { device, ..DeviceTrace::default() };
        let mut random = 7_u64 + device as u64;
        let mut live: Vec<(u64, u64)> = Vec::new();
        let mut next = 1 << 40;
        for i in 0..events {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let stack = stacks[(random >> 60) as usize / 2];
            let is_free = live.len() > 400 || (i % 1_000 > 700 && live.len() > 8);
            let at = (random >> 33) as usize % live.len().max(1);
            let (action, (address, size)) = match is_free {
                true => (Action::FreeCompleted, live.swap_remove(at)),
                false => (Action::Alloc, (next, 512 * (1 + (random >> 50)))),
            };
            if !is_free {
                live.push((address, size));
                next += size;
            }
            let time_us = i64::from(i) * 7 + 1_000_000;
            trace.events.push(event(action, address, size, time_us, stack));
        }
        if device == 1 {
            trace.events.push(event(Action::Oom, 0, 1 << 30, i64::from(events) * 7 + 1_000_000, stacks[0]));
        }
        snapshot.devices.push(trace);
    }
    snapshot
}

#[test]
fn every_answer_is_what_the_session_answers() {
    let mut answers = 0;
    let mut check = |name: &str, header: &Header, snapshot: &Snapshot| {
        let recording = preview::write(header, snapshot);
        let plain = format::write(header, snapshot);
        let read = import(&recording).unwrap();
        assert_eq!(describe(&read), describe(&import(&plain).unwrap()), "{name}");
        let mut session = Session::build(read, &mut |_| {});
        let preview = all(&recording);
        assert_eq!(preview.summary(), session.summary(), "{name}");
        for (device, query, answer) in preview.answers() {
            assert_eq!(*answer, session.answer(device as usize, query), "{name}: {query:?}");
            assert_eq!(preview.answer(device, query).as_ref(), Some(answer), "{name}: {query:?}");
            assert_eq!(preview.wanted(device, query), None);
            answers += 1;
        }
    };
    for fixture in fixtures() {
        let imported = import(&fixture.bytes).unwrap();
        check(&fixture.name, &header(&imported), &imported.snapshot);
    }
    check("long", &Header::default(), &long(60_000));
    assert!(answers > 200, "only {answers} answers");
}

fn picture(axis: Axis, window: Window, columns: u32) -> TimelineQuery {
    TimelineQuery {
        axis,
        window,
        columns,
        bytes: Window { start: 0.0, end: 1e9 },
        rows: 400,
        color_by: ColorBy::Site,
        filter: Vec::new(),
        highlight: None,
    }
}

#[test]
fn the_first_preview_is_small_and_answers_what_is_asked_first() {
    let recording = preview::write(&Header { name: "run 7".to_owned(), ..Header::default() }, &long(200_000));
    let plain = format::write(&Header { name: "run 7".to_owned(), ..Header::default() }, &long(200_000)).len();
    let first_bytes = format::preview_range(&recording).unwrap().len();
    // The directory comes on top: some 60 bytes a place.
    let most = (plain / PREVIEW_FIRST_SHARE).max(PREVIEW_LEAST_BYTES) + 4_096;
    assert!(first_bytes <= most, "{first_bytes} of {plain}");
    let further = recording.len() - plain - first_bytes;
    assert!(further <= plain / PREVIEWS_SHARE + 4_096, "{further} of {plain}");
    assert!(further > plain / PREVIEWS_SHARE / 4, "room for detail is used: {further} of {plain}");

    let mut preview = first(&recording);
    let summary = preview.summary().clone();
    // The device that ran out of memory.
    assert_eq!(summary.telling_device(), Some(1));
    let device = &summary.devices[1];
    let whole = picture(Axis::Event, device.event, 1_733);
    for query in [
        Query::Diagnosis(DiagnosisQuery),
        Query::State(StateQuery { position: device.decisive_oom.unwrap() }),
        Query::State(StateQuery { position: device.peak_position }),
        Query::Overview(OverviewQuery { axis: Axis::Event, columns: 1_400 }),
        Query::Overview(OverviewQuery { axis: Axis::Event, columns: 16 }),
        Query::Steps(StepsQuery { axis: Axis::Event }),
        Query::Timeline(whole.clone()),
    ] {
        assert!(preview.answer(1, &query).is_some(), "{query:?}");
    }
    // What only the whole trace can tell.
    for query in [
        Query::State(StateQuery { position: 77 }),
        Query::Allocation(AllocationQuery { id: 0 }),
        Query::Timeline(TimelineQuery { filter: vec![">1MiB".to_owned()], ..whole.clone() }),
        Query::Timeline(TimelineQuery { color_by: ColorBy::Size, ..whole.clone() }),
        Query::Timeline(TimelineQuery {
            columns: 1,
            rows: 1,
            window: Window { start: 3.0, end: 9.0 },
            ..whole.clone()
        }),
    ] {
        assert_eq!(preview.answer(1, &query), None, "{query:?}");
    }
    for (x, want) in [(-1.0, 0), (7.5, 7), (1e12, device.events)] {
        let query = Query::PositionAt(PositionAtQuery { axis: Axis::Event, x });
        assert_eq!(preview.answer(1, &query), Some(Answer::PositionAt(want)), "{x}");
    }
    let headline = preview.headline();
    assert!(headline.title.starts_with("run 7: "), "{headline:?}");
    assert!(headline.text.contains("1.00 GiB"), "{headline:?}");

    // A part of the trace is drawn coarsely at first, and finer once its tile is here.
    let window = Window { start: 30_000.0, end: 40_000.0 };
    let asked = Query::Timeline(picture(Axis::Event, window, 1_000));
    let length = |preview: &Preview| match preview.answer(1, &asked) {
        Some(Answer::Timeline(found)) => found.query.window.length(),
        other => panic!("{other:?}"),
    };
    assert_eq!(length(&preview), device.event.length());
    let tile = preview.wanted(1, &asked).expect("a tile has more detail");
    assert!(preview.add(&tile, &recording[tile.start as usize..tile.end as usize]));
    assert!(length(&preview) < device.event.length() / 3.0);
    // The other axis and the other device come later.
    for (device, query) in [(1, Query::Steps(StepsQuery { axis: Axis::Time })), (0, Query::Diagnosis(DiagnosisQuery))] {
        assert_eq!(preview.answer(device, &query), None);
        let range = preview.wanted(device, &query).expect("it has a preview");
        preview.add(&range, &recording[range.start as usize..range.end as usize]);
        assert!(preview.answer(device, &query).is_some(), "{query:?}");
    }
}

#[test]
fn a_coarse_picture_keeps_every_peak() {
    let recording = preview::write(&Header::default(), &long(60_000));
    let preview = all(&recording);
    let mut session = session(&recording);
    let device = session.summary().devices[1].clone();
    for n in 0..20 {
        let length = device.event.length() / f64::from(n + 1);
        let start = (device.event.length() - length) * f64::from(n % 7) / 7.0;
        let asked = picture(Axis::Event, Window { start, end: start + length }, 900);
        let Some(Answer::Timeline(coarse)) = preview.answer(1, &Query::Timeline(asked.clone())) else { panic!("{n}") };
        let Answer::Timeline(exact) = session.answer(1, &Query::Timeline(asked)) else { panic!("{n}") };
        let largest = |values: &[u64]| values.iter().copied().max();
        let column = coarse.query.window.length() / f64::from(coarse.query.columns);
        let inside = |x: f64| ((x - coarse.query.window.start) / column) as usize;
        let last = inside(start + length).min(coarse.top.len() - 1);
        let seen = &coarse.top[inside(start)..=last];
        assert!(largest(seen) >= largest(&exact.top), "window {n}");
    }
}

#[test]
fn a_recording_without_a_preview_of_this_version_has_none() {
    let plain = format::write(&Header::default(), &long(100));
    assert_eq!(format::preview_range(&plain), None);
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&Header::default(), &mut bytes);
    writer.preview(b"\x03what a later version writes", &mut bytes);
    assert!(format::preview_range(&bytes).is_some());
    assert!(preview::read(&bytes).is_none(), "a later version is ignored");
    assert_eq!(import(&preview::write(&Header::default(), &long(100))).unwrap().snapshot.devices.len(), 2);
}

#[test]
fn a_preview_of_this_version_stays_readable() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/recording_preview_2.vramscope");
    if std::env::var_os("VRAMSCOPE_WRITE_GOLDEN").is_some() {
        let imported = crate::common::fixture("torch_2_15.pickle");
        std::fs::write(path, preview::write(&header(&imported), &imported.snapshot)).unwrap();
    }
    // If this fails, a type in a preview has changed: raise the version of previews, and keep a
    // file of the new one instead.
    let preview = all(&std::fs::read(path).unwrap());
    let device = preview.summary().telling_device().unwrap();
    assert!(preview.answers().count() > 5);
    assert!(matches!(preview.answer(device, &Query::Diagnosis(DiagnosisQuery)), Some(Answer::Diagnosis(_))));
}

/// Returns the payload of a first preview with every kind of answer.
fn payload() -> &'static Vec<u8> {
    static PAYLOAD: OnceLock<Vec<u8>> = OnceLock::new();
    PAYLOAD.get_or_init(|| {
        let mut session = Session::build(crate::common::fixture("torch_2_15.pickle"), &mut |_| {});
        preview::bake(&mut session, 1 << 20).swap_remove(0)
    })
}

proptest! {
    #[test]
    fn damaged_previews_are_refused_or_read(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut payload = payload().clone();
        for (at, to) in flips {
            let at = at.index(payload.len());
            payload[at] = to;
        }
        // Checksums are right: this is what somebody writes on purpose.
        let header = format::write(&Header::default(), &Snapshot::default());
        let range = format::PRELUDE_BYTES..format::PRELUDE_BYTES + format::chunk_bytes(&header[12..]).unwrap();
        let bytes = [&prelude()[..], &header[range], &seal(14, &payload)].concat();
        if let Some(mut preview) = preview::read(&bytes) {
            for range in preview.missing().collect::<Vec<_>>() {
                preview.add(&range, &payload);
            }
            preview.headline();
            for (device, query, _) in preview.answers() {
                prop_assert!(preview.answer(device, query).is_some());
                preview.wanted(device, query);
            }
        }
    }
}
