//! The event list: what it shows, and its rows.

use serde::{Deserialize, Serialize};

use super::Paint;
use crate::units::{Address, Stream};

/// The name by which a filter asks for rows that say that events are missing.
pub const LOST: &str = "lost";

/// Which events a list shows. Empty means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EventFilter {
    /// Names of actions, as written, and [`LOST`].
    pub actions: Vec<String>,
    /// Search terms that the event's allocation must match.
    pub terms: Vec<String>,
}

/// One row of the event list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// The event's index in its device's trace, from 0. The position after it is one more.
    pub index: u32,
    /// Microseconds since the trace's first event.
    pub time_us: f64,
    /// The action, as written.
    pub action: String,
    /// The address; free bytes of the device for an out-of-memory event.
    pub address: Address,
    /// Bytes.
    pub size: u64,
    /// The stream.
    pub stream: Stream,
    /// The call site's line.
    pub site: String,
    /// The allocation that it begins or ends, if it does.
    pub allocation: Option<u32>,
    /// The allocation's colour.
    pub paint: Paint,
}

/// A place in the event list where events are missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossRow {
    /// The position of the state before: the index of the event after it.
    pub position: u32,
    /// How many are missing.
    pub events: u64,
    /// How many of each action, in words; empty where that was not counted.
    pub kinds: String,
}

/// What a row of the event list is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ListRow {
    /// An event.
    Event(EventRow),
    /// Events that are missing.
    Lost(LossRow),
}

impl ListRow {
    /// The event, if it is one.
    pub fn event(&self) -> Option<&EventRow> {
        match self {
            Self::Event(event) => Some(event),
            Self::Lost(_) => None,
        }
    }

    /// Where the cursor stands for it: right after the event; before what is missing.
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
    /// Rows in all that the filter lets through.
    pub total: u32,
    /// The number of the first row here.
    pub first: u32,
    /// The rows.
    pub rows: Vec<ListRow>,
    /// The row of the event that was to be located (or of the last one before it); none before the first row.
    pub located: Option<u32>,
}
