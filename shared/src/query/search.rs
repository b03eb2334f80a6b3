//! Search results, and the help of the search box.

use serde::{Deserialize, Serialize};

/// The help that is shown beside the search box.
pub struct SearchHelp;

impl SearchHelp {
    /// Each form of a term, and what it finds.
    pub const FORMS: [(&'static str, &'static str); 9] = [
        ("attention", "frames whose function or file contains the text"),
        ("/self_?attn/", "frames that match a regular expression"),
        (">100MiB", "requests of more than a size; also <, >=, <=, ="),
        ("0x7f3a2c", "blocks that hold an address, or begin with its digits; also a name: b7f3a2c000000_1"),
        ("stream:7", "allocations of a stream"),
        ("pool:private", "allocations of a pool: small, large, private, or (0, 1)"),
        ("live:end", "allocations never freed in the trace; live:start, those from before it"),
        ("category:gradients", "allocations of a category: parameters, activations, optimizer_state, unknown, …"),
        ("-attention", "everything that the term behind the minus sign does not match"),
    ];
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
