//! The link to the view of a copy, from the view of the original.

use shared::link::{Link, Selection};
use shared::query::{Axis, DeviceSummary, Window};
use shared::session::Moved;

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

/// Returns the link to `view` in a copy. Without `moved` the copy doesn't have the shown device: only preferences are kept.
pub fn link_to(view: &View, device: Option<&DeviceSummary>, start: Start, moved: Option<Moved>, is_part: bool) -> Link {
    let mut link = view.link(device);
    let Some(moved) = moved else {
        link.device = 0;
        (link.window, link.bytes, link.cursor, link.range, link.compared) = (None, None, None, None, None);
        (link.selection, link.heatmap_offsets) = (Selection::None, None);
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
    link.cursor = link.cursor.map(position);
    link.range = link.range.map(|(from, to)| (position(from), position(to)));
    link.window = link.window.map(|Window { start, end }| Window { start: start + by, end: end + by });
    link.selection = match view.selection {
        Selection::Allocation(_) => moved.named.allocation.map_or(Selection::None, Selection::Allocation),
        Selection::Site(_) => moved.named.stack.map_or(Selection::None, Selection::Site),
        Selection::Line(_) => moved.named.stack.map_or(Selection::None, Selection::Line),
        // Classes are counted by their place in the stacking order, which is that of the whole trace.
        Selection::Class(_) if is_part => Selection::None,
        other => other,
    };
    if is_part {
        link.compared = None;
    }
    link
}

#[cfg(test)]
mod tests {
    use shared::session::Named;

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

    fn moved(allocation: Option<u32>, events: u32, us: f64) -> Option<Moved> {
        Some(Moved { named: Named { device: 1, allocation, stack: Some(9) }, events, us })
    }

    #[test]
    fn a_view_of_the_whole_stays() {
        let link = link_to(&view(), None, Start::default(), moved(Some(7), 0, 0.0), false);
        assert_eq!(Link { device: 0, ..link }, view().link(None));
    }

    #[test]
    fn a_view_of_a_part_moves_with_it() {
        let link = link_to(&view(), None, Start { events: 5, us: 20.0 }, moved(Some(2), 45, 120.0), true);
        assert_eq!((link.device, link.cursor, link.range), (1, Some(10), Some((0, 20))));
        assert_eq!(link.window, Some(Window { start: 0.0, end: 200.0 }));
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
            assert_eq!(link_to(&view, None, Start::default(), moved(None, 0, 0.0), true).selection, want);
        }
        let link = link_to(&view(), None, Start::default(), None, false);
        assert_eq!((link.window, link.cursor, link.selection), (None, None, Selection::None));
    }
}
