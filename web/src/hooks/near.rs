//! The cursor of a trace of which only previews are here. They hold the exact totals at few positions, and the largest totals
//! in each column of their pictures.

use query::{Answer, Axis, ColorBy, Query, Timeline, TimelineQuery, Window};
use yew::prelude::*;

use super::{ModelHandle, use_answer, use_cursor};

/// Parts into which the event axis is cut for questions: as many as the finest level of previews has. While the cursor moves
/// within one, nothing is asked again.
const PARTS: u32 = 16;
/// Enough columns for a question to be about a picture.
const COLUMNS: u32 = 32;

/// What the pictures of previews tell of the cursor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    /// Its coordinate, on the time axis to a column of the picture.
    pub x: f64,
    /// Requested and active bytes at the cursor, if the picture has just that position.
    pub exact: Option<(u64, u64)>,
    /// The largest requested total in the cursor's column: at the cursor it is no larger.
    pub requested: u64,
    /// The largest reserved total in the cursor's column: at the cursor it is no larger.
    pub reserved: u64,
}

/// Returns what previews tell of the cursor; `None` where its exact state is known, and while they tell nothing.
#[hook]
pub fn use_near(model: &ModelHandle) -> Option<Near> {
    let (axis, cursor, extent) = (model.view.axis, model.view.cursor, model.extent());
    let state = use_cursor(model);
    let is_refused = model.is_preview() && matches!(state.as_deref(), Some(Answer::Refused(_)));
    let part = match axis {
        Axis::Event => part_of(cursor, extent),
        Axis::Time => model.view.window,
    };
    let fine = use_answer(is_refused.then(|| question(axis, part)));
    // The part of the time axis in which the cursor is can't be told beforehand.
    let coarse = use_answer((is_refused && axis == Axis::Time).then(|| question(axis, extent)));
    [fine, coarse].iter().flatten().find_map(|answer| match answer.as_ref() {
        Answer::Timeline(timeline) if timeline.query.axis == axis => near(timeline, cursor, extent),
        _ => None,
    })
}

/// Returns the cursor's coordinate: exact once its state is known, before that as previews tell it.
#[hook]
pub fn use_cursor_x(model: &ModelHandle) -> Option<f64> {
    let (axis, cursor) = (model.view.axis, model.view.cursor);
    let state = use_cursor(model);
    let near = use_near(model);
    match (state.as_deref(), axis) {
        (Some(Answer::State(state)), Axis::Time) => Some(state.time_us),
        (Some(Answer::State(state)), Axis::Event) => Some(f64::from(state.position)),
        (_, Axis::Event) if model.is_preview() => Some(f64::from(cursor)),
        _ => near.map(|near| near.x),
    }
}

/// Returns the name of a call site by the number of its stack, if a preview has it among its groups.
#[hook]
pub fn use_site_name(model: &ModelHandle, stack: u32) -> Option<String> {
    let answer = use_answer(model.is_preview().then(|| question(Axis::Event, model.extent_on(Axis::Event))));
    match answer.as_deref()? {
        Answer::Timeline(timeline) => {
            timeline.classes.iter().find(|class| class.stack == Some(stack)).map(|class| class.label.clone())
        }
        _ => None,
    }
}

/// Returns the question for the finest picture of a part of an axis.
fn question(axis: Axis, window: Window) -> Query {
    let (color_by, filter, highlight) = (ColorBy::Site, Vec::new(), None);
    let bytes = Window { start: 0.0, end: 1.0 };
    Query::Timeline(TimelineQuery { axis, window, columns: COLUMNS, bytes, rows: 1, color_by, filter, highlight })
}

/// Returns the part of the event axis in which a position is, without its edges.
fn part_of(position: u32, extent: Window) -> Window {
    let length = extent.length() / f64::from(PARTS);
    let part = ((f64::from(position) + 0.5 - extent.start) / length).floor().clamp(0.0, f64::from(PARTS - 1));
    let start = extent.start + part * length;
    Window { start: start + length / 64.0, end: start + length * 63.0 / 64.0 }
}

/// Returns what a picture tells of a position; `None` if the position is not in it.
fn near(timeline: &Timeline, position: u32, extent: Window) -> Option<Near> {
    let (query, known) = (&timeline.query, &timeline.position);
    let unit = query.window.length() / f64::from(query.columns.max(1));
    // The column at whose start the position is drawn on the time axis, to a column.
    let (first, last, start) = match query.axis {
        Axis::Event => {
            let column = (f64::from(position) + 0.5 - query.window.start) / unit;
            if !(column >= 0.0 && column < known.len() as f64) {
                return None;
            }
            (column as usize, column as usize, 0)
        }
        Axis::Time => {
            // Each column tells the position of its largest total, so another one is between two columns.
            let next = known.partition_point(|other| *other < position);
            let ends_trace = query.window.end >= extent.end - unit;
            match next.checked_sub(1) {
                _ if known.get(next) == Some(&position) => (next, next, next),
                Some(before) if next < known.len() => (before, next, next),
                Some(before) if ends_trace => (before, before, next),
                None if query.window.start <= extent.start + unit => (0, 0, 0),
                _ => return None,
            }
        }
    };
    let largest = |values: &[u64]| values.get(first..=last).and_then(|values| values.iter().max()).copied();
    let exact = timeline.top.get(first).zip(timeline.active.get(first)).map(|(top, active)| (*top, *active));
    let x = match query.axis {
        Axis::Event => f64::from(position),
        Axis::Time => query.window.start + start as f64 * unit,
    };
    Some(Near {
        x,
        exact: exact.filter(|_| known.get(first) == Some(&position)),
        requested: largest(&timeline.top)?,
        reserved: largest(&timeline.reserved)?,
    })
}

#[cfg(test)]
mod tests {
    use format::import::Importer;
    use query::{Detail, Quads, StateQuery};
    use session::Session;
    use trace::limits::ImportLimits;

    use super::*;

    /// The fields of [`Near`].
    type Told = (f64, Option<(u64, u64)>, u64, u64);

    /// Returns a picture of four columns of ten units.
    fn picture(axis: Axis, start: f64) -> Timeline {
        let window = Window { start, end: start + 40.0 };
        let Query::Timeline(query) = question(axis, window) else { unreachable!() };
        Timeline {
            query: TimelineQuery { columns: 4, ..query },
            detail: Detail::Classes,
            quads: Quads::default(),
            classes: Vec::new(),
            top: vec![5, 9, 7, 7].into(),
            position: vec![4, 15, 20, 33].into(),
            active: vec![6, 10, 8, 8].into(),
            reserved: vec![20, 20, 30, 25].into(),
            allocations: 0,
            newest_us: None,
        }
    }

    #[test]
    fn a_picture_tells_bounds_and_at_its_own_positions_the_totals() {
        let whole = Window { start: 0.0, end: 40.0 };
        let check = |axis, start, position, want: Option<Told>| {
            let found = near(&picture(axis, start), position, whole);
            let found = found.map(|near| (near.x, near.exact, near.requested, near.reserved));
            assert_eq!(found, want, "{axis:?} from {start}: {position}");
        };
        check(Axis::Event, 0.0, 15, Some((15.0, Some((9, 10)), 9, 20)));
        check(Axis::Event, 0.0, 19, Some((19.0, None, 9, 20)));
        check(Axis::Event, 0.0, 39, Some((39.0, None, 7, 25)));
        check(Axis::Event, 0.0, 40, None);
        check(Axis::Event, 20.0, 15, None);
        // A position between those of two columns is in one of the two.
        check(Axis::Time, 0.0, 15, Some((10.0, Some((9, 10)), 9, 20)));
        check(Axis::Time, 0.0, 17, Some((20.0, None, 9, 30)));
        check(Axis::Time, 0.0, 0, Some((0.0, None, 5, 20)));
        check(Axis::Time, 0.0, 40, Some((40.0, None, 7, 25)));
        check(Axis::Time, 20.0, 0, None);
        check(Axis::Time, -20.0, 40, None);
    }

    #[test]
    fn what_is_told_of_a_position_bounds_its_state() {
        for name in ["two_devices.pickle", "ring.pickle", "recording_gap.vramscope"] {
            let file = format!("{}/../tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
            let mut importer = Importer::new(ImportLimits::default());
            importer.push(&std::fs::read(file).unwrap()).unwrap();
            let mut session = Session::build(importer.finish().unwrap(), &mut |_| {});
            for columns in [17, 300] {
                check_bounds(&mut session, Axis::Event, columns, name);
                check_bounds(&mut session, Axis::Time, columns, name);
            }
        }
    }

    /// Checks what the picture of a whole device tells of each of its positions.
    fn check_bounds(session: &mut Session, axis: Axis, columns: u32, name: &str) {
        let device = session.summary().devices[0].clone();
        let extent = if axis == Axis::Event { device.event } else { device.time };
        let Query::Timeline(asked) = question(axis, extent) else { unreachable!() };
        let answer = session.answer(0, &Query::Timeline(TimelineQuery { columns, ..asked }));
        let Answer::Timeline(picture) = answer else { unreachable!() };
        for position in (0..=device.events).step_by((device.events / 200).max(1) as usize) {
            let Answer::State(state) = session.answer(0, &Query::State(StateQuery { position })) else {
                unreachable!()
            };
            let (near, totals) = (near(&picture, position, extent).unwrap(), state.totals);
            let what = format!("{name}, {axis:?}, {columns} columns, {position}: {near:?}, {totals:?}");
            assert!(totals.requested <= near.requested && totals.reserved <= near.reserved, "{what}");
            assert!(near.exact.is_none_or(|told| told == (totals.requested, totals.active)), "{what}");
            let at = if axis == Axis::Time { state.time_us } else { f64::from(position) };
            assert!((near.x - at).abs() <= extent.length() / f64::from(columns) + 1.0, "{what}, {at}");
        }
    }

    #[test]
    fn the_part_of_a_position_holds_it_or_borders_on_it() {
        let extent = Window { start: 0.0, end: 1_601.0 };
        for (position, want) in [(0, 0), (99, 0), (101, 1), (1_599, 15), (1_600, 15)] {
            let part = part_of(position, extent);
            let length = extent.length() / 16.0;
            let (start, end) = (f64::from(want) * length, f64::from(want + 1) * length);
            assert!(part.start > start && part.end < end, "{position}: {part:?}");
        }
    }
}
