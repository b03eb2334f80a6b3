//! What to do about memory that a line keeps, by the functions that made it.

use trace::frames::{StackId, Symbols};

/// Files of frames, and what keeps their memory.
const HOLDERS: [(&str, &str); 2] = [
    (
        "torch/optim/",
        "Drop the optimizer that is no longer used: a scheduler, a list or a checkpoint still refers to it, and it keeps its state.",
    ),
    ("/copy.py", "Keep only the copies that are needed, or move them to the CPU as they are made."),
];

/// Returns the advice for a stack that says what keeps its memory; `None` for others.
pub(super) fn advice(symbols: &Symbols, stack: StackId) -> Option<&'static str> {
    let files = || symbols.stack(stack).iter().map(|id| symbols.text(symbols.frame(*id).filename));
    HOLDERS.into_iter().find(|(part, _)| files().any(|file| file.contains(part))).map(|(_, advice)| advice)
}
