//! The rules that tell categories, and what they decided.

use serde::{Deserialize, Serialize};

use super::{Category, Question, Sealed};
use trace::totals::Amount;

/// Asks for the rules that tell categories, and what they decided at the peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CategoryRulesQuery;

impl Question for CategoryRulesQuery {
    type Answer = Sealed<CategoryRules>;

    fn needs_categories(&self) -> bool {
        true
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CategoryRule {
    /// Its name; of a rule of the user's own, the part that it looks for.
    pub name: String,
    /// What it matches, as a sentence.
    pub matches: String,
    /// The category that it decides on.
    pub category: Category,
    /// Whether it is a rule of the user's own.
    pub is_own: bool,
    /// The active allocations at the peak that it decided.
    pub at_peak: Amount,
}

/// All rules in the order in which they are tried. What they decided adds up to the total.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CategoryRules {
    /// The rules, those of the user's own first.
    pub rules: Vec<CategoryRule>,
    /// The active allocations at the peak.
    pub total: Amount,
    /// Those that no rule fits.
    pub unknown: Amount,
}
