//! What a person wants otherwise than the table of rules.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::pattern::{behind, comparable};
use crate::limits::{FOLDING_PART_BYTES, FOLDING_PARTS};

/// The user's own rules, which count before those of the table. Of several that match, the longest counts.
///
/// A part is a piece of a path, such as `site-packages/mylib` or `train.py`, and matches whole names only. One with `::`
/// is the beginning of a C++ function's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    mine: Vec<String>,
    libraries: Vec<String>,
}

impl Overrides {
    /// Adds a part whose frames are the user's own code. Replaces an equal part of the other kind.
    ///
    /// Errs with a sentence for the user if the part is empty, too long or one too many.
    pub fn add_mine(&mut self, part: &str) -> Result<(), String> {
        let part = self.checked(part)?;
        self.remove(&part);
        self.mine.push(part);
        Ok(())
    }

    /// Adds a part whose frames are those of a library.
    ///
    /// Errs as [`Self::add_mine`] does.
    pub fn add_library(&mut self, part: &str) -> Result<(), String> {
        let part = self.checked(part)?;
        self.remove(&part);
        self.libraries.push(part);
        Ok(())
    }

    /// Removes a part.
    pub fn remove(&mut self, part: &str) {
        self.mine.retain(|known| known != part);
        self.libraries.retain(|known| known != part);
    }

    /// Returns the parts that are the user's own.
    pub fn mine(&self) -> &[String] {
        &self.mine
    }

    /// Returns the parts that are libraries.
    pub fn libraries(&self) -> &[String] {
        &self.libraries
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.mine.is_empty() && self.libraries.is_empty()
    }

    fn checked(&self, part: &str) -> Result<String, String> {
        let part = part.trim().replace('\\', "/");
        let part = part.trim_matches('/');
        if part.is_empty() {
            return Err("Name a part of a path, such as site-packages/mylib.".to_owned());
        }
        if part.len() > FOLDING_PART_BYTES {
            return Err(format!("A part of a path has at most {FOLDING_PART_BYTES} bytes."));
        }
        if self.mine.iter().chain(&self.libraries).filter(|known| *known != part).count() >= FOLDING_PARTS {
            return Err(format!("There are already {FOLDING_PARTS} rules. Remove one first."));
        }
        Ok(part.to_owned())
    }

    /// Returns whether a frame is the user's own (`Ok`) or a library's, with the library's name. `None` if no part
    /// matches.
    pub(super) fn of(&self, name: &str, filename: &str) -> Option<Result<(), &str>> {
        if self.is_empty() {
            return None;
        }
        let path = comparable(filename);
        let is_windows = matches!(path, Cow::Owned(_));
        let matches = |part: &&String| {
            if part.contains("::") {
                return name.starts_with(part.as_str());
            }
            if is_windows { behind(&path, &part.to_ascii_lowercase()) } else { behind(&path, part) }.is_some()
        };
        let mine = self.mine.iter().filter(matches).map(String::len).max();
        let library = self.libraries.iter().filter(matches).max_by_key(|part| part.len());
        match (mine, library) {
            (None, None) => None,
            (Some(length), Some(part)) if part.len() > length => Some(Err(last_name(part))),
            (Some(_), _) => Some(Ok(())),
            (None, Some(part)) => Some(Err(last_name(part))),
        }
    }
}

/// Returns what a library is called that a part names: the last name of a path, or the namespace.
fn last_name(part: &str) -> &str {
    let name = part.trim_end_matches("::");
    let name = name.rsplit('/').next().unwrap_or(name);
    name.strip_suffix(".py").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(mine: &[&str], libraries: &[&str]) -> Overrides {
        let mut new = Overrides::default();
        mine.iter().for_each(|part| new.add_mine(part).expect("a good part"));
        libraries.iter().for_each(|part| new.add_library(part).expect("a good part"));
        new
    }

    #[test]
    fn the_longest_part_counts() {
        const MINE: Option<Result<(), &str>> = Some(Ok(()));
        let rules = overrides(
            &["site-packages/mylib", "/vendored/patched/", "myext::", "Lib\\site-packages\\Winlib"],
            &["vendored", "lib/transformers", "site-packages/mylib/_generated.py", "theirs::"],
        );
        let cases = [
            ("f", "/v/site-packages/mylib/a.py", MINE),
            ("f", "/v/site-packages/mylib2/a.py", None),
            ("f", "/v/site-packages/mylib/_generated.py", Some(Err("_generated"))),
            ("f", "/src/vendored/x.py", Some(Err("vendored"))),
            ("f", "/src/vendored/patched/x.py", MINE),
            ("f", "/mnt/lib/transformers/modeling.py", Some(Err("transformers"))),
            ("f", "C:\\py\\lib\\site-packages\\winlib\\a.py", MINE),
            ("myext::launch(at::Tensor)", "??", MINE),
            ("theirs::launch()", "??", Some(Err("theirs"))),
            ("f", "", None),
        ];
        for (name, filename, want) in cases {
            assert_eq!(rules.of(name, filename), want, "{name} {filename}");
        }
        assert_eq!(Overrides::default().of("f", "/a.py"), None);
    }

    #[test]
    fn a_part_is_in_one_list_once() {
        let mut rules = overrides(&["a", "a", "b"], &["b"]);
        assert_eq!((rules.mine(), rules.libraries()), (&["a".to_owned()][..], &["b".to_owned()][..]));
        rules.remove("a");
        rules.remove("b");
        assert!(rules.is_empty());
    }

    #[test]
    fn the_number_and_length_of_parts_is_bounded() {
        let mut rules = Overrides::default();
        assert!(rules.add_mine(" / ").is_err());
        assert!(rules.add_mine(&"x".repeat(FOLDING_PART_BYTES + 1)).is_err());
        for i in 0..FOLDING_PARTS {
            assert_eq!(rules.add_library(&format!("part{i}")), Ok(()));
        }
        assert!(rules.add_mine("one more").is_err());
        assert_eq!(rules.add_mine("part0"), Ok(()));
    }
}
