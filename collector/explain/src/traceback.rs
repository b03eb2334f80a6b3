//! The traceback that people paste together with an error: which line asked for the memory.

use analysis::best_frames::BestFrames;
use analysis::site::label;
use replay::index::Index;
use trace::frames::{Frame, FrameId, Symbols};

/// The most frames that are read, the innermost ones.
const MOST: usize = 1_000;

/// Returns the line that asked for memory in the last traceback of a text, `forward  gpt/model.py:54`: the innermost one of the
/// user's own code, as in a recorded stack. `None` if the text has no traceback.
pub(super) fn line(text: &str) -> Option<String> {
    let (_, last) = text.rsplit_once("Traceback (most recent call last):")?;
    let mut symbols = Symbols::default();
    let frames: Vec<FrameId> = last
        .lines()
        .filter_map(|line| {
            let (filename, number, name) = frame(line)?;
            let (name, filename) = (symbols.intern(name.as_bytes()), symbols.intern(filename.as_bytes()));
            Some(symbols.intern_frame(Frame { name, filename, line: number }))
        })
        .collect();
    // A traceback ends with the innermost frame, and a stack begins with it.
    let frames: Vec<FrameId> = frames.into_iter().rev().take(MOST).collect();
    if frames.is_empty() {
        return None;
    }
    let stack = symbols.intern_stack(&frames);
    let mut best = BestFrames::default();
    best.extend(&symbols);
    Some(label(&symbols, &best, stack))
}

/// Reads the file, line and function of `File "gpt/model.py", line 54, in forward`, whatever a logger wrote before it.
fn frame(line: &str) -> Option<(&str, u32, &str)> {
    let (_, rest) = line.split_once("File \"")?;
    let (filename, rest) = rest.split_once("\", line ")?;
    let (number, name) = rest.split_once(", in ").unwrap_or((rest, ""));
    Some((filename, number.trim().parse().ok()?, name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_own_line_of_the_last_traceback_asked() {
        let text = "\
Traceback (most recent call last):
  File \"/home/ada/gpt/old.py\", line 1, in old
ValueError: caught

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File \"/home/ada/gpt/train.py\", line 120, in <module>
    main()
  File \"/home/ada/gpt/model.py\", line 54, in forward
    x = self.mlp(x)
  File \"/usr/lib/python3.11/site-packages/torch/nn/modules/module.py\", line 1751, in _call_impl
    return forward_call(*args, **kwargs)
torch.OutOfMemoryError: CUDA out of memory.";
        assert_eq!(line(text).as_deref(), Some("forward  gpt/model.py:54"));
        // As launchers prefix the lines of a rank.
        let logged: String = text.lines().map(|line| format!("[rank0]: {line}\n")).collect();
        assert_eq!(line(&logged).as_deref(), Some("forward  gpt/model.py:54"));
        let library = "Traceback (most recent call last):\n  File \"/x/site-packages/torch/a.py\", line 7, in f";
        assert!(line(library).is_some_and(|line| line.ends_with("a.py:7")));
        for nothing in ["", "torch.OutOfMemoryError", "Traceback (most recent call last):", "File \"a\", line x, in f"]
        {
            assert_eq!(line(nothing), None, "{nothing}");
        }
    }
}
