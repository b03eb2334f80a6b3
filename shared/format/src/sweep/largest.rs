//! The largest value that fits, proven on both sides.

use serde::Serialize;

use super::run::Run;

/// The end of what fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum Largest {
    /// A value fits, and the next larger one doesn't.
    Between {
        /// The run of the largest value that fits.
        fits: Run,
        /// The run of the value after it.
        fails: Run,
    },
    /// Even the largest value of the range fits.
    Beyond {
        /// Its run.
        fits: Run,
    },
    /// Not even the smallest value of the range fits.
    Below {
        /// Its run.
        fails: Run,
    },
}

impl Largest {
    /// Returns the run of the largest value that fits, if one does.
    pub fn fits(&self) -> Option<&Run> {
        match self {
            Self::Between { fits, .. } | Self::Beyond { fits } => Some(fits),
            Self::Below { .. } => None,
        }
    }

    /// Returns the run of the smallest value above it, which fails, if one was run.
    pub fn fails(&self) -> Option<&Run> {
        match self {
            Self::Between { fails, .. } | Self::Below { fails } => Some(fails),
            Self::Beyond { .. } => None,
        }
    }

    /// Returns the proof in a few words: `280 fits, 281 fails`.
    pub fn proof(&self) -> String {
        match self {
            Self::Between { fits, fails } => format!("{} fits, {} fails", fits.value, fails.value),
            Self::Beyond { fits } => format!("{} fits, the end of the range", fits.value),
            Self::Below { fails } => format!("{} fails, the start of the range", fails.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::run;
    use super::*;

    #[test]
    fn each_kind_has_its_name_and_its_proof() {
        let cases = [
            (Largest::Between { fits: run(4, 4), fails: run(5, 4) }, "between", "4 fits, 5 fails"),
            (Largest::Beyond { fits: run(9, 9) }, "beyond", "9 fits, the end of the range"),
            (Largest::Below { fails: run(1, 0) }, "below", "1 fails, the start of the range"),
        ];
        for (largest, found, proof) in cases {
            assert_eq!(largest.proof(), proof);
            let text = serde_json::to_string(&largest).unwrap();
            assert!(text.starts_with(&format!("{{\"found\":\"{found}\",")), "{text}");
            assert_eq!(largest.fits().is_some(), text.contains("\"fits\":{"));
            assert_eq!(largest.fails().is_some(), text.contains("\"fails\":{"));
        }
    }
}
