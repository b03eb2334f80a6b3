//! A session that is watched: how it is, and how the view keeps to its newest events. Pure arithmetic over windows and
//! positions; what comes over the wire is the worker's matter.

use shared::query::{Axis, DeviceSummary, Summary, Window};
use shared::units::Count;
use shared::wire::SessionState;

use super::state::Shared;
use super::view::{Selection, View, clamp, extent};
use crate::worker::message::{Connection, Failed, Kept, LiveStatus, Trim, Update};

/// What is followed of a long session, where nobody chose anything else: microseconds on the axis of time.
pub const FOLLOWED_US: f64 = 30e6;
/// The same on the axis of events.
pub const FOLLOWED_EVENTS: f64 = 100_000.0;

/// How much of the session is in view while it is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Span {
    /// All of it while it is short, then its newest part: [`FOLLOWED_US`] or [`FOLLOWED_EVENTS`].
    #[default]
    Newest,
    /// All of it.
    Whole,
    /// So much of the axis, up to its end.
    Length(f64),
}

/// What is known of a session beside its trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Its name on the server.
    pub session: String,
    /// How events are had, for people; empty until it is known.
    pub mode: String,
    /// How it is, as the worker last told.
    pub status: LiveStatus,
    /// Whether the view keeps to the newest events.
    pub is_following: bool,
    /// Whether the picture stands still.
    pub is_paused: bool,
    /// Whether it was followed until its end, and nobody has touched the view since: what comes last is shown, too.
    pub is_ending: bool,
    /// How much is in view while it is followed.
    pub span: Span,
    /// What there is by now, while the picture stands still.
    pub held_back: Option<Shared<Summary>>,
    /// The last out-of-memory event that stopped the following, until it is let go.
    pub oom: Option<Failed>,
    /// Goes up with each summary that is shown: answers to older ones are out of date.
    pub revision: u32,
    /// Goes up whenever the oldest events were let go: answers to older ones count from elsewhere.
    pub epoch: u32,
    /// What was let go last, by device.
    pub trims: Vec<Trim>,
    /// Whether the view is still the one that it opened with.
    pub is_fresh: bool,
    /// Whether all that there was when it was opened has come.
    pub has_caught_up: bool,
}

impl Live {
    /// A session that has just been asked for.
    pub fn new(session: String) -> Self {
        Self {
            session,
            mode: String::new(),
            status: LiveStatus::default(),
            is_following: true,
            is_paused: false,
            is_ending: false,
            span: Span::Newest,
            held_back: None,
            oom: None,
            revision: 0,
            epoch: 0,
            trims: Vec::new(),
            is_fresh: true,
            has_caught_up: false,
        }
    }

    /// Whether more may come.
    pub fn is_open(&self) -> bool {
        self.status.state != SessionState::Ended && !matches!(self.status.connection, Connection::Refused { .. })
    }

    /// Whether the job is seen in part only, by its own account, and may be asked for the rest.
    pub fn sees_part(&self) -> bool {
        self.mode.starts_with("within a budget")
    }

    /// Whether there is something newer than what is in view.
    pub fn can_jump(&self) -> bool {
        self.is_paused || (self.is_open() && !self.is_following)
    }

    /// Events that came since the picture stands still.
    pub fn held_back_events(&self, shown: &Summary) -> u64 {
        self.held_back.as_ref().map_or(0, |newer| count(newer).saturating_sub(count(shown)))
    }

    /// Which part of its events is held here, in words; nothing where it is all of them.
    pub fn latest(&self, shown: &Summary) -> Option<String> {
        let LiveStatus { dropped_events, is_late, missed, .. } = &self.status;
        // While it loads, what is there is not yet the latest.
        let is_part = self.has_caught_up && (*dropped_events > 0 || *is_late || missed.is_some());
        let all = Count(self.status.events.max(count(shown)));
        is_part.then(|| format!("the latest {} of {all} events", Count(count(shown))))
    }

    /// Takes in how the session is. True when the view is to be made anew: all that there was has come.
    pub fn tell(&mut self, status: LiveStatus) -> bool {
        let has_come = status.is_caught_up && !self.has_caught_up;
        self.has_caught_up |= status.is_caught_up;
        self.status = status;
        has_come
    }

    /// Whether an out-of-memory event is news: one of those that had happened before is not.
    pub fn is_news(&self, grown: &Update) -> bool {
        self.has_caught_up && grown.oom.is_some() && self.is_following
    }
}

/// The events of all devices.
pub fn count(summary: &Summary) -> u64 {
    summary.devices.iter().map(|device| u64::from(device.events)).sum()
}

/// Where a window of a length ends that shows the newest event: right behind it, with a hundredth to spare on the axis of
/// time, so that the state that it led to can be seen. (The whole trace has a hundredth of all its time there.)
fn now(device: &DeviceSummary, axis: Axis, length: f64) -> f64 {
    let whole = extent(device, axis);
    match axis {
        Axis::Time => (device.span_us as f64 + length / 100.0).min(whole.end),
        Axis::Event => whole.end,
    }
}

/// Puts the view at the newest events.
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

/// What a person's hand on the view means for the following: a window that still ends now is followed at its new length,
/// any other, and a cursor that is anywhere but at the end, stops it. Gives what is followed, or nothing.
pub fn kept(before: &View, after: &View, device: &DeviceSummary, span: Span) -> Option<Span> {
    if after.device != before.device {
        return Some(span);
    }
    if after.cursor != before.cursor && after.cursor < device.events {
        return None;
    }
    let whole = extent(device, after.axis);
    if after.axis != before.axis {
        // A length means something on its own axis only.
        return Some(match span {
            Span::Length(_) => Span::Length(after.window.length()),
            other => other,
        });
    }
    if after.window == before.window {
        return Some(span);
    }
    // A thousandth of what is in view can't be seen.
    if after.window.end < now(device, after.axis, after.window.length()) - after.window.length() / 1e3 {
        return None;
    }
    Some(if after.window == whole { Span::Whole } else { Span::Length(after.window.length()) })
}

/// The view after the oldest events were let go: everything in it stays where it is on the screen, as far as it is still
/// there.
pub fn shift(view: &mut View, trim: &Trim) {
    let by = match view.axis {
        Axis::Time => trim.us,
        Axis::Event => f64::from(trim.events),
    };
    view.window = moved(view.window, -by);
    view.cursor = view.cursor.saturating_sub(trim.events);
    // Its start or its end is looked up anew.
    view.wanted_axis = None;
}

/// The selection after numbers of allocations have changed: what is not known by its new one is let go.
pub fn reselect(view: &mut View, kept: Option<Kept>) {
    if let Selection::Allocation(id) = view.selection {
        let new = kept.filter(|kept| kept.device == view.device && kept.was == id).and_then(|kept| kept.is);
        view.selection = new.map_or(Selection::None, Selection::Allocation);
    }
}

/// A window so much further right.
pub fn moved(window: Window, by: f64) -> Window {
    Window { start: window.start + by, end: window.end + by }
}
