//! The folding of stacks: the program's frames, with runs of internal frames folded.

use std::ops::Range;

use shared::query::FrameText;

/// A part of a folded stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// One frame, by its index.
    Frame(usize),
    /// A run of internal frames, by their indices.
    Folded(Range<usize>),
}

/// Folds runs of internal frames. A stack of internal frames only is not folded.
pub fn fold(frames: &[FrameText]) -> Vec<Part> {
    if frames.iter().all(|frame| frame.is_internal) {
        return (0..frames.len()).map(Part::Frame).collect();
    }
    let mut parts = Vec::new();
    for (i, frame) in frames.iter().enumerate() {
        if !frame.is_internal {
            parts.push(Part::Frame(i));
        } else if let Some(Part::Folded(run)) = parts.last_mut() {
            run.end = i + 1;
        } else {
            parts.push(Part::Folded(i..i + 1));
        }
    }
    parts
}

/// Splits a path into its last part and the rest, so that a narrow column can show the file name first.
pub fn split_path(path: &str) -> (&str, &str) {
    match path.rfind(['/', '\\']) {
        Some(at) => (path.get(at + 1..).unwrap_or_default(), path.get(..at).unwrap_or_default()),
        None => (path, ""),
    }
}

/// Returns the last part of a plain qualified C++ name: `linear` for `at::native::linear`.
pub fn last_part(name: &str) -> &str {
    match name.rsplit_once("::") {
        Some((_, last)) if !last.is_empty() && !name.contains(['<', '(']) => last,
        _ => name,
    }
}

/// Formats `file.py:12`, or the file alone if the line is unknown.
pub fn place(file: &str, line: u32) -> String {
    match (file, line) {
        // Symbolizers write `??` for an unknown file.
        ("" | "??", _) => String::new(),
        (file, 0) => file.to_owned(),
        (file, line) => format!("{file}:{line}"),
    }
}

/// Formats a stack as lines of plain text, innermost first, like PyTorch: `file:line:function`.
pub fn plain_text(frames: &[FrameText]) -> String {
    let mut text = String::new();
    for frame in frames {
        let place = place(&frame.filename, frame.line);
        text.push_str(&place);
        if !place.is_empty() {
            text.push(':');
        }
        text.push_str(&frame.name);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pattern: &str) -> Vec<FrameText> {
        pattern
            .chars()
            .enumerate()
            .map(|(i, c)| FrameText {
                name: format!("f{i}"),
                filename: "/site-packages/torch/nn/linear.py".to_owned(),
                line: i as u32,
                is_internal: c == 'i',
            })
            .collect()
    }

    #[test]
    fn runs_of_internal_frames_fold() {
        use Part::{Folded, Frame};
        assert_eq!(fold(&frames("iippi")), [Folded(0..2), Frame(2), Frame(3), Folded(4..5)]);
        assert_eq!(fold(&frames("pip")), [Frame(0), Folded(1..2), Frame(2)]);
        assert_eq!(fold(&frames("ii")), [Frame(0), Frame(1)]);
        assert_eq!(fold(&[]), []);
    }

    #[test]
    fn paths_lead_with_the_file() {
        assert_eq!(split_path("/a/b/c.py"), ("c.py", "/a/b"));
        assert_eq!(split_path("c.py"), ("c.py", ""));
        assert_eq!(split_path(r"C:\a\c.py"), ("c.py", r"C:\a"));
        assert_eq!(split_path("??"), ("??", ""));
        assert_eq!(split_path(""), ("", ""));
    }

    #[test]
    fn only_plain_names_are_cut() {
        assert_eq!(last_part("at::native::linear"), "linear");
        assert_eq!(last_part("a::f<b::c>"), "a::f<b::c>");
        assert_eq!(last_part("forward"), "forward");
    }

    #[test]
    fn a_copied_stack_is_plain_text() {
        let mut stack = frames("pi");
        stack[1].filename.clear();
        assert_eq!(plain_text(&stack), "/site-packages/torch/nn/linear.py:f0\nf1\n");
        stack[0].line = 116;
        assert!(plain_text(&stack).starts_with("/site-packages/torch/nn/linear.py:116:f0\n"));
    }
}
