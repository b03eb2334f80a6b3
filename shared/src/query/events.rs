//! The event list: its filter, and its rows.

use serde::{Deserialize, Serialize};

use super::Paint;
use crate::units::{Address, Stream};

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
    /// The allocation's colour.
    pub paint: Paint,
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
    Event(EventRow),
    /// Lost events.
    Lost(LossRow),
}

impl ListRow {
    /// Returns the event, if the row is one.
    pub fn event(&self) -> Option<&EventRow> {
        match self {
            Self::Event(event) => Some(event),
            Self::Lost(_) => None,
        }
    }

    /// Returns the row's cursor position: right after an event, before lost events.
    pub fn position(&self) -> u32 {
        match self {
            Self::Event(event) => event.index.saturating_add(1),
            Self::Lost(loss) => loss.position,
        }
    }
}

/// Part of the event list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRows {
    /// The total number of rows that match the filter.
    pub total: u32,
    /// The number of the first row here.
    pub first: u32,
    /// The rows.
    pub rows: Vec<ListRow>,
    /// The row of the event to locate, or of the last one before it; `None` before the first row.
    pub located: Option<u32>,
}
