//! Two views at once.

use std::fmt;

use super::Tab;

/// The side of the first view on which the second one is. Keys act on the first view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// Right of it.
    #[default]
    Right,
    /// Below it.
    Below,
    /// Left of it.
    Left,
    /// Above it.
    Above,
}

impl Side {
    /// All sides.
    pub const ALL: [Self; 4] = [Self::Right, Self::Below, Self::Left, Self::Above];

    /// Returns its name in links.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Below => "below",
            Self::Left => "left",
            Self::Above => "above",
        }
    }

    /// Returns where the first view is, seen from the second.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Right => Self::Left,
            Self::Below => Self::Above,
            Self::Left => Self::Right,
            Self::Above => Self::Below,
        }
    }

    /// Returns whether the views are side by side, rather than one above the other.
    pub const fn is_beside(self) -> bool {
        matches!(self, Self::Right | Self::Left)
    }

    /// Returns whether the second view comes first: left of the other, or above it.
    pub const fn is_before(self) -> bool {
        matches!(self, Self::Left | Self::Above)
    }
}

/// The second of two views.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    /// What it shows. The page ignores a split that shows the same as the first view.
    pub tab: Tab,
    /// Where it is.
    pub side: Side,
    /// The share of the left or upper view, in per cent: [`Split::LEAST`] to [`Split::MOST`].
    pub percent: u8,
}

impl Split {
    /// The smallest share of a view, in per cent.
    pub const LEAST: u8 = 15;
    /// The largest share of a view, in per cent.
    pub const MOST: u8 = 85;

    /// Returns the split with another share, in per cent, limited to the range that is allowed.
    #[must_use]
    pub const fn with_percent(self, percent: u8) -> Self {
        let percent = if percent < Self::LEAST { Self::LEAST } else { percent };
        Self { percent: if percent > Self::MOST { Self::MOST } else { percent }, ..self }
    }

    /// Parses `segments,below,60`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(',');
        let (tab, side, percent) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
        let tab = Tab::ALL.into_iter().find(|known| known.name() == tab)?;
        let side = Side::ALL.into_iter().find(|known| known.name() == side)?;
        parts.next().is_none().then(|| Self { tab, side, percent }.with_percent(percent))
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.tab.name(), self.side.name(), self.percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_is_read_as_it_is_written() {
        for side in Side::ALL {
            let split = Split { tab: Tab::Segments, side, percent: 60 };
            assert_eq!(Split::parse(&split.to_string()), Some(split));
            assert_eq!((side.opposite().opposite(), side.opposite().is_beside()), (side, side.is_beside()));
            assert_ne!(side.is_before(), side.opposite().is_before());
        }
        assert_eq!(Split::parse("flame,right,1").map(|split| split.percent), Some(Split::LEAST));
        for text in
            ["", "flame", "flame,right", "flame,right,x", "flame,under,50", "nothing,right,50", "flame,right,50,1"]
        {
            assert_eq!(Split::parse(text), None, "{text}");
        }
    }
}
