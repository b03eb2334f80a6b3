//! The rules of the user's own that a report goes by.

use crate::analysis::category::UserRules;
use crate::analysis::folding::Overrides;

/// The user's own rules, which count before those of Vramscope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnRules {
    /// Whose code a frame is: these choose the lines.
    pub folding: Overrides,
    /// What an allocation is used for.
    pub categories: UserRules,
}
