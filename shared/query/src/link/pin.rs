//! Pins: named bookmarks of moments and allocations.

use std::fmt;

use super::percent::Encoded;
use trace::limits::LINK_PIN_CHARS;

/// A bookmark of a moment or an allocation, which the page draws as a flag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pin {
    /// The position. For an allocation, the one right after it was made, or 0 if it was active at the start.
    pub position: u32,
    /// The allocation, by its number; `None` if a moment is pinned.
    pub allocation: Option<u32>,
    /// Its name, at most [`LINK_PIN_CHARS`] characters.
    pub name: String,
}

impl Pin {
    /// Creates a pin. A name that is too long is cut, and control characters are left out.
    pub fn new(position: u32, allocation: Option<u32>, name: &str) -> Self {
        let name = name.trim().chars().filter(|c| !c.is_control()).take(LINK_PIN_CHARS).collect();
        Self { position, allocation, name }
    }

    /// Returns whether both pin the same moment or allocation.
    pub fn is_at(&self, other: &Self) -> bool {
        (self.position, self.allocation) == (other.position, other.allocation)
    }

    /// Parses `48113,,name` or `48113,a123,name`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ',');
        let position = parts.next()?.parse().ok()?;
        let allocation = match parts.next()? {
            "" => None,
            id => Some(id.strip_prefix('a')?.parse().ok()?),
        };
        Some(Self::new(position, allocation, parts.next()?))
    }
}

impl fmt::Display for Pin {
    /// Formats the pin as the value of a link's part.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},", self.position)?;
        if let Some(id) = self.allocation {
            write!(f, "a{id}")?;
        }
        write!(f, ",{}", Encoded(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_written_as_it_is_read() {
        for pin in [Pin::new(3, None, "before, and after"), Pin::new(0, Some(7), ""), Pin::new(u32::MAX, None, "é")] {
            let decoded = super::super::percent::decode(&pin.to_string()).unwrap();
            assert_eq!(Pin::parse(&decoded), Some(pin));
        }
        for broken in ["", "3", "3,", "3,7,x", "x,,n", "-1,,n", "3,a,n"] {
            assert_eq!(Pin::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_name_is_bounded_and_visible() {
        let pin = Pin::new(1, None, &format!("  a\n{}", "x".repeat(2 * LINK_PIN_CHARS)));
        assert_eq!((pin.name.chars().count(), pin.name.starts_with("axx")), (LINK_PIN_CHARS, true));
    }
}
