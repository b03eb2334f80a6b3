//! The rules: each looks for one kind of trouble, in a file of its own.

use super::Case;
use crate::finding::Finding;

/// What looks for one kind of trouble. It returns no finding without evidence.
type Rule = fn(&Case<'_>) -> Vec<Finding>;

/// All rules.
const RULES: [Rule; 0] = [];

/// Returns what the rules find, in the order of the rules.
pub(super) fn check(case: &Case<'_>) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| rule(case)).map(|finding| finding.on_device(case.trace.device)).collect()
}
