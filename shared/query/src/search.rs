//! Search results, and the help of the search box.

use serde::{Deserialize, Serialize};

use super::{Paint, Question, SegmentRow};
use crate::term::is_category;

/// The help that is shown beside the search box.
pub struct SearchHelp;

impl SearchHelp {
    /// Each form of a term, and what it finds.
    pub const FORMS: [(&'static str, &'static str); 11] = [
        ("attention", "frames whose function or file contains the text"),
        ("/self_?attn/", "frames that match a regular expression"),
        (
            "size>100MiB",
            "requests larger than a size; also <, >=, <= and =, or a size alone, as in 100 MiB. MB means MiB",
        ),
        (
            "0x7f3a2c",
            "blocks that hold an address or whose address begins with the digits; also a name, as in b7f3a2c000000_1",
        ),
        ("stream:7", "allocations of a stream"),
        ("pool:private", "allocations in a pool: small, large, private, or an id such as (0, 1)"),
        ("live:end", "allocations still live at the end; live:start finds those made before the trace"),
        ("category:gradients", "allocations of a category: parameters, activations, optimizer_state, unknown, …"),
        ("-attention", "everything that the term after the minus sign does not match"),
        (">100MiB attention", "what all of the words match, in any order"),
        ("\"void at::native\"", "text with spaces"),
    ];
}

/// Asks for the allocations that a search term matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchQuery {
    /// The term: see [`SearchHelp`].
    pub term: String,
}

impl Question for SearchQuery {
    type Answer = SearchResult;

    fn needs_categories(&self) -> bool {
        is_category(&self.term)
    }
}

/// Asks for the next allocation that a term matches, in the order in which allocations were made. The answer is `None` if
/// nothing matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextHitQuery {
    /// The term.
    pub term: String,
    /// The allocation to start from; `None` finds the match nearest to `position`.
    pub from: Option<u32>,
    /// Without an allocation, where to begin: forward finds the first match made after this position, backward the last one
    /// made up to it; where there is none in that direction, the nearest in the other.
    pub position: u32,
    /// Whether to search forward in time, or backward.
    pub forward: bool,
}

impl Question for NextHitQuery {
    type Answer = Option<Hit>;

    fn needs_categories(&self) -> bool {
        is_category(&self.term)
    }
}

/// The allocations that a search term matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The term.
    pub term: String,
    /// The number of allocations.
    pub count: u32,
    /// The sum of their requested bytes.
    pub bytes: u64,
    /// The largest sum of their requested bytes that was active at once.
    pub peak_bytes: u64,
    /// Why the term can't be parsed, if it can't; nothing matches then.
    pub error: Option<String>,
    /// How the term was understood, as a noun: "requests larger than 1 GiB"; empty if it can't be parsed.
    pub understood: String,
    /// Why nothing matches, as sentences; `None` if something does.
    pub none: Option<String>,
}

/// One match of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The allocation.
    pub allocation: u32,
    /// The position right after it was made; 0 if it was active at the start.
    pub position: u32,
    /// Its number among the matches, from 1.
    pub number: u32,
    /// The number of matches.
    pub of: u32,
}

/// Asks for a list of what a search term finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindQuery {
    /// The term.
    pub term: String,
    /// The position whose segments are searched.
    pub position: u32,
    /// Where the list of allocations begins.
    pub start: ListStart,
    /// The largest number of rows in each group, up to [`FOUND_ROWS`](trace::limits::FOUND_ROWS).
    pub rows: u32,
}

impl Question for FindQuery {
    type Answer = Box<Found>;

    fn needs_categories(&self) -> bool {
        is_category(&self.term)
    }
}

/// Where a list of matching allocations begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListStart {
    /// At a match, by its number, from 0.
    At(u32),
    /// Some rows before the match that [`NextHitQuery`] goes to, forward from a selected allocation,
    /// if there is one, otherwise from the position.
    BeforeNext(Option<u32>),
}

impl ListStart {
    /// Returns the number of the first of `rows` rows so that they contain a match, by its number from 0, and some before it.
    /// Lists begin at few different places, so that stepping rarely requests new rows.
    pub fn before(number: u32, rows: u32) -> u32 {
        let page = (rows / 3).max(1);
        (number / page * page).saturating_sub(page)
    }
}

/// A list of what a term finds, in groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The query, with `rows` as they were used.
    pub query: FindQuery,
    /// The number of the first listed allocation among the matches, from 0.
    pub first: u32,
    /// The number of the match that the next step goes to, if the list begins before it.
    pub next: Option<u32>,
    /// The number of matching allocations, and the sum of their requested bytes.
    pub allocations: (u32, u64),
    /// Some of them, in the order in which they were made.
    pub hits: Vec<FoundAllocation>,
    /// The number of lines that made them.
    pub lines: u32,
    /// The lines that requested most.
    pub by_line: Vec<FoundLine>,
    /// The number of matching segments at the position, and the sum of their sizes in bytes.
    pub segments: (u32, u64),
    /// The largest of them.
    pub by_size: Vec<SegmentRow>,
    /// The number of matching annotations and steps.
    pub marks: u32,
    /// The first of them, in the order of time.
    pub first_marks: Vec<FoundMark>,
}

/// An allocation in a list of matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundAllocation {
    /// Its number.
    pub allocation: u32,
    /// The position right after it was made; 0 if it was active at the start.
    pub position: u32,
    /// Microseconds from the start of the trace until then.
    pub time_us: f64,
    /// Requested bytes.
    pub bytes: u64,
    /// Its line.
    pub site: String,
    /// Its colour.
    pub paint: Paint,
}

/// A line in a list of matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundLine {
    /// The first stack of the line.
    pub stack: u32,
    /// Its text.
    pub label: String,
    /// Its colour.
    pub paint: Paint,
    /// The number of its matching allocations.
    pub count: u32,
    /// The sum of their requested bytes.
    pub bytes: u64,
}

/// An annotation or a step in a list of matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundMark {
    /// Its name.
    pub name: String,
    /// The position at which it begins.
    pub from: u32,
    /// The position at which it ends; for an instant, the one at which it begins.
    pub to: u32,
    /// Microseconds from the start of the trace until it begins.
    pub time_us: f64,
}
