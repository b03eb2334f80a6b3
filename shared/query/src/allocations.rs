//! The table of allocations.

use serde::{Deserialize, Serialize};

use super::{Moments, Paint, Question, Sealed};
use crate::term::is_any_category;
use trace::totals::Amount;

/// What the table of allocations is ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AllocationOrder {
    /// Requested bytes of the row, the most first.
    #[default]
    Bytes,
    /// The number of allocations of the row, the most first.
    Count,
    /// When the first of them was made, the oldest first.
    Made,
    /// The longest lifetime among them, the longest first.
    Lifetime,
    /// The call site, by its text.
    Site,
    /// The line that freed them, by its text; those that are still live come last.
    FreedBy,
}

impl AllocationOrder {
    /// All orders, in the order of the table's columns.
    pub const ALL: [Self; 6] = [Self::Bytes, Self::Count, Self::Made, Self::Lifetime, Self::Site, Self::FreedBy];
}

/// Asks for rows of the table of the allocations that are active at a position; of those that were made after an earlier one,
/// if the moments have one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AllocationsQuery {
    /// When.
    pub moments: Moments,
    /// Search terms, all of which an allocation must match.
    pub filter: Vec<String>,
    /// The order. Equal rows are in the order in which their allocations were made.
    pub order: AllocationOrder,
    /// Whether the order is turned around.
    pub is_reversed: bool,
    /// Whether allocations of one size from one call site share a row.
    pub is_folded: bool,
    /// The first row.
    pub first: u32,
    /// The number of rows.
    pub count: u32,
}

impl Question for AllocationsQuery {
    type Answer = Sealed<AllocationRows>;

    fn needs_categories(&self) -> bool {
        is_any_category(&self.filter, None)
    }
}

/// Rows of the table of allocations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AllocationRows {
    /// The query.
    pub query: AllocationsQuery,
    /// The number of rows of the whole table.
    pub table_rows: u32,
    /// All allocations of the table, with their requested bytes.
    pub total: Amount,
    /// The rows.
    pub rows: Vec<AllocationRow>,
}

/// A row of the table: one allocation, or several of one size from one call site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocationRow {
    /// The allocation; of several the one that was made first.
    pub allocation: u32,
    /// The number of allocations.
    pub count: u32,
    /// The requested bytes of each.
    pub size: u64,
    /// The position right after that allocation was made; 0 if it was active at the start.
    pub begin: u32,
    /// When it was made, in microseconds since the trace begins.
    pub begin_us: f64,
    /// The longest lifetime among them so far, in microseconds.
    pub lifetime_us: f64,
    /// The longest lifetime among them so far, in events.
    pub lifetime: u32,
    /// The number of those that are still live at the end of the trace.
    pub live: u32,
    /// A stack of the call site.
    pub stack: u32,
    /// The call site's line.
    pub label: String,
    /// The call site's colour.
    pub paint: Paint,
    /// What freed them.
    pub freed_by: FreedBy,
}

/// What freed the allocations of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FreedBy {
    /// Nothing: all are still live at the end of the trace.
    Nothing,
    /// It was not recorded.
    Unknown,
    /// This line.
    Line(String),
    /// Several lines.
    Several,
}
