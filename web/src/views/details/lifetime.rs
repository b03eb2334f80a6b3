//! The lifetime of an allocation, as text and as a window of the timeline.

use query::{AllocationDetail, Axis, Window};
use trace::units::Count;

use crate::widgets::format::{duration, moment};

/// An allocation's lifetime as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// From when to when: `0.482031 s to 1:12.500000`, `from 0.482031 s, still live at the end`.
    pub span: String,
    /// The length, if events have times.
    pub length: Option<String>,
}

/// Formats an allocation's lifetime.
pub fn lifetime(detail: &AllocationDetail, has_times: bool, is_running: bool) -> Lifetime {
    let at = |position: u32, us: f64| {
        if has_times { moment(us) } else { format!("event {}", Count(position.into())) }
    };
    let length = has_times.then(|| {
        let length = duration(detail.end_us - detail.start_us);
        // The trace doesn't cover the whole lifetime.
        let is_cut = detail.allocated_at.is_none() || detail.free_completed_at.is_none();
        if is_cut { format!("at least {length}") } else { length }
    });
    let from = detail.allocated_at.map_or_else(|| "before the trace".to_owned(), |p| at(p, detail.start_us));
    let span = match detail.free_completed_at {
        Some(p) => format!("{from} to {}", at(p, detail.end_us)),
        None => format!("from {from}, {}", still_live(is_running)),
    };
    Lifetime { span, length }
}

/// Describes an allocation that was not freed.
pub fn still_live(is_running: bool) -> &'static str {
    if is_running { "still live" } else { "still live at the end" }
}

/// Returns the window of a whole lifetime with a margin.
pub fn window_of(detail: &AllocationDetail, axis: Axis, whole: Window) -> Window {
    let (start, end) = match axis {
        Axis::Time => (detail.start_us, detail.end_us),
        Axis::Event => {
            (f64::from(detail.allocated_at.unwrap_or(0)), detail.free_completed_at.map_or(whole.end, f64::from))
        }
    };
    // A lifetime of length zero still needs a margin.
    let margin = ((end - start) * 0.1).max(match axis {
        Axis::Time => 50.0,
        Axis::Event => 4.0,
    });
    Window { start: (start - margin).max(whole.start), end: (end + margin).min(whole.end) }
}

#[cfg(test)]
pub(super) mod tests {
    use query::Paint;
    use trace::totals::Totals;
    use trace::units::{Address, PoolId, Stream};

    use super::*;

    pub(crate) fn detail() -> AllocationDetail {
        AllocationDetail {
            id: 7,
            name: "b7f0_1".to_owned(),
            address: Address(0x7f0),
            requested: 1000,
            size: 1024,
            size_is_exact: true,
            stream: Stream(0),
            pool: PoolId(0, 0),
            is_small: true,
            contexts: Vec::new(),
            allocated_at: Some(10),
            free_requested_at: Some(20),
            free_completed_at: Some(30),
            start_us: 1_000.0,
            end_us: 3_000.0,
            totals_then: Totals::default(),
            paint: Paint::slot(1),
            stack: 1,
            alloc_stack: Vec::new(),
            missing: None,
            free_stack: Vec::new(),
        }
    }

    #[test]
    fn both_ends_may_lie_outside() {
        let mut d = detail();
        let l = lifetime(&d, true, false);
        assert_eq!((l.span.as_str(), l.length.as_deref()), ("0.001000\u{a0}s to 0.003000\u{a0}s", Some("2.00 ms")));
        let l = lifetime(&d, false, false);
        assert_eq!((l.span.as_str(), l.length), ("event 10 to event 30", None));
        d.free_completed_at = None;
        assert_eq!(lifetime(&d, true, false).span, "from 0.001000\u{a0}s, still live at the end");
        assert_eq!(lifetime(&d, true, true).span, "from 0.001000\u{a0}s, still live", "its job has not ended");
        d.allocated_at = None;
        let l = lifetime(&d, true, false);
        assert_eq!(l.span, "from before the trace, still live at the end");
        assert_eq!(l.length.as_deref(), Some("at least 2.00 ms"));
    }

    #[test]
    fn fitting_stays_inside_the_trace() {
        let whole = Window { start: 0.0, end: 3_100.0 };
        assert_eq!(window_of(&detail(), Axis::Time, whole), Window { start: 800.0, end: 3_100.0 });
        let events = Window { start: 0.0, end: 101.0 };
        assert_eq!(window_of(&detail(), Axis::Event, events), Window { start: 6.0, end: 34.0 });
    }
}
