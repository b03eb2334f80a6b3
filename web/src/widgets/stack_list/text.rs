//! The text of a stack's frames, shown and copied.

use query::FrameText;
use query::folding::{Part, run_text};
use trace::text::separators;

/// Splits a path into its last part and the rest, so that a narrow column can show the file name first.
pub fn split_path(path: &str) -> (&str, &str) {
    match separators(path).next() {
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

/// Formats the parts of a stack as lines of plain text, innermost first, like PyTorch: `file:line:function`.
pub fn plain_text(frames: &[FrameText], parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Frame(i) => {
                let Some(frame) = frames.get(*i) else { continue };
                let place = place(&frame.filename, frame.line);
                text.push_str(&place);
                if !place.is_empty() {
                    text.push(':');
                }
                text.push_str(&frame.name);
            }
            Part::Folded(run) => {
                text.push_str("… ");
                text.push_str(&run_text(frames.get(run.clone()).unwrap_or_default()));
            }
        }
        text.push('\n');
    }
    text
}

/// Returns all frames of a stack, none folded.
pub fn all(frames: &[FrameText]) -> Vec<Part> {
    (0..frames.len()).map(Part::Frame).collect()
}

#[cfg(test)]
mod tests {
    use query::folding::fold;

    use super::*;

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
        let frame = |name: &str, filename: &str, line, library: &str| FrameText {
            name: name.to_owned(),
            filename: filename.to_owned(),
            line,
            library: library.to_owned(),
            is_call_site: false,
        };
        let stack = [
            frame("at::empty", "??", 0, "torch"),
            frame("linear", "/site-packages/torch/nn/linear.py", 116, "torch"),
            frame("forward", "/me/model.py", 0, ""),
        ];
        assert_eq!(plain_text(&stack, &fold(&stack)), "… 2 frames of torch\n/me/model.py:forward\n");
        let whole = "at::empty\n/site-packages/torch/nn/linear.py:116:linear\n/me/model.py:forward\n";
        assert_eq!(plain_text(&stack, &all(&stack)), whole);
    }
}
