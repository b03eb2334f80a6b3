//! The positions in each pixel column.

use super::sampled;
use query::{Axis, Window};
use replay::Replay;
use trace::DeviceTrace;

/// The positions whose states are current somewhere in a column: `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first position.
    pub first: u32,
    /// The last position.
    pub last: u32,
}

/// Returns the positions of each of `columns` equal parts of a window; `None` outside the trace.
pub fn spans<'a>(
    trace: &'a DeviceTrace,
    replay: &'a Replay,
    axis: Axis,
    window: Window,
    columns: u32,
) -> impl Iterator<Item = Option<Span>> + 'a {
    let width = window.length() / f64::from(columns.max(1));
    let extent = extent(trace, replay, axis);
    let end = replay.positions();
    (0..columns).map(move |c| {
        let a = window.start + f64::from(c) * width;
        // The last edge is the window's own: a sum of widths could lose the end by rounding.
        let b = if c + 1 == columns { window.end } else { window.start + f64::from(c + 1) * width };
        if !(b > extent.start && a < extent.end && b > a) {
            return None;
        }
        let (first, last) = match axis {
            Axis::Event => (a.max(0.0) as u32, (b.ceil() - 1.0).max(0.0) as u32),
            Axis::Time => (replay.position_at_time(trace, a.max(0.0)), before_time(trace, replay, b)),
        };
        let first = first.min(end);
        Some(Span { first, last: last.clamp(first, end) })
    })
}

/// Returns the last position whose time is less than `time_us`.
fn before_time(trace: &DeviceTrace, replay: &Replay, time_us: f64) -> u32 {
    // Times are whole microseconds.
    replay.position_at_time(trace, time_us.ceil() - 1.0)
}

/// Returns the extent of the whole trace on an axis. On the time axis the last state lasts a hundredth of the run, so
/// that it can be seen.
pub fn extent(trace: &DeviceTrace, replay: &Replay, axis: Axis) -> Window {
    match axis {
        Axis::Event => Window { start: 0.0, end: f64::from(replay.positions()) + 1.0 },
        Axis::Time => {
            let last = sampled::span_us(trace, replay) as f64;
            Window { start: 0.0, end: (last * 1.01).max(last + 1.0) }
        }
    }
}

/// Returns the coordinate at which a position's state begins.
pub fn coordinate(trace: &DeviceTrace, replay: &Replay, axis: Axis, position: u32) -> f64 {
    match axis {
        Axis::Event => f64::from(position),
        Axis::Time => replay.time_at(trace, position) as f64,
    }
}
