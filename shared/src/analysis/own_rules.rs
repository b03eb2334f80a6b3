//! The user's own rules, which count before those of Vramscope.

use serde::{Deserialize, Serialize};

use super::category::UserRules;
use super::folding::Overrides;

/// All rules of the user's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnRules {
    /// Whose code a frame is: these choose the lines.
    pub folding: Overrides,
    /// What an allocation is used for.
    pub categories: UserRules,
}

impl OwnRules {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.folding.is_empty() && self.categories.rules().is_empty()
    }
}
