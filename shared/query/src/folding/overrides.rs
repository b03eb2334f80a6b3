//! What a person wants otherwise than the table of rules.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::pattern::{behind, comparable};
use crate::FrameText;
use trace::limits::{FOLDING_PART_BYTES, FOLDING_PARTS};

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

impl fmt::Display for Overrides {
    /// Writes one rule a line, `mine: PART` or `library: PART`, as [`Overrides::from_str`] reads them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mine.iter().try_for_each(|part| writeln!(f, "mine: {part}"))?;
        self.libraries.iter().try_for_each(|part| writeln!(f, "library: {part}"))
    }
}

impl FromStr for Overrides {
    type Err = String;

    /// Reads one rule a line. Errs with a sentence for the user.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut rules = Self::default();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let added = match line.split_once(':').map(|(kind, part)| (kind.trim(), part)) {
                Some(("mine", part)) => rules.add_mine(part),
                Some(("library", part)) => rules.add_library(part),
                _ => Err("Begin it with “mine:” or “library:”.".to_owned()),
            };
            added.map_err(|why| format!("Line {number}: {why}"))?;
        }
        Ok(rules)
    }
}

/// Returns the part of a path that a rule for a frame's library, or for its file, has: `site-packages/einops`,
/// `models/gpt.py`. For C++ it is the outermost namespace. `None` if neither is known.
pub fn part_of(frame: &FrameText) -> Option<String> {
    if !super::is_python(&frame.filename) {
        let (namespace, _) = frame.name.split_once("::")?;
        let is_plain = !namespace.is_empty() && namespace.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        return is_plain.then(|| format!("{namespace}::"));
    }
    let path = frame.filename.replace('\\', "/");
    if path.starts_with('<') {
        return None;
    }
    for folder in ["site-packages", "dist-packages"] {
        if let Some(package) = behind(&path, folder).and_then(|rest| rest.split('/').next()) {
            return Some(format!("{folder}/{package}"));
        }
    }
    let cut = path.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    path.get(cut..).map(|part| part.trim_start_matches('/').to_owned())
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
    fn rules_are_text_with_one_a_line() {
        let rules = overrides(&["site-packages/mylib", "a b:c.py"], &["lib/transformers"]);
        let text = "mine: site-packages/mylib\nmine: a b:c.py\nlibrary: lib/transformers\n";
        assert_eq!(rules.to_string(), text);
        assert_eq!(text.parse(), Ok(rules));
        assert_eq!(" \n  library : x/ \n".parse(), Ok(overrides(&[], &["x"])));
        let wrong = |text: &str| text.parse::<Overrides>().expect_err("it is wrong");
        assert_eq!(wrong("mine: a\ntheirs: b"), "Line 2: Begin it with “mine:” or “library:”.");
        assert_eq!(wrong("\nmine:"), "Line 2: Name a part of a path, such as site-packages/mylib.");
    }

    #[test]
    fn a_frame_suggests_the_part_of_its_rule() {
        let check = |name: &str, filename: &str, want: Option<&str>| {
            let frame = FrameText { name: name.to_owned(), filename: filename.to_owned(), ..FrameText::default() };
            assert_eq!(part_of(&frame).as_deref(), want, "{name} {filename}");
        };
        check("f", "/v/lib/python3.11/site-packages/einops/layers/torch.py", Some("site-packages/einops"));
        check("f", "D:\\v\\Lib\\site-packages\\einops\\a.py", Some("site-packages/einops"));
        check("f", "/home/me/project/models/gpt.py", Some("models/gpt.py"));
        check("f", "/train.py", Some("train.py"));
        check("f", "train.py", Some("train.py"));
        check("f", "<string>", None);
        check("mylib::ops::f(at::Tensor)", "??", Some("mylib::"));
        check("void f<a::b>()", "??", None);
        check("(anonymous namespace)::f()", "??", None);
        check("start", "??", None);
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
