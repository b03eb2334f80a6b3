//! Makes the previews of a recording: asks its session what the page asks first.

use crate::Session;
use format::baked::{Answered, Part, Place};
use format::import::Importer;
use format::{Header, Kind};
use query::diagnosis::DiagnosisQuery;
use query::{
    Axis, ClassesQuery, ColorBy, LinesQuery, Moments, OverviewQuery, Query, StateQuery, StepsQuery, TimelineQuery,
    Window,
};
use trace::Snapshot;
use trace::limits::{
    ImportLimits, PREVIEW_COLUMNS, PREVIEW_FIRST_SHARE, PREVIEW_LEAST_BYTES, PREVIEW_PART_BYTES, PREVIEW_PLACES,
    PREVIEW_ROWS, PREVIEWS_SHARE,
};
use trace::order::SortFew;

/// The numbers of tiles in which the levels of detail cut a trace.
const LEVELS: [u32; 2] = [4, 16];
/// Rows of the list of call sites that the page asks for first.
const LINES: u32 = 20;
/// How much higher than the largest total a picture is: the page leaves room above it.
const HEADROOM: f64 = 1.125;

/// Returns a whole recording that holds a snapshot, with previews of it.
pub fn write(header: &Header, snapshot: &Snapshot) -> Vec<u8> {
    let plain = format::write(header, snapshot);
    // As it is read, not as it is in memory: a preview must say what the recording says.
    let mut importer = Importer::new(ImportLimits::default());
    if importer.push(&plain).is_err() {
        return plain;
    }
    let Ok(imported) = importer.finish() else { return plain };
    let mut session = Session::build(imported, &mut |_| {});
    let previews = bake(&mut session, plain.len());
    if previews.is_empty() { plain } else { format::write_with_previews(header, snapshot, &previews) }
}

/// Returns the payloads of the previews of a recording, of which this is the session, and which takes so many bytes without
/// them. Returns none if not even the summary is small enough.
pub fn bake(session: &mut Session, recording_bytes: usize) -> Vec<Vec<u8>> {
    let telling = session.summary().telling_device().unwrap_or(0);
    let first_room = (recording_bytes / PREVIEW_FIRST_SHARE).max(PREVIEW_LEAST_BYTES);
    let summary = Some(session.summary().clone());
    let mut first = Part { summary, places: Vec::new(), answers: Vec::new() };
    let Some(left) = first_room.checked_sub(packed_bytes(&first)) else { return Vec::new() };
    first.answers = whole(session, telling, Axis::Event, left);

    let (mut others, mut room, mut from) = (Vec::new(), recording_bytes / PREVIEWS_SHARE, 0);
    for place in places(session, telling) {
        let answers = match place.is_whole {
            true => whole(session, place.device, place.axis, room),
            false => picture(session, place.device, place.axis, place.window, room).into_iter().collect(),
        };
        if answers.is_empty() || first.places.len() >= PREVIEW_PLACES {
            // What follows is deeper, and no smaller.
            break;
        }
        let payload = Part { summary: None, places: Vec::new(), answers }.encode();
        let bytes = format::seal(Kind::Preview as u8, &payload).len();
        let Some(left) = room.checked_sub(bytes) else { break };
        room = left;
        first.places.push(Place { from, bytes: bytes as u64, ..place });
        from += bytes as u64;
        others.push(payload);
    }
    others.insert(0, first.encode());
    others
}

/// Returns the previews that follow the first one, the most wanted first.
fn places(session: &Session, telling: u32) -> Vec<Place> {
    let devices = &session.summary().devices;
    let mut order: Vec<u32> = (0..devices.len() as u32).collect();
    order.sort_few_by_key(|device| *device != telling);
    let wholes = order.iter().flat_map(|&device| [Axis::Event, Axis::Time].map(|axis| (device, axis)));
    let mut places = Vec::new();
    for (device, axis) in wholes {
        let Some(summary) = devices.get(device as usize) else { continue };
        let window = if axis == Axis::Event { summary.event } else { summary.time };
        if (axis == Axis::Event || summary.has_times) && window.length() > 0.0 {
            places.push(Place { device, axis, window, is_whole: true, from: 0, bytes: 0 });
        }
    }
    let tiles = LEVELS.into_iter().flat_map(|count| {
        let of_level = places.iter().flat_map(move |whole| {
            let length = whole.window.length() / f64::from(count);
            (0..count).map(move |i| {
                let start = whole.window.start + length * f64::from(i);
                Place { window: Window { start, end: start + length }, is_whole: false, ..*whole }
            })
        });
        of_level.collect::<Vec<_>>()
    });
    let tiles: Vec<Place> = tiles.collect();
    // The first preview has it already.
    places.retain(|place| (place.device, place.axis) != (telling, Axis::Event));
    places.extend(tiles);
    places
}

/// Returns the answers to what is asked first of one device on one axis, as many as there is room for: the most important
/// first.
fn whole(session: &mut Session, device: u32, axis: Axis, mut room: usize) -> Vec<Answered> {
    let Some(summary) = session.summary().devices.get(device as usize) else { return Vec::new() };
    let (cursor, peak) = (summary.decisive_oom.unwrap_or(summary.peak_position), summary.peak_position);
    let window = if axis == Axis::Event { summary.event } else { summary.time };
    let has_events = summary.events > 0;
    let moments = Moments { at: cursor, since: None };
    let one = |query: Query| vec![query];
    let mut wanted = Vec::new();
    if axis == Axis::Event {
        wanted.push(one(Query::Diagnosis(DiagnosisQuery)));
        wanted.push(one(Query::State(StateQuery { position: cursor })));
        wanted.push(one(Query::State(StateQuery { position: peak })));
    }
    wanted.push([1, 2, 4].map(|by| Query::Overview(OverviewQuery { axis, columns: PREVIEW_COLUMNS / by })).into());
    if has_events {
        wanted.push(one(Query::Steps(StepsQuery { axis })));
        // The description for a screen reader: the largest totals of the window.
        wanted.push(one(Query::Timeline(TimelineQuery {
            axis,
            window,
            columns: 1,
            bytes: Window { start: 0.0, end: 1.0 },
            rows: 1,
            color_by: ColorBy::Site,
            filter: Vec::new(),
            highlight: None,
        })));
        if axis == Axis::Event {
            let (filter, highlight) = (Vec::new(), None);
            wanted.push(one(Query::Classes(ClassesQuery { moments, color_by: ColorBy::Site, filter, highlight })));
            wanted.push(one(Query::Lines(LinesQuery { moments, rows: LINES, filter: Vec::new() })));
        }
    }
    let mut answers: Vec<Answered> = Vec::new();
    // The picture comes first, and leaves something to the others unless even the coarsest one is too large for that.
    let reserve = room - room / 3 * 2;
    room -= reserve;
    answers.extend(fitting(session, device, pictures(session, device, axis, window), &mut room));
    room += reserve;
    if answers.is_empty() {
        answers.extend(fitting(session, device, pictures(session, device, axis, window), &mut room));
    }
    for choices in wanted {
        let is_known = |query: &Query| answers.iter().any(|known| known.query == *query);
        if !choices.iter().any(is_known) {
            answers.extend(fitting(session, device, choices, &mut room));
        }
    }
    answers
}

/// Returns the picture of a window, if there is room for it.
fn picture(session: &mut Session, device: u32, axis: Axis, window: Window, mut room: usize) -> Option<Answered> {
    let choices = pictures(session, device, axis, window);
    fitting(session, device, choices, &mut room)
}

/// Returns the questions for a window's picture, the finest first.
fn pictures(session: &Session, device: u32, axis: Axis, window: Window) -> Vec<Query> {
    let tallest = session.summary().devices.get(device as usize).map_or(0, |device| device.peak_reserved);
    let at = |by: u32| {
        Query::Timeline(TimelineQuery {
            axis,
            window,
            columns: PREVIEW_COLUMNS / by,
            bytes: Window { start: 0.0, end: (tallest as f64 * HEADROOM).max(1.0) },
            rows: PREVIEW_ROWS / by,
            color_by: ColorBy::Site,
            filter: Vec::new(),
            highlight: None,
        })
    };
    [1, 2, 4, 8].map(at).into()
}

/// Returns the answer to the first of some questions that is small enough, and takes its bytes from `room`.
fn fitting(session: &mut Session, device: u32, choices: Vec<Query>, room: &mut usize) -> Option<Answered> {
    choices.into_iter().find_map(|query| {
        let answer = session.answer(device as usize, &query);
        let part = Part { summary: None, places: Vec::new(), answers: vec![Answered { device, query, answer }] };
        *room = room.checked_sub(packed_bytes(&part))?;
        part.answers.into_iter().next()
    })
}

/// Returns the bytes of a preview in a recording; the most there are for one that readers would refuse.
fn packed_bytes(part: &Part) -> usize {
    let payload = part.encode();
    if payload.len() > PREVIEW_PART_BYTES / 2 { usize::MAX } else { format::seal(Kind::Preview as u8, &payload).len() }
}
