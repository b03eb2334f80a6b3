//! Patterns of paths and function names.

use std::borrow::Cow;

/// What a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Folders that follow each other in a path, whole names; the last may be the file. In a name, `*` stands for any
    /// text, and `#` for a version: digits and points.
    Path(&'static str),
    /// How the name of a file begins.
    FileStart(&'static str),
    /// A file that the compiler of PyTorch generated: named by the hash of its contents, in a folder of two letters of
    /// it. Its cache may be anywhere.
    Hashed,
    /// A command without suffix in a folder of this name.
    Script(&'static str),
    /// How a function's name begins.
    FunctionStart(&'static str),
    /// A part of a function's name that does not begin inside a word, unless the part begins with `::`.
    FunctionPart(&'static str),
}

/// Returns a path with slashes between its parts, and in lower case where case makes no difference.
pub(super) fn comparable(path: &str) -> Cow<'_, str> {
    let is_windows = path.contains('\\') || path.as_bytes().get(1) == Some(&b':');
    if is_windows { path.replace('\\', "/").to_ascii_lowercase().into() } else { path.into() }
}

impl Pattern {
    /// Returns whether it matches a file of Python, as [`comparable`] returns it: the rest of the path behind the match.
    pub(super) fn rest<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self {
            Self::Path(parts) => behind(path, parts),
            Self::FileStart(start) => path.strip_prefix(start),
            Self::Hashed => is_hashed(path).then_some(""),
            Self::Script(folder) => {
                let (head, file) = path.rsplit_once('/')?;
                let is_there = head.rsplit('/').next() == Some(folder) && !file.contains(".py");
                is_there.then_some(file)
            }
            Self::FunctionStart(_) | Self::FunctionPart(_) => None,
        }
    }

    /// Returns whether it matches a C++ function with this name, which has no arguments, and this file.
    pub(super) fn is_native(&self, name: &str, path: &str) -> bool {
        match self {
            Self::Path(parts) => behind(path, parts).is_some(),
            Self::FunctionStart(start) => name.trim_start_matches('_').starts_with(start),
            Self::FunctionPart(part) => contains_word(name, part),
            Self::FileStart(_) | Self::Hashed | Self::Script(_) => false,
        }
    }
}

/// Returns the rest of a path behind the last place where `parts` match whole parts of it.
pub(super) fn behind<'a>(path: &'a str, parts: &str) -> Option<&'a str> {
    let slashes = path.bytes().enumerate().rev().filter(|(_, byte)| *byte == b'/');
    let begin = parts.split(['/', '#', '*']).next().unwrap_or_default();
    slashes.map(|(at, _)| at + 1).chain([0]).find_map(|start| {
        let mut rest = path.get(start..).filter(|rest| rest.starts_with(begin))?;
        for part in parts.split('/') {
            let (name, next) = rest.split_once('/').unwrap_or((rest, ""));
            if !is_name(name, part) {
                return None;
            }
            rest = next;
        }
        Some(rest)
    })
}

/// Returns whether the pattern of one part matches a name.
fn is_name(name: &str, pattern: &str) -> bool {
    if let Some((start, end)) = pattern.split_once('#') {
        let Some(rest) = name.strip_prefix(start) else { return false };
        if end == "*" {
            return rest.starts_with(|c: char| c.is_ascii_digit());
        }
        let Some(version) = rest.strip_suffix(end) else { return false };
        // The library of a build without the global lock is in `python3.13t`.
        let version = version.strip_suffix('t').unwrap_or(version);
        return !version.is_empty() && version.chars().all(|c| c.is_ascii_digit() || c == '.');
    }
    match pattern.split_once('*') {
        Some((start, end)) => name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end),
        None => name == pattern,
    }
}

/// Returns whether a path is `ab/cab….py`, a base-32 hash of 51 letters behind a `c`.
fn is_hashed(path: &str) -> bool {
    const LENGTH: usize = 52;
    let mut parts = path.rsplit('/');
    let (Some(file), Some(folder)) = (parts.next(), parts.next()) else { return false };
    let Some(hash) = file.strip_suffix(".py") else { return false };
    hash.len() == LENGTH
        && folder.len() == 2
        && hash.get(1..3) == Some(folder)
        && hash.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// Returns whether a text contains a part, not inside a longer word: `format::` has no `at::`.
fn contains_word(text: &str, part: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let is_free = !part.starts_with(is_word);
    text.match_indices(part).any(|(at, _)| is_free || !text.get(..at).is_some_and(|before| before.ends_with(is_word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_path_match_whole_names() {
        let cases = [
            ("/v/lib/python3.11/site-packages/einops/a.py", "site-packages", Some("einops/a.py")),
            ("/v/lib/python3.11/x.py", "lib/python#", Some("x.py")),
            ("/v/lib/python3.13t/x.py", "lib/python#", Some("x.py")),
            ("/v/lib/python/x.py", "lib/python#", None),
            ("/v/lib/python3-course/x.py", "lib/python#", None),
            ("/v/python311.zip/x.py", "python#.zip", Some("x.py")),
            ("/v/libpython3.11.so.1.0", "libpython#*", Some("")),
            ("/v/mylib/python3.11/x.py", "lib/python#", None),
            ("/v/site-packages-demo/x.py", "site-packages", None),
            ("torch/_prims_common/x.py", "torch/_prims*", Some("x.py")),
            ("torch-2.1-cp311.whl/torch/x.py", "torch-*.whl/torch", Some("x.py")),
            ("a/site-packages/b/site-packages/c/x.py", "site-packages", Some("c/x.py")),
            ("", "site-packages", None),
        ];
        for (path, parts, want) in cases {
            assert_eq!(behind(path, parts), want, "{path} {parts}");
        }
    }

    #[test]
    fn a_part_of_a_function_is_no_part_of_a_word() {
        assert!(contains_word("void at::native::f", "at::"));
        assert!(contains_word("dispatch<float, at::Half>", "at::"));
        assert!(!contains_word("format::write", "at::"));
        assert!(contains_word("at::_ops::mm::redispatch", "::redispatch"));
    }
}
