//! A watched session: its status, and how the view follows its newest events. Pure arithmetic over windows and
//! positions; the worker handles the wire.

use query::{Axis, DeviceSummary, Summary, Window};
use trace::units::{Count, counted};
use wire::SessionState;

use super::view::{Selection, View, clamp, extent};
use crate::worker::message::{Connection, Failed, LiveStatus, MovedSelection, Trim, Update};

/// The window of a long session that is followed by default, in microseconds.
pub const FOLLOWED_US: f64 = 30e6;
/// The window of a long session that is followed by default, in events.
pub const FOLLOWED_EVENTS: f64 = 100_000.0;

/// How much of the session is in view while it is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Span {
    /// All of a short session, or the newest part of a long one: [`FOLLOWED_US`] or [`FOLLOWED_EVENTS`].
    #[default]
    Newest,
    /// The whole session.
    Whole,
    /// A length of the axis, up to its end.
    Length(f64),
}

/// The state of a session apart from its trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Its name on the server.
    pub session: String,
    /// How events are recorded, as display text; empty until known.
    pub mode: String,
    /// The status, as last reported by the worker.
    pub status: LiveStatus,
    /// Whether the view follows the newest events.
    pub is_following: bool,
    /// Whether the picture is paused.
    pub is_paused: bool,
    /// Whether it was followed until its end and the view has not been touched since: the last events are then shown
    /// too.
    pub is_ending: bool,
    /// How much is in view while it is followed.
    pub span: Span,
    /// The length of the window when it was followed last; 0 if it was not.
    pub left: f64,
    /// The out-of-memory event that stopped the following, until it is dismissed.
    pub oom: Option<Failed>,
    /// Incremented with each summary that is shown: answers to older ones are out of date.
    pub revision: u32,
    /// The revision that the newest diagnosis is of.
    pub diagnosed: u32,
    /// Incremented whenever the oldest events are dropped: positions in older answers are out of date.
    pub epoch: u32,
    /// What was dropped last, by device.
    pub trims: Vec<Trim>,
    /// Whether the view is unchanged since the session was opened.
    pub is_fresh: bool,
    /// Whether everything that existed when the session was opened has been received.
    pub has_caught_up: bool,
}

impl Live {
    /// Creates the state of a session that has just been requested.
    pub fn new(session: String) -> Self {
        Self {
            session,
            mode: String::new(),
            status: LiveStatus::default(),
            is_following: true,
            is_paused: false,
            is_ending: false,
            span: Span::Newest,
            left: 0.0,
            oom: None,
            revision: 0,
            diagnosed: 0,
            epoch: 0,
            trims: Vec::new(),
            is_fresh: true,
            has_caught_up: false,
        }
    }

    /// Returns whether more events may come.
    pub fn is_open(&self) -> bool {
        self.status.state != SessionState::Ended && !matches!(self.status.connection, Connection::Refused { .. })
    }

    /// Returns whether the job records within a budget, so that its full history can be requested.
    pub fn sees_part(&self) -> bool {
        self.mode.starts_with("within a budget")
    }

    /// Returns whether there is something newer than what is in view.
    pub fn can_jump(&self) -> bool {
        self.is_paused || (self.is_open() && !self.is_following)
    }

    /// Returns which part of the session's events is loaded, as text, or `None` if all of them are.
    pub fn latest(&self, shown: &Summary) -> Option<String> {
        let LiveStatus { dropped_events, is_late, missed, .. } = &self.status;
        // While the session loads, the newest events may still be missing.
        let is_part = self.has_caught_up && (*dropped_events > 0 || *is_late || missed.is_some());
        let all = counted(self.status.events.max(count(shown)), "event");
        is_part.then(|| format!("the latest {} of {all}", Count(count(shown))))
    }

    /// Updates the status. Returns true if everything that existed has just been received, so that the view must be set
    /// up.
    pub fn set_status(&mut self, status: LiveStatus) -> bool {
        let has_come = status.is_caught_up && !self.has_caught_up;
        self.has_caught_up |= status.is_caught_up;
        self.status = status;
        has_come
    }

    /// Returns whether the update has a new out-of-memory event; one from before the session was opened is not new.
    pub fn is_news(&self, grown: &Update) -> bool {
        self.has_caught_up && grown.oom.is_some() && self.is_following
    }
}

/// Returns the number of events of all devices.
pub fn count(summary: &Summary) -> u64 {
    summary.devices.iter().map(|device| u64::from(device.events)).sum()
}

/// Returns the end of a window of a given length that shows the newest event. On the time axis a hundredth of the
/// length is left free behind it, so that the resulting state can be seen. (The whole trace has a hundredth of its time
/// there.)
fn now(device: &DeviceSummary, axis: Axis, length: f64) -> f64 {
    let whole = extent(device, axis);
    match axis {
        Axis::Time => (device.span_us as f64 + length / 100.0).min(whole.end),
        Axis::Event => whole.end,
    }
}

/// Moves the view to the newest events.
pub fn follow(view: &mut View, device: &DeviceSummary, span: Span) {
    let whole = extent(device, view.axis);
    let length = match (span, view.axis) {
        (Span::Whole, _) => whole.length(),
        (Span::Length(length), _) => length,
        (Span::Newest, Axis::Time) => FOLLOWED_US,
        (Span::Newest, Axis::Event) => FOLLOWED_EVENTS,
    };
    let end = now(device, view.axis, length);
    view.window = clamp(Window { start: end - length, end }, whole);
    view.cursor = device.events;
    view.follows_cursor = false;
}

/// Returns what is followed once a person resumes: as before, unless the window has got another length since.
pub fn resumed(view: &View, device: &DeviceSummary, span: Span, left: f64) -> Span {
    let length = view.window.length();
    // A thousandth of the window is not visible.
    if left > 0.0 && (length - left).abs() <= left / 1e3 {
        return span;
    }
    if view.window == extent(device, view.axis) { Span::Whole } else { Span::Length(length) }
}

/// Returns what is followed after a person changed the view, or `None` if the following stops. A window that still ends
/// at the newest event is followed at its new length; any other window, or a cursor that is not at the end, stops the
/// following.
pub fn kept(before: &View, after: &View, device: &DeviceSummary, span: Span) -> Option<Span> {
    if after.device != before.device {
        return Some(span);
    }
    if after.cursor != before.cursor && after.cursor < device.events {
        return None;
    }
    let whole = extent(device, after.axis);
    if after.axis != before.axis {
        // A length is valid on its own axis only.
        return Some(match span {
            Span::Length(_) => Span::Length(after.window.length()),
            other => other,
        });
    }
    if after.window == before.window {
        return Some(span);
    }
    // A thousandth of the window is not visible.
    if after.window.end < now(device, after.axis, after.window.length()) - after.window.length() / 1e3 {
        return None;
    }
    Some(if after.window == whole { Span::Whole } else { Span::Length(after.window.length()) })
}

/// Adjusts the view after the oldest events were dropped: everything that still exists stays where it is on the screen.
pub fn shift(view: &mut View, trim: &Trim) {
    let by = match view.axis {
        Axis::Time => trim.us,
        Axis::Event => f64::from(trim.events),
    };
    view.window = moved(view.window, -by);
    view.cursor = view.cursor.saturating_sub(trim.events);
    // The places of steps have changed.
    view.compared = None;
    // A range of which nothing is left is gone.
    view.range = view.range.filter(|(_, to)| *to >= trim.events);
    view.range = view.range.map(|(from, to)| (from.saturating_sub(trim.events), to - trim.events));
    // Pins stay at what still exists. The numbers of allocations have changed.
    view.pins.retain(|pin| pin.position >= trim.events);
    for pin in &mut view.pins {
        pin.position -= trim.events;
        if trim.events > 0 {
            pin.allocation = None;
        }
    }
    // A pending change of the axis is obsolete.
    view.wanted_axis = None;
}

/// Adjusts the selection after allocations were renumbered; clears it if its new number is unknown.
pub fn reselect(view: &mut View, kept: Option<MovedSelection>) {
    if let Selection::Allocation(id) = view.selection {
        let new = kept.filter(|kept| kept.device == view.device && kept.was == id).and_then(|kept| kept.is);
        view.selection = new.map_or(Selection::None, Selection::Allocation);
    }
}

/// Returns the window shifted to the right.
pub fn moved(window: Window, by: f64) -> Window {
    Window { start: window.start + by, end: window.end + by }
}
