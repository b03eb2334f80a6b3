//! Memory by category, for programs and as text.

use serde::Serialize;

use crate::diagnosis::HeldCategory;
use crate::units::Bytes;

/// What the allocations of one category hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CategoryReport {
    /// Its name: lower case, with `_` between words.
    pub category: &'static str,
    /// Requested bytes.
    pub bytes: u64,
    /// The number of allocations.
    pub count: u32,
    /// Its name for people.
    #[serde(skip)]
    name: &'static str,
}

impl From<&HeldCategory> for CategoryReport {
    fn from(held: &HeldCategory) -> Self {
        let HeldCategory { category, bytes, count } = *held;
        Self { category: category.code(), bytes, count, name: category.name() }
    }
}

impl CategoryReport {
    /// Returns categories with their bytes and shares: `activations 3.00 GiB (75.0 %), unknown 1.00 GiB (25.0 %)`.
    pub fn list(held: &[Self]) -> String {
        let all = held.iter().fold(0_u64, |sum, of| sum.saturating_add(of.bytes)).max(1);
        let share = |bytes: u64| bytes as f64 * 100.0 / all as f64;
        let text = |of: &Self| format!("{} {} ({:.1} %)", of.name, Bytes(of.bytes), share(of.bytes));
        held.iter().map(text).collect::<Vec<_>>().join(", ")
    }
}
