//! The link to the view of a copy, from the view of the original.

use query::copy::Moved;
use query::link::{Link, Pin, Selection};
use query::{Axis, DeviceSummary, Window};

use super::origin::Shown;
use crate::model::View;

/// Where the trace that is copied begins in the one that is shown. A file is copied as it is shown; a session's copy begins
/// where the server's recording begins, the page may hold less.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Start {
    /// Positions are higher there by this number of events.
    pub events: i64,
    /// Times are higher there by this number of microseconds.
    pub us: f64,
}

/// Returns whether a position of the page's trace is in a part of the copied one.
fn has(part: &Shown, start: Start, position: u32) -> bool {
    let there = i64::from(position) + start.events;
    (i64::from(part.positions.start)..=i64::from(part.positions.end)).contains(&there)
}

/// Says what the view shows and a part doesn't have, with the consequence; empty if it has everything.
pub fn lost(view: &View, device: Option<&DeviceSummary>, start: Start, moved: Option<Moved>, part: &Shown) -> String {
    let is_gone = match (view.selection, moved.map(|moved| moved.named)) {
        (Selection::Allocation(_), Some(named)) => named.allocation.is_none(),
        (Selection::Site(_) | Selection::Line(_), Some(named)) => named.stack.is_none(),
        _ => false,
    };
    let what =
        if matches!(view.selection, Selection::Allocation(_)) { "selected allocation" } else { "selected call site" };
    let failure = device.and_then(|device| device.decisive_oom);
    let parts = [
        (is_gone, what),
        (!has(part, start, view.cursor), "cursor"),
        // The position is the one right after the failed request.
        (
            failure.is_some_and(|after| !has(part, start, after.saturating_sub(1)) || !has(part, start, after)),
            "out-of-memory",
        ),
    ];
    let names: Vec<String> =
        parts.into_iter().filter(|(is_lost, _)| *is_lost).map(|(_, name)| format!("the {name}")).collect();
    let Some((last, others)) = names.split_last() else { return String::new() };
    let all = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
    let (is, them) = if others.is_empty() { ("is", "it") } else { ("are", "them") };
    let whole = if part.is_range { "range" } else { "window" };
    // Every name begins with "the".
    format!("T{} {is} outside this {whole}. The copy doesn't have {them}.", all.get(1..).unwrap_or_default())
}

/// Returns the link to `view` in a copy, of which `part` is kept, or everything. Without `moved` the copy doesn't have the
/// shown device: only preferences are kept.
pub fn link_to(
    view: &View,
    device: Option<&DeviceSummary>,
    start: Start,
    moved: Option<Moved>,
    part: Option<&Shown>,
) -> Link {
    let mut link = view.link(device);
    // Frames have other numbers in a copy.
    link.zooms.flame.clear();
    link.settings.flame_transforms.clear();
    link.settings.flame_sandwich = None;
    let Some(moved) = moved else {
        link.device = 0;
        (link.window, link.zooms.bytes, link.cursor, link.range, link.compared) = (None, None, None, None, None);
        (link.selection, link.zooms.heatmap_offsets) = (Selection::None, None);
        link.pins.clear();
        return link;
    };
    let position = |position: u32| {
        let moved = i64::from(position) + start.events - i64::from(moved.events);
        u32::try_from(moved.max(0)).unwrap_or(u32::MAX)
    };
    let by = match view.axis {
        Axis::Time => start.us - moved.us,
        Axis::Event => start.events as f64 - f64::from(moved.events),
    };
    link.device = moved.named.device;
    let is_here = |position: u32| part.is_none_or(|part| has(part, start, position));
    // The recipient's page chooses a cursor then.
    link.cursor = link.cursor.filter(|cursor| is_here(*cursor)).map(position);
    link.range = link.range.filter(|(from, to)| is_here(*from) && is_here(*to));
    link.range = link.range.map(|(from, to)| (position(from), position(to)));
    link.pins.retain(|pin| is_here(pin.position));
    for pin in &mut link.pins {
        *pin =
            Pin::new(position(pin.position), pin.allocation.filter(|_| part.is_none() && start.events == 0), &pin.name);
    }
    link.window = link.window.map(|Window { start, end }| Window { start: start + by, end: end + by });
    if part.is_some_and(|part| part.is_range) {
        // The window may be elsewhere. All of the range is shown.
        link.window = None;
    }
    link.selection = match view.selection {
        Selection::Allocation(_) => moved.named.allocation.map_or(Selection::None, Selection::Allocation),
        Selection::Site(_) => moved.named.stack.map_or(Selection::None, Selection::Site),
        Selection::Line(_) => moved.named.stack.map_or(Selection::None, Selection::Line),
        // Classes are counted by their place in the stacking order, which is that of the whole trace.
        Selection::Class(_) if part.is_some() => Selection::None,
        other => other,
    };
    if part.is_some() {
        link.compared = None;
    }
    link
}

#[cfg(test)]
mod tests {
    use query::copy::Named;
    use query::link::{Settings, Zooms};

    use super::*;

    fn view() -> View {
        View {
            axis: Axis::Time,
            window: Window { start: 100.0, end: 300.0 },
            cursor: 50,
            range: Some((40, 60)),
            compared: Some((1, 2)),
            selection: Selection::Allocation(7),
            ..View::default()
        }
    }

    fn part(is_range: bool, positions: std::ops::Range<u32>) -> Shown {
        Shown { is_range, positions }
    }

    fn moved(allocation: Option<u32>, events: u32, us: f64) -> Option<Moved> {
        Some(Moved { named: Named { device: 1, allocation, stack: Some(9) }, events, us })
    }

    #[test]
    fn a_view_of_the_whole_stays() {
        let link = link_to(&view(), None, Start::default(), moved(Some(7), 0, 0.0), None);
        assert_eq!(Link { device: 0, ..link }, view().link(None));
    }

    #[test]
    fn frames_have_other_numbers_in_a_copy() {
        let view = View {
            zooms: Zooms { flame: vec![3], ..Zooms::default() },
            settings: Settings {
                flame_transforms: vec![query::Transform::Merge(7)],
                flame_sandwich: Some((7, false)),
                ..Settings::default()
            },
            ..view()
        };
        for moved in [None, moved(Some(7), 0, 0.0)] {
            let link = link_to(&view, None, Start::default(), moved, None);
            assert_eq!(
                (link.zooms.flame.len(), link.settings.flame_transforms.len(), link.settings.flame_sandwich),
                (0, 0, None)
            );
        }
    }

    #[test]
    fn a_view_of_a_part_moves_with_it() {
        let start = Start { events: 5, us: 20.0 };
        let link = link_to(&view(), None, start, moved(Some(2), 45, 120.0), Some(&part(false, 45..65)));
        assert_eq!((link.device, link.cursor, link.range), (1, Some(10), Some((0, 20))));
        assert_eq!(link.window, Some(Window { start: 0.0, end: 200.0 }));
        let range = link_to(&view(), None, start, moved(Some(2), 45, 120.0), Some(&part(true, 45..65)));
        assert_eq!((range.cursor, range.range, range.window), (Some(10), Some((0, 20)), None));
        assert_eq!((link.selection, link.compared), (Selection::Allocation(2), None));
        assert!(link.to_string().starts_with("v="), "{link}");
    }

    #[test]
    fn what_the_copy_does_not_have_is_not_selected() {
        for (selection, want) in [
            (Selection::Allocation(7), Selection::None),
            (Selection::Site(3), Selection::Site(9)),
            (Selection::Line(3), Selection::Line(9)),
            (Selection::Class(3), Selection::None),
        ] {
            let view = View { selection, ..view() };
            assert_eq!(
                link_to(&view, None, Start::default(), moved(None, 0, 0.0), Some(&part(false, 0..60))).selection,
                want
            );
        }
        let link = link_to(&view(), None, Start::default(), None, None);
        assert_eq!((link.window, link.cursor, link.selection), (None, None, Selection::None));
        let link = link_to(&view(), None, Start::default(), moved(None, 0, 0.0), Some(&part(false, 0..45)));
        assert_eq!((link.cursor, link.range), (None, None));
    }

    #[test]
    fn what_a_part_does_not_have_is_said() {
        let device = DeviceSummary { decisive_oom: Some(70), ..DeviceSummary::default() };
        for (is_range, positions, allocation, want) in [
            (false, 0..100, Some(1), ""),
            (false, 45..70, Some(1), ""),
            (false, 0..60, Some(1), "The out-of-memory is outside this window. The copy doesn't have it."),
            (false, 60..70, Some(1), "The cursor is outside this window. The copy doesn't have it."),
            (
                true,
                70..90,
                None,
                "The selected allocation, the cursor and the out-of-memory are outside this range. The copy doesn't have them.",
            ),
        ] {
            let said =
                lost(&view(), Some(&device), Start::default(), moved(allocation, 0, 0.0), &part(is_range, positions));
            assert_eq!(said, want);
        }
    }
}
