//! Memory by category, for programs and as text.

use serde::Serialize;

use query::diagnosis::HeldCategory;
use trace::units::Bytes;

/// The memory of one category.
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
        let text = |of: &Self| {
            let share = share(of.bytes);
            // Otherwise a small share would be shown as 0.0 %.
            let share = if share < 0.05 { "< 0.1".to_owned() } else { format!("{share:.1}") };
            format!("{} {} ({share} %)", of.name, Bytes(of.bytes))
        };
        held.iter().map(text).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_share_is_zero() {
        let of = |name, bytes| CategoryReport { category: "", bytes, count: 1, name };
        let cases: [(&[CategoryReport], &str); 3] = [
            (
                &[of("activations", 3 << 30), of("unknown", 1 << 30)],
                "activations 3.00 GiB (75.0 %), unknown 1.00 GiB (25.0 %)",
            ),
            (
                &[of("activations", 1 << 30), of("inputs", 512)],
                "activations 1.00 GiB (100.0 %), inputs 512 B (< 0.1 %)",
            ),
            (&[], ""),
        ];
        for (held, want) in cases {
            assert_eq!(CategoryReport::list(held), want);
        }
    }
}
