//! The live memory of a run by stack: what the flame graph of another run shows its difference from.

use serde::{Deserialize, Serialize};

use super::category::Category;
use super::{FlameQuery, Question, Sealed};
use trace::totals::Amount;

/// Asks for the stacks of a flame graph, in a form that another session can read: those at its position that match its filter, by
/// category if its first level are categories. How it is laid out changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunStacksQuery(pub FlameQuery);

impl Question for RunStacksQuery {
    type Answer = Sealed<RunStacks>;

    fn needs_categories(&self) -> bool {
        self.0.needs_categories()
    }
}

/// The live allocations of a run at a position, by stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStacks {
    /// The frames of the stacks.
    pub frames: Vec<RunFrame>,
    /// The stacks, each once, or once for each category.
    pub stacks: Vec<RunStack>,
}

/// A frame, as recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFrame {
    /// The function.
    pub function: String,
    /// The file.
    pub file: String,
    /// The line's number.
    pub number: u32,
}

/// A stack with its live allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStack {
    /// Its frames, innermost first: indices of [`RunStacks::frames`]. Empty if there is none.
    pub frames: Vec<u32>,
    /// Whether it was recorded, and lost with a damaged part of the file.
    pub is_lost: bool,
    /// The category of the allocations, if they are apart.
    pub category: Option<Category>,
    /// The allocations, with the bytes that they requested.
    pub held: Amount,
}
