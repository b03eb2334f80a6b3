//! Explains texts that people paste instead of a trace: errors that mean that memory ran out, and the output of
//! `torch.cuda.memory_stats()` and `torch.cuda.memory_summary()`.
//!
//! They hold sums at one moment. The explanation marks as likely what only a trace can prove (which line, whether the
//! free memory is in pieces), and ends with what to record.

mod backend;
mod contradiction;
mod explanation;
mod layout;
mod message;
mod other_errors;
mod size;
mod stats;
mod summary;
mod traceback;

pub use explanation::{Explanation, Fact, TextKind, text_of};

use trace::limits::PASTED_BYTES;

/// What to paste instead, for a text that [`explain`] does not recognize.
pub const WANTED: &str = "Paste the whole message that begins \"CUDA out of memory. Tried to allocate\" or the output of \
                          torch.cuda.memory_summary() or memory_stats(), or give a memory snapshot or a recording.";

/// Returns the explanations of a text: one for each out-of-memory error in it, in order, or that of statistics. None if it is
/// neither, or longer than [`PASTED_BYTES`].
pub fn explain(text: &str) -> Vec<Explanation> {
    if text.len() > PASTED_BYTES {
        return Vec::new();
    }
    // Apple's error has the same words, and other figures.
    if let Some(found) = other_errors::metal(&layout::joined(text, false)) {
        return vec![Explanation { line: traceback::line(text), ..found }];
    }
    let mut found: Vec<Explanation> = message::read(text).into_iter().map(message::Message::explain).collect();
    // The last traceback belongs to the last error.
    if let Some(last) = found.last_mut() {
        last.line = traceback::line(text);
        return found;
    }
    let other = || other_errors::explain(&layout::joined(text, false));
    let other = || other().map(|error| Explanation { line: traceback::line(text), ..error });
    let statistics = || summary::read(text).map(|sums| sums.explain(TextKind::MemorySummary));
    let one = statistics().or_else(|| stats::read(text).map(|sums| sums.explain(TextKind::MemoryStats))).or_else(other);
    one.into_iter().collect()
}

#[cfg(test)]
mod tests;
