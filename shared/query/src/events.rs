//! The event list: its filter, and its rows.

use serde::{Deserialize, Serialize};

use super::{Paint, Question, Sealed};
use crate::term::is_any_category;
use trace::units::{Address, Stream};

/// The action name of rows for lost events, in a filter.
pub const LOST: &str = "lost";

/// The events that a list shows. An empty filter includes all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EventFilter {
    /// Names of actions as recorded, and [`LOST`].
    pub actions: Vec<String>,
    /// Search terms that the event's allocation must match.
    pub terms: Vec<String>,
}

/// A column of the event list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EventColumn {
    /// The event's number, which is also the order of time.
    #[default]
    Number,
    /// The time.
    Time,
    /// The time since the event before.
    Since,
    /// What happened.
    Action,
    /// Bytes.
    Size,
    /// The address.
    Address,
    /// The stream.
    Stream,
    /// The call site's line.
    Site,
}

impl EventColumn {
    /// All columns, in the order of the list.
    pub const ALL: [Self; 8] =
        [Self::Number, Self::Time, Self::Since, Self::Action, Self::Size, Self::Address, Self::Stream, Self::Site];
}

/// The order of the event list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EventOrder {
    /// The column that events are ordered by; equal ones by their number.
    pub by: EventColumn,
    /// Whether the largest comes first.
    pub is_falling: bool,
}

/// Asks for rows of the event list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventsQuery {
    /// The events to show; all of its conditions must hold.
    pub filter: EventFilter,
    /// The order. Lost events are listed only in the order of numbers or times.
    pub order: EventOrder,
    /// The first row.
    pub first: u32,
    /// The number of rows.
    pub count: u32,
    /// A position. The answer has the row of the event right before it, if the list has that event.
    pub locate: u32,
}

impl Question for EventsQuery {
    type Answer = Sealed<EventRows>;

    fn needs_categories(&self) -> bool {
        is_any_category(&self.filter.terms, None)
    }
}

/// Asks for the nearest position before or after another whose event matches a filter. The answer is `None` if there is no
/// such position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepEventQuery {
    /// The events to step over.
    pub filter: EventFilter,
    /// The position to start from.
    pub position: u32,
    /// Whether to search forward in time, or backward.
    pub forward: bool,
}

impl Question for StepEventQuery {
    type Answer = Option<u32>;

    fn needs_categories(&self) -> bool {
        is_any_category(&self.filter.terms, None)
    }
}

/// Asks for the position after the free that belongs to the `alloc` before a position, or after the `alloc` that belongs to
/// the free before it. The answer is `None` if there is no such position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartnerQuery {
    /// The position.
    pub position: u32,
}

impl Question for PartnerQuery {
    type Answer = Option<u32>;
}

/// Asks for an event as text, with all of its numbers and its stack. The answer is `None` if there is no such event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventTextQuery {
    /// The event's index.
    pub index: u32,
}

impl Question for EventTextQuery {
    type Answer = Option<String>;
}

/// One row of the event list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// The event's index in its device's trace, from 0. The position after it is one higher.
    pub index: u32,
    /// Microseconds since the trace begins.
    pub time_us: f64,
    /// The action as recorded.
    pub action: String,
    /// The address; free bytes of the device for an out-of-memory event.
    pub address: Address,
    /// Bytes.
    pub size: u64,
    /// The stream.
    pub stream: Stream,
    /// The call site's line.
    pub site: String,
    /// The allocation that it makes or frees, if it does.
    pub allocation: Option<u32>,
    /// The colour of the line.
    pub paint: Paint,
}

/// How an event of a list relates to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Related {
    /// Microseconds since the event before; `None` for the first.
    pub since_us: Option<f64>,
    /// The position right after the free that belongs to an `alloc`, or after the `alloc` that belongs to a free, if the
    /// trace has it.
    pub partner: Option<u32>,
}

/// A place in the event list where events are lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossRow {
    /// The position before it, which is the index of the event behind it.
    pub position: u32,
    /// The number of lost events.
    pub events: u64,
    /// The number of lost events of each action, as text; empty if they were not counted.
    pub kinds: String,
}

/// A row of the event list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ListRow {
    /// An event.
    Event(EventRow, Related),
    /// Lost events.
    Lost(LossRow),
}

impl ListRow {
    /// Returns the event, if the row is one.
    pub fn event(&self) -> Option<&EventRow> {
        match self {
            Self::Event(event, _) => Some(event),
            Self::Lost(_) => None,
        }
    }

    /// Returns how the event relates to others, if the row is one.
    pub fn related(&self) -> Related {
        match self {
            Self::Event(_, related) => *related,
            Self::Lost(_) => Related::default(),
        }
    }

    /// Returns the row's cursor position: right after an event, before lost events.
    pub fn position(&self) -> u32 {
        match self {
            Self::Event(event, _) => event.index.saturating_add(1),
            Self::Lost(loss) => loss.position,
        }
    }
}

/// Part of the event list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventRows {
    /// The total number of rows that match the filter.
    pub total: u32,
    /// The number of the first row here.
    pub first: u32,
    /// The rows.
    pub rows: Vec<ListRow>,
    /// The row of the event to locate, or of the last one before it; `None` before the first row.
    pub located: Option<u32>,
    /// The order of the rows.
    pub order: EventOrder,
}
