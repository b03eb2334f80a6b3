//! A stack in parts: frames that are shown, and runs of library frames in one row each.

use std::ops::Range;

use crate::FrameText;
use trace::units::counted;

/// A part of a folded stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// One frame, by its index.
    Frame(usize),
    /// A run of library frames, by their indices.
    Folded(Range<usize>),
}

/// Folds the runs of a stack's frames for which `is_folded` returns `true`.
pub fn fold_where(frames: usize, is_folded: impl Fn(usize) -> bool) -> Vec<Part> {
    let mut parts = Vec::new();
    for i in 0..frames {
        match parts.last_mut() {
            _ if !is_folded(i) => parts.push(Part::Frame(i)),
            Some(Part::Folded(run)) => run.end = i + 1,
            _ => parts.push(Part::Folded(i..i + 1)),
        }
    }
    parts
}

/// Folds the runs of library frames of a stack of texts. The frame that represents it is never folded.
pub fn fold(frames: &[FrameText]) -> Vec<Part> {
    fold_where(frames.len(), |i| frames.get(i).is_some_and(|frame| !frame.library.is_empty() && !frame.is_call_site))
}

/// Describes a run of library frames, which is innermost first: `12 frames of torch`. The library that the user's code
/// called comes first.
pub fn run_text(frames: &[FrameText]) -> String {
    let libraries = frames.iter().rev().map(|frame| &*frame.library);
    names_text(&counted(frames.len() as u64, "frame"), libraries)
}

/// Adds to `frames`, such as `12 frames`, the names of these libraries, outermost first.
pub fn names_text<'a>(frames: &str, libraries: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for library in libraries.filter(|name| !name.is_empty()) {
        if !names.contains(&library) {
            names.push(library);
        }
    }
    match names.as_slice() {
        [] => frames.to_owned(),
        [one] => format!("{frames} of {one}"),
        [one, other] => format!("{frames} of {one} and {other}"),
        [one, other, rest @ ..] => format!("{frames} of {one}, {other} and {} more", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_described_by_its_libraries() {
        let check = |libraries: &[&str], want: &str| {
            let text = |library: &&str| FrameText { library: (*library).to_owned(), ..FrameText::default() };
            let frames: Vec<FrameText> = libraries.iter().map(text).collect();
            assert_eq!(run_text(&frames), want);
        };
        check(&["torch"], "1 frame of torch");
        check(&["torch", "torch", "torch"], "3 frames of torch");
        check(&["torch", "einops", "torch", "einops"], "4 frames of einops and torch");
        check(&["torch", "CUDA", "C++", "Python"], "4 frames of Python, C++ and 2 more");
    }
}
