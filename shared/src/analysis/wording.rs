//! Phrases that several texts share.

use crate::units::Count;

/// Returns a number of things with the noun in the singular or plural: `1 gap`, `1,204 gaps`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", Count(count), if count == 1 { "" } else { "s" })
}
