//! What the user chooses about a copy, and about the link to it.

use std::ops::Range;

use query::redaction::{Part, Paths, Redaction};
use trace::order::SortFew;
use trace::text::is_hidden;
use trace::units::counted;

use crate::source::shares::Sharing;

/// What is kept in a copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    /// What becomes of paths.
    pub paths: Paths,
    /// Whether the names of host and job are kept.
    pub has_places: bool,
    /// Whether the texts are kept that the job attached to its allocations.
    pub has_metadata: bool,
    /// Whether annotations are kept.
    pub has_annotations: bool,
    /// Whether only the shown part is kept.
    pub is_part: bool,
    /// Whether only the shown device is kept.
    pub is_device: bool,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            paths: Paths::default(),
            has_places: false,
            has_metadata: false,
            has_annotations: true,
            is_part: false,
            is_device: false,
        }
    }
}

/// What becomes of paths, with the names of the choices.
pub const PATHS: [(Paths, &str); 3] =
    [(Paths::WithoutHomes, "Without home folders"), (Paths::FileNames, "File names only"), (Paths::Whole, "Whole")];

impl Choices {
    /// Returns what is left out. `device` is the shown device's number, `part` the positions of its shown part.
    pub fn redaction(&self, device: i64, part: Option<&Range<u32>>) -> Redaction {
        let part = match part.filter(|_| self.is_part) {
            Some(positions) => Part::Window { device, positions: positions.clone() },
            None if self.is_device => Part::Devices(vec![device]),
            None => Part::Everything,
        };
        Redaction {
            paths: self.paths,
            has_places: self.has_places,
            has_metadata: self.has_metadata,
            is_without_annotations: !self.has_annotations,
            part,
        }
    }
}

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// How long a link may last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The label.
    pub label: String,
    /// The seconds; `None` for forever.
    pub seconds: Option<u64>,
}

impl Lifetime {
    fn of(seconds: Option<u64>) -> Self {
        let label = match seconds {
            None => "Never".to_owned(),
            Some(seconds) if seconds == 365 * DAY => "In 1 year".to_owned(),
            Some(seconds) if seconds >= DAY => format!("In {}", counted(seconds / DAY, "day")),
            Some(seconds) if seconds >= HOUR => format!("In {}", counted(seconds / HOUR, "hour")),
            Some(seconds) => format!("In {}", counted(seconds.div_ceil(60), "minute")),
        };
        Self { label, seconds }
    }

    /// Returns the lifetimes that a server allows, the shortest first, and the index of the one to begin with.
    pub fn allowed(sharing: &Sharing) -> (Vec<Self>, usize) {
        let Sharing { default_seconds, most_seconds, .. } = *sharing;
        let is_allowed = |seconds: u64| most_seconds.is_none_or(|most| seconds <= most);
        let mut all: Vec<u64> = [DAY, 7 * DAY, 30 * DAY, 365 * DAY].into_iter().filter(|s| is_allowed(*s)).collect();
        // A server may allow less than a day only, or something in between.
        all.extend(most_seconds.filter(|most| all.is_empty() && *most > 0));
        all.extend(default_seconds.filter(|seconds| is_allowed(*seconds) && *seconds > 0 && !all.contains(seconds)));
        all.sort_few_by_key(|seconds| *seconds);
        let mut all: Vec<Option<u64>> = all.into_iter().map(Some).collect();
        if most_seconds.is_none() {
            all.push(None);
        }
        let first = all.iter().position(|seconds| *seconds == default_seconds).unwrap_or(0);
        (all.into_iter().map(Self::of).collect(), first)
    }
}

/// Endings of files that the page opens. They say nothing in a link's name.
const ENDINGS: [&str; 7] = [".gz", ".zst", ".vramscope", ".pickle", ".pkl", ".json", ".html"];

/// Returns the name of a copy of a file: the file's, without folders and endings.
pub fn first_name(file: &str) -> String {
    let mut name = file.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    while let Some(shorter) =
        ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).filter(|name| !name.is_empty())
    {
        name = shorter;
    }
    name.to_owned()
}

/// Returns a name that every file system accepts.
pub fn file_name(name: &str, ending: &str) -> String {
    let is_bad = |c: char| is_hidden(c) || matches!(c, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
    let kept: String = name.chars().map(|c| if is_bad(c) { '-' } else { c }).collect();
    let kept = kept.trim_matches(|c: char| c == '.' || c.is_whitespace());
    format!("{}{ending}", if kept.is_empty() { "trace" } else { kept })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharing(default_seconds: Option<u64>, most_seconds: Option<u64>) -> Sharing {
        Sharing { most_bytes: 1, part_bytes: 1, default_seconds, most_seconds, is_public_allowed: false }
    }

    #[test]
    fn private_things_are_off_at_first() {
        assert_eq!(Choices::default().redaction(0, Some(&(1..2))), Redaction::default());
    }

    #[test]
    fn a_part_is_of_one_device() {
        let choices = Choices { is_device: true, ..Choices::default() };
        assert_eq!(choices.redaction(3, Some(&(1..2))).part, Part::Devices(vec![3]));
        let both = Choices { is_part: true, ..choices };
        assert_eq!(both.redaction(3, Some(&(1..2))).part, Part::Window { device: 3, positions: 1..2 });
        assert_eq!(both.redaction(3, None).part, Part::Devices(vec![3]));
    }

    #[test]
    fn lifetimes_stay_within_what_the_server_allows() {
        for (default, most, want, first) in [
            (Some(30 * DAY), None, &["In 1 day", "In 7 days", "In 30 days", "In 1 year", "Never"][..], 2),
            (Some(30 * DAY), Some(90 * DAY), &["In 1 day", "In 7 days", "In 30 days"], 2),
            (Some(14 * DAY), Some(14 * DAY), &["In 1 day", "In 7 days", "In 14 days"], 2),
            (Some(6 * HOUR), Some(12 * HOUR), &["In 6 hours", "In 12 hours"], 0),
            (Some(60), Some(60), &["In 1 minute"], 0),
            (None, None, &["In 1 day", "In 7 days", "In 30 days", "In 1 year", "Never"], 4),
        ] {
            let (lifetimes, start) = Lifetime::allowed(&sharing(default, most));
            let labels: Vec<&str> = lifetimes.iter().map(|lifetime| lifetime.label.as_str()).collect();
            assert_eq!((labels.as_slice(), start), (want, first), "{default:?} {most:?}");
        }
    }

    #[test]
    fn names_lose_folders_and_endings() {
        for (file, name) in [
            ("run.pickle", "run"),
            ("run.vramscope.gz", "run"),
            ("/home/alice/run.pkl", "run"),
            ("C:\\x\\run.json.zst", "run"),
            (".pickle", ".pickle"),
            ("llama step 3", "llama step 3"),
        ] {
            assert_eq!(first_name(file), name);
        }
        for (name, file) in [("a/b: c", "a-b- c.html"), ("..", "trace.html"), ("", "trace.html"), ("ok", "ok.html")] {
            assert_eq!(file_name(name, ".html"), file);
        }
    }
}
